//! Puts the Python kit into the program, so that Python agents run where it is not installed.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rootfs/usr/lib/agentd/python").canonicalize()?;
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut text = String::from("&[\n");
    for path in files {
        let name = path.strip_prefix(&root).map_err(io::Error::other)?;
        writeln!(
            text,
            "    ({:?}, include_str!({:?})),",
            name.display().to_string(),
            path.display().to_string()
        )
        .map_err(io::Error::other)?;
    }
    text.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(PathBuf::from(out).join("python_kit.rs"), text)
}

/// Python files of the kit itself, not of its tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && name != "tests" && name != "__pycache__" {
            collect(&path, files)?;
        } else if name.ends_with(".py") {
            files.push(path);
        }
    }
    Ok(())
}
