//! What each key of the sandbox costs at a start, beside the same start without any.

use std::path::Path;
use std::time::Instant;

use super::Bench;
use super::manager::{NONE, Setup};
use super::table::{Line, Unit};
use crate::error::{During, Error, Result};

/// How many commands one run makes.
const COMMANDS: usize = 100;

/// What does nothing, and is everywhere.
const PROGRAM: &str = "/bin/true";

/// A line for `[Service]`, or for the whole file, with what it is called.
const CASES: [(&str, &str); 25] = [
    ("User", "User = \"65534\""),
    ("DynamicUser with what it brings", "DynamicUser = true"),
    ("NoNewPrivileges", "NoNewPrivileges = true"),
    ("CapabilityBoundingSet=", "CapabilityBoundingSet = []"),
    ("ProtectSystem=strict", "ProtectSystem = \"strict\""),
    ("ProtectHome", "ProtectHome = true"),
    ("PrivateTmp", "PrivateTmp = true"),
    ("PrivateDevices", "PrivateDevices = true"),
    ("PrivateIPC", "PrivateIPC = true"),
    ("PrivateNetwork", "PrivateNetwork = true"),
    ("ProtectProc=invisible", "ProtectProc = \"invisible\""),
    ("ProtectKernelTunables", "ProtectKernelTunables = true"),
    ("ProtectKernelModules", "ProtectKernelModules = true"),
    ("ProtectKernelLogs", "ProtectKernelLogs = true"),
    ("ProtectControlGroups", "ProtectControlGroups = true"),
    ("ProtectClock", "ProtectClock = true"),
    ("ProtectHostname", "ProtectHostname = true"),
    ("RestrictNamespaces", "RestrictNamespaces = true"),
    ("RestrictSUIDSGID", "RestrictSUIDSGID = true"),
    ("MemoryDenyWriteExecute", "MemoryDenyWriteExecute = true"),
    ("RestrictAddressFamilies", "RestrictAddressFamilies = \"AF_UNIX AF_INET AF_INET6\""),
    ("SystemCallArchitectures", "SystemCallArchitectures = \"native\""),
    ("SystemCallFilter", "SystemCallFilter = \"@system-service\""),
    ("ProtectSystem=strict and Landlock", "ProtectSystem = \"strict\"\n[Agent]\nLandlock = true"),
    ("Sandbox=strict", "StateDirectory = \"agentd-bench\"\n[Agent]\nSandbox = \"strict\""),
];

/// See the module. A case is a oneshot with a hundred commands, each in the sandbox; a figure is the time of one command.
///
/// # Errors
/// A service does not run as it should.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    let runs = bench.runs(7, 3);
    let mut none = Vec::new();
    let mut times = vec![Vec::new(); CASES.len()];
    // In turns, so that a busy moment of the machine is nobody's alone.
    for _ in 0..runs {
        none.push(one(bench, "")?);
        for ((_, key), times) in CASES.iter().zip(&mut times) {
            times.push(one(bench, key)?);
        }
    }
    bench.note(
        "sandbox: a command of a oneshot from start to exit, reaped by the manager, one after the other"
            .into(),
    );
    let mut lines = vec![Line::new("one command without a sandbox", Unit::Time, &none)];
    lines.extend(CASES.iter().zip(&times).map(|((name, _), times)| {
        Line::new(format!("  with {name}"), Unit::Time, times).beside("without", &none)
    }));
    drop(std::fs::remove_dir_all("/var/lib/agentd-bench"));
    Ok(lines)
}

/// Nanoseconds of one command under this key.
fn one(bench: &Bench, key: &str) -> Result<f64> {
    let setup = Setup::new(&bench.cast)?;
    let commands = vec![[PROGRAM]; COMMANDS - 1];
    let more =
        format!("Type = \"oneshot\"\nExecStartPre = {commands:?}\nTimeoutStartSec = \"infinity\"\n{key}");
    setup.service("walled", &more, &[Path::new(PROGRAM)])?;
    let (mut manager, _) = setup.start(NONE)?;
    manager.reached(NONE)?;
    let begun = Instant::now();
    let status = manager.ctl(&["start", "walled"]).status().during(|| "cannot run agentctl".into())?;
    let whole = begun.elapsed();
    if !status.success() {
        return Err(Error::new(format!("a service with {key} does not run")));
    }
    manager.end()?;
    Ok(whole.as_nanos() as f64 / COMMANDS as f64)
}
