//! Units in systemd's syntax and programs in Python: what scenarios from the field are made of.

use std::fs;
use std::process::Command;

use super::{Manager, Setup};

/// A unit in systemd's syntax.
pub fn service(setup: &Setup, name: &str, lines: &str) {
    setup.file(&format!("units/{name}.service"), &format!("[Service]\n{lines}\n"));
}

/// A program in Python, as the line that executes it. `FOLDER` is the test's.
pub fn python(setup: &Setup, name: &str, source: &str) -> String {
    let folder = setup.path("").display().to_string();
    let head = format!("import os, signal, socket, subprocess, sys, time\nFOLDER = {folder:?}\n");
    let program = setup.file(&format!("{name}.py"), &format!("{head}{source}"));
    format!("/usr/bin/python3 {}", program.display())
}

/// What a file in the test's folder holds; nothing if it is not there.
pub fn read(manager: &Manager, name: &str) -> String {
    fs::read_to_string(manager.path(name)).unwrap_or_default()
}

/// Sends a signal by its name.
pub fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}
