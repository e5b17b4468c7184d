//! The ways out of a strict sandbox that `crates/agentd/tests/escape` tries, in a machine with Debian's kernel, whose manager
//! is PID 1: there is what a container's kernel need not have, such as the keys of /proc/sysrq-trigger.
//!
//! Each is tried within the sandbox, where it must fail, and as root without it, where it must not fail in the same way.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::context::{Context, FILES};
use super::guest::{active, ok};
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Error, Result};
use crate::image::product::ADMIN_UNITS;
use crate::run::{command, root, run};
use crate::tools;
use crate::vm::Machine;

/// See the module.
pub const SCENARIOS: &[Scenario] =
    &[Scenario { name: "vm::nothing-gets-out-of-a-strict-sandbox", run: escape }];

/// The unit that others are after.
const VICTIM: &str = "escape-victim";

/// Where the attacker has its program, and what it may try to write to.
const FOLDER: &str = "/srv/escape";

/// What Debian's kernel, 6.1, has no wall against: its Landlock knows nothing of abstract sockets (Linux 6.12), and a unit
/// that has the machine's network sees them.
const OPEN_ON_THIS_KERNEL: [&str; 1] = ["abstract-socket"];

/// For all attempts together, of which one makes hundreds of processes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Of so many attempts it may stay open whether they could work at all, as this kernel lacks what they are after.
const UNTOLD: usize = 3;

fn escape(context: &mut Context) -> Result<()> {
    tools::need(tools::BENCH)?;
    let folder = root().join("crates/agentd/tests/escape");
    let path = folder.join("attempts.txt");
    let attempts = fs::read_to_string(&path).during(|| format!("cannot read {}", path.display()))?;
    let hostile = context.scratch().path().join("hostile");
    run(command("cc", &["-static", "-O1", "-o"]).arg(&hostile).arg(folder.join("hostile.c")))?;
    // Nobody has signed the attacker.
    let spec = context.product_disk(|tree| {
        tree.write("etc/agentd/agentd.toml", 0o644, b"[Manager]\nTrust = \"off\"\n")?;
        tree.copy(&hostile, &format!("{FILES}/hostile"), &|_| false)
    })?;
    let machine = context.boot(&spec)?;
    let all = words(&attempts, "try").join(" ");
    prepare(machine)?;
    let strict = format!("[Agent]\nSandbox = \"strict\"\n[Service]\nStateDirectory = \"{VICTIM}-strict\"\n");
    let within =
        outcomes(machine, "strict", &strict, &format!("{all} set-user-id-program stray-descriptor"))?;
    let without = outcomes(machine, "free", "[Service]\n", &format!("make-shared-memory {all}"))?;
    judge(&attempts, &within, &without)?;
    expect_eq("write-sysrq without walls", &without["write-sysrq"].as_str(), &"done")?;
    logged_calls(machine)?;
    active(machine, &["default.target", VICTIM])
}

/// The attacker's folder, its victim, and what has an abstract address.
fn prepare(machine: &mut Machine) -> Result<()> {
    ok(
        machine,
        &format!(
            "mkdir -p {FOLDER}/units {FOLDER}/writable && chmod 777 {FOLDER}/writable && \
             cp /{FILES}/hostile {FOLDER}/hostile && cp /{FILES}/hostile {FOLDER}/setuid && chmod 4755 {FOLDER}/setuid"
        ),
    )?;
    let sleep = "ExecStart = [\"/bin/sleep\", \"infinity\"]";
    let strict =
        format!("[Agent]\nSandbox = \"strict\"\n[Service]\n{sleep}\nStateDirectory = \"{VICTIM}\"\n");
    let listen = "import socket, signal; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'agentd-escape-1'); \
                  s.listen(); signal.pause()";
    let listener = format!("[Service]\nExecStart = [\"/usr/bin/python3\", \"-c\", \"{listen}\"]\n");
    for (name, text) in [(VICTIM, strict), ("escape-listener", listener)] {
        unit(machine, name, &text)?;
    }
    ok(machine, &format!("agentctl daemon-reload && agentctl start {VICTIM} escape-listener")).map(|_| ())
}

fn unit(machine: &mut Machine, name: &str, text: &str) -> Result<()> {
    ok(machine, &format!("cat > /{ADMIN_UNITS}/{name}.service.toml <<'END'\n{text}\nEND")).map(|_| ())
}

/// Has a unit make attempts; what came of each.
fn outcomes(
    machine: &mut Machine,
    name: &str,
    text: &str,
    attempts: &str,
) -> Result<BTreeMap<String, String>> {
    let victim = ok(machine, &format!("agentctl show --value -p MainPID {VICTIM}"))?;
    let words: Vec<String> = attempts.split(' ').map(|word| format!("\"{word}\"")).collect();
    let text = format!(
        "{text}Type = \"oneshot\"\nLimitNOFILE = 1024\nEnvironment = {{ VICTIM = \"{VICTIM}\" }}\n\
         StandardOutput = \"truncate:/run/escape-{name}\"\n\
         ExecStart = [\"{FOLDER}/hostile\", \"1\", \"{victim}\", \"{FOLDER}\", {}]",
        words.join(", ")
    );
    unit(machine, &format!("escape-{name}"), &text)?;
    let told = machine.run_for(
        &format!("agentctl daemon-reload && agentctl start escape-{name} && cat /run/escape-{name}"),
        PATIENCE,
    )?;
    expect(told.code == 0, || format!("the attacker {name} did not come to its end:\n{}", told.text))?;
    let pairs = told.text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(attempt, end)| (attempt.to_owned(), end.to_owned())).collect())
}

/// `SystemCallLog` has the kernel tell of the calls that are listed, and of no other.
fn logged_calls(machine: &mut Machine) -> Result<()> {
    let calls = "import os; os.sched_yield(); os.getpriority(0, 0)";
    let text = format!(
        "[Service]\nType = \"oneshot\"\nSystemCallLog = \"sched_yield\"\n\
         ExecStart = [\"/usr/bin/python3\", \"-c\", \"{calls}\"]"
    );
    unit(machine, "logged-calls", &text)?;
    ok(machine, "dmesg -c >/dev/null && agentctl daemon-reload && agentctl start logged-calls")?;
    // sched_yield(2) is 24 and getpriority(2) 140 on x86-64.
    let told = ok(machine, "dmesg | grep -c 'type=1326.*comm=\"python3\".*syscall=24 '")?;
    expect(told.trim() != "0", || "sched_yield is not told of".to_owned())?;
    let others = ok(machine, "dmesg | grep 'type=1326' | grep -vc 'syscall=24 ' || true")?;
    expect_eq("calls told of besides", &others.trim(), &"0")
}

fn judge(
    attempts: &str,
    within: &BTreeMap<String, String>,
    without: &BTreeMap<String, String>,
) -> Result<()> {
    let (refused, missing) = (words(attempts, "refused"), words(attempts, "missing"));
    let told = |all: &BTreeMap<String, String>, attempt: &str| {
        all.get(attempt).cloned().unwrap_or_else(|| "nothing".to_owned())
    };
    let (mut wrong, mut untold) = (Vec::new(), Vec::new());
    for attempt in words(attempts, "try") {
        let (within, without) = (told(within, attempt), told(without, attempt));
        if OPEN_ON_THIS_KERNEL.contains(&attempt) {
            println!("{attempt}: {within} within and {without} without: open on this kernel");
        } else if !refused.contains(&within.as_str()) {
            wrong.push(format!("{attempt}: {within} within the sandbox"));
        } else if within == without && missing.contains(&without.as_str()) {
            untold.push(format!("{attempt}: {within}"));
        } else if within == without {
            wrong.push(format!("{attempt}: {within} within and without: it proves nothing"));
        }
    }
    for attempt in ["set-user-id-program", "stray-descriptor"] {
        let within = told(within, attempt);
        if matches!(within.as_str(), "done" | "nothing") {
            wrong.push(format!("{attempt}: {within} within the sandbox"));
        }
    }
    println!("{} attempts; not to be told on this kernel: {untold:?}", words(attempts, "try").len());
    expect(untold.len() <= UNTOLD, || format!("too many attempts prove nothing: {untold:?}"))?;
    if wrong.is_empty() { Ok(()) } else { Err(Error::new(wrong.join("\n"))) }
}

/// The words behind this one.
fn words<'a>(attempts: &'a str, kind: &str) -> Vec<&'a str> {
    let lines = attempts.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(first, _)| *first == kind).flat_map(|(_, rest)| rest.split(' ')).collect()
}
