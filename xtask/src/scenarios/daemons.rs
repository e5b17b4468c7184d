//! Daemons that know nothing of agentd, by the unit files that Debian ships with them, unchanged: each starts, answers,
//! reloads, comes back after a crash, and leaves nothing behind when it stops.

use std::fs;

use super::context::Context;
use super::guest::{by_bash, ok, show, until};
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Result};
use crate::image::product::ADMIN_UNITS;
use crate::vm::Machine;

/// See the module.
pub const SCENARIOS: &[Scenario] =
    &[Scenario { name: "vm::debians-daemons-live-by-their-own-units", run: daemons }];

/// One of them.
struct Daemon {
    /// The unit.
    unit: &'static str,
    /// Its file below Debian's `/usr/lib/systemd/system`.
    file: &'static str,
    /// Succeeds as long as it does what it is for.
    answers: &'static str,
    /// Its file says how it reloads.
    reloads: bool,
    /// Its file has it come back after a crash; else a drop-in of the machine's administrator does.
    restarts: bool,
    /// It is taken over as TOML.
    imported: bool,
}

/// Asks the name server for its version.
const DNS: &str = "python3 -c \"import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
s.sendto(bytes.fromhex('123401000001000000000000') + bytes([7]) + b'version' + bytes([4]) + b'bind' + bytes([0, 0, 16, 0, 3]), ('127.0.0.1', 53))
assert b'dnsmasq' in s.recv(512)\"";

/// Begins a conversation and looks what the other side says.
const MEMCACHED: &str = "python3 -c \"import socket
s = socket.create_connection(('127.0.0.1', 11211), 2)
s.sendall(b'version\\r\\n')
assert s.recv(99).startswith(b'VERSION')\"";
const SSH: &str = "python3 -c \"import socket
s = socket.create_connection(('127.0.0.1', 22), 2)
assert s.recv(99).startswith(b'SSH-2.0')\"";

const DAEMONS: &[Daemon] = &[
    // Its proof is a job that it runs in the course of the minute; that is looked at last.
    Daemon {
        unit: "cron.service",
        file: "cron.service",
        answers: "kill -0 $(cat /run/crond.pid)",
        reloads: false,
        restarts: true,
        imported: false,
    },
    Daemon {
        unit: "nginx.service",
        file: "nginx.service",
        answers: "curl -fsS -o /dev/null http://127.0.0.1/",
        reloads: true,
        restarts: false,
        imported: true,
    },
    Daemon {
        unit: "dnsmasq.service",
        file: "dnsmasq.service",
        answers: DNS,
        reloads: true,
        restarts: false,
        imported: false,
    },
    Daemon {
        unit: "memcached.service",
        file: "memcached.service",
        answers: MEMCACHED,
        reloads: false,
        restarts: true,
        imported: true,
    },
    Daemon {
        unit: "ssh.service",
        file: "ssh.service",
        answers: SSH,
        reloads: true,
        restarts: true,
        imported: false,
    },
    Daemon {
        unit: "redis-server.service",
        file: "redis-server.service",
        answers: "redis-cli ping | grep -qx PONG",
        reloads: false,
        restarts: true,
        imported: false,
    },
    Daemon {
        unit: "postgresql@15-main.service",
        file: "postgresql@.service",
        answers: "cd / && setpriv --reuid postgres --regid postgres --init-groups psql -Atc 'select 6*7' | grep -qx 42",
        reloads: true,
        restarts: false,
        imported: false,
    },
];

const THEIRS: &str = "/usr/lib/systemd/system";

fn daemons(context: &mut Context) -> Result<()> {
    // Nobody has signed what Debian ships, and the one of ours for redis makes way for Debian's own.
    let spec = context.product_disk(|tree| {
        tree.write("etc/agentd/agentd.toml", 0o644, b"[Manager]\nTrust = \"off\"\n")?;
        let ours = tree.path().join(ADMIN_UNITS).join("redis-server.service.toml");
        fs::remove_file(&ours).during(|| format!("cannot remove {}", ours.display()))
    })?;
    let machine = context.boot(&spec)?;
    // What a machine of Debian's has done before any of its daemons is started.
    machine.run("systemd-tmpfiles --create")?;
    ok(machine, "echo '* * * * * root touch /run/cron-was-here' > /etc/cron.d/mark")?;
    for daemon in DAEMONS {
        put(machine, daemon)?;
    }
    ok(machine, "agentctl daemon-reload")?;
    for daemon in DAEMONS {
        live(machine, daemon).during(|| daemon.unit.to_owned())?;
    }
    Ok(())
}

/// Puts its unit where the machine's administrator does.
fn put(machine: &mut Machine, daemon: &Daemon) -> Result<()> {
    let (file, units) = (daemon.file, format!("/{ADMIN_UNITS}"));
    if daemon.imported {
        ok(machine, &format!("agentctl import --out {units} {THEIRS}/{file}"))?;
    } else {
        ok(machine, &format!("cp {THEIRS}/{file} {units}/"))?;
    }
    if !daemon.restarts {
        let folder = format!("{units}/{file}.d");
        let text = "[Service]\\nRestart=on-failure\\nRestartSec=100ms\\n";
        ok(machine, &format!("mkdir {folder} && printf '{text}' > {folder}/restart.conf"))?;
    }
    Ok(())
}

fn live(machine: &mut Machine, daemon: &Daemon) -> Result<()> {
    let unit = daemon.unit;
    ok(machine, &format!("agentctl start {unit}"))?;
    let first = main_of(machine, unit)?;
    answers(machine, daemon)?;
    if daemon.reloads {
        ok(machine, &format!("agentctl reload {unit}"))?;
        answers(machine, daemon)?;
        expect_eq("the main process after a reload", &main_of(machine, unit)?, &first)?;
    }
    ok(machine, &format!("kill -KILL {first}"))?;
    until(
        machine,
        &format!("agentctl show -p NRestarts {unit} | grep -qx NRestarts=1 && agentctl is-active {unit}"),
    )?;
    let second = main_of(machine, unit)?;
    expect(second != first, || format!("{unit} has the main process {first} after that was killed"))?;
    answers(machine, daemon)?;
    if unit == "cron.service" {
        until_a_minute_is_over(machine)?;
    }
    ok(machine, &format!("agentctl stop {unit}"))?;
    let properties = show(machine, unit)?;
    expect_eq("ActiveState", &properties["ActiveState"].as_str(), &Some("inactive"))?;
    expect_eq("Result", &properties["Result"].as_str(), &Some("success"))?;
    expect(machine.run(&format!("kill -0 {second}"))?.code != 0, || format!("{unit}: {second} lives on"))?;
    let left = machine.run(&format!(
        "cat /sys/fs/cgroup/*/{unit}/cgroup.procs /sys/fs/cgroup/*/*/{unit}/cgroup.procs 2>/dev/null"
    ))?;
    expect_eq("what is left in its cgroup", &left.text.as_str(), &"")?;
    expect(machine.run(&by_bash(daemon.answers))?.code != 0, || format!("{unit} answers after its stop"))
}

fn answers(machine: &mut Machine, daemon: &Daemon) -> Result<()> {
    until(machine, daemon.answers)
}

/// cron runs its jobs at full minutes, which is longer than one command of ours may take.
fn until_a_minute_is_over(machine: &mut Machine) -> Result<()> {
    let wait = "timeout 30 bash -c 'until [ -e /run/cron-was-here ]; do sleep 0.2; done'";
    for _ in 0..3 {
        if machine.run(wait)?.code == 0 {
            return Ok(());
        }
    }
    ok(machine, "test -e /run/cron-was-here").map(|_| ())
}

fn main_of(machine: &mut Machine, unit: &str) -> Result<u64> {
    let properties = show(machine, unit)?;
    expect_eq("ActiveState", &properties["ActiveState"].as_str(), &Some("active"))?;
    let main = properties["MainPID"].as_u64().unwrap_or(0);
    expect(main > 1, || format!("{unit} has no main process: {properties}"))?;
    Ok(main)
}
