//! Limits of the kernel: visible in cgroupfs, and in force.

use super::context::Context;
use super::guest::{active, ok, show, then_console};
use super::{Scenario, expect, expect_eq};
use crate::error::{Error, Result};
use crate::vm::Machine;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "vm::limits-stand-in-cgroupfs", run: visible },
    Scenario { name: "vm::every-limit-of-a-unit-stands-in-its-file", run: every },
    Scenario { name: "vm::every-limit-of-a-slice-stands-in-its-file", run: slice },
    Scenario { name: "vm::a-memory-hog-is-oom-killed-and-comes-back", run: hog },
    Scenario { name: "vm::stop-leaves-no-process", run: orphans },
];

fn visible(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    active(machine, &["summarizer.service"])?;
    let group = group_of(machine, "summarizer.service")?;
    expect_eq("cgroup", &group.as_str(), &"/system.slice/summarizer.service")?;
    for (file, value) in [("memory.max", "201326592"), ("cpu.max", "50000 100000"), ("pids.max", "16")] {
        let found = ok(machine, &format!("cat /sys/fs/cgroup{group}/{file}"))?;
        expect_eq(file, &found.as_str(), &value)?;
    }
    let pid = show(machine, "summarizer.service")?["MainPID"].to_string();
    let held = ok(machine, &format!("cat /sys/fs/cgroup{group}/cgroup.procs"))?;
    expect(held.lines().any(|line| line == pid), || format!("{pid} is not in {group}: {held:?}"))?;
    let bounding = ok(machine, &format!("grep -E '^(CapBnd|NoNewPrivs)' /proc/{pid}/status"))?;
    let words: Vec<&str> = bounding.split_whitespace().collect();
    expect_eq("capabilities", &words, &vec!["CapBnd:", "0000000000000000", "NoNewPrivs:", "1"])
}

/// The keys of every-limit.service and bounded.slice, and what stands in their cgroups by them. The disk is virtio's first. MemoryZSwapMax and
/// IODeviceWeight are not among them: Debian's kernel for virtual machines has no zswap, and the disk no cost model.
const EVERY: &[(&str, &str, &str)] = &[
    ("MemoryMin", "memory.min", "1048576"),
    ("MemoryLow", "memory.low", "2097152"),
    ("MemoryHigh", "memory.high", "41943040"),
    ("MemoryMax", "memory.max", "50331648"),
    ("MemorySwapMax", "memory.swap.max", "3145728"),
    ("TasksMax", "pids.max", "20"),
    ("CPUQuota", "cpu.max", "30000 20000"),
    ("CPUWeight", "cpu.weight", "50"),
    ("IOWeight", "io.weight", "default 200"),
    ("IOReadBandwidthMax", "io.max", "DISK rbps=10000000 wbps=20000000 riops=1000 wiops=max"),
    ("AllowedCPUs", "cpuset.cpus", "0"),
    ("AllowedMemoryNodes", "cpuset.mems", "0"),
    ("OOMPolicy", "memory.oom.group", "1"),
];

fn every(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    ok(machine, "agentctl start every-limit.service delegated.service")?;
    let group = group_of(machine, "every-limit.service")?;
    all_stand(machine, &group, EVERY)?;
    let unenforced = ok(machine, "agentctl status every-limit.service")?;
    expect(!unenforced.contains("not enforced"), || format!("not all is enforced:\n{unenforced}"))?;
    let own = group_of(machine, "delegated.service")?;
    for (file, value) in [
        ("memory.max", "67108864"),
        ("part/memory.max", "16777216"),
        ("cgroup.subtree_control", "memory pids"),
    ] {
        expect_eq(file, &ok(machine, &format!("cat /sys/fs/cgroup{own}/{file}"))?.as_str(), &value)?;
    }
    // A change at run time reaches the file, and the stop takes all of it away, what the service has made too.
    ok(machine, "agentctl set-property --runtime every-limit.service MemoryMax=60M")?;
    expect_eq(
        "memory.max",
        &ok(machine, &format!("cat /sys/fs/cgroup{group}/memory.max"))?.as_str(),
        &"62914560",
    )?;
    ok(machine, "agentctl stop every-limit.service delegated.service")?;
    ok(machine, &format!("! test -e /sys/fs/cgroup{group} && ! test -e /sys/fs/cgroup{own}")).map(|_| ())
}

/// Each value in its file.
fn all_stand(machine: &mut Machine, group: &str, values: &[(&str, &str, &str)]) -> Result<()> {
    let disk = ok(machine, "cat /sys/block/vda/dev")?;
    let mut wrong = Vec::new();
    for (key, file, value) in values {
        let found = machine.run(&format!("cat /sys/fs/cgroup{group}/{file}"))?.text;
        let value = value.replace("DISK", &disk);
        if found != value {
            wrong.push(format!("{key}: {file} has {found:?} and not {value:?}"));
        }
    }
    expect(wrong.is_empty(), || wrong.join("\n"))
}

/// The slice has its bounds before a process of it is there, and takes others up while its units run.
fn slice(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    ok(machine, "agentctl start in-bounded.service")?;
    expect_eq(
        "cgroup",
        &group_of(machine, "in-bounded.service")?.as_str(),
        &"/bounded.slice/in-bounded.service",
    )?;
    // OOMPolicy, the last one, is a service's alone.
    all_stand(machine, "/bounded.slice", &EVERY[..EVERY.len() - 1])?;
    let status = ok(machine, "agentctl status bounded.slice")?;
    expect(!status.contains("not enforced"), || format!("not all is enforced:\n{status}"))?;
    let read =
        |machine: &mut Machine, file: &str| ok(machine, &format!("cat /sys/fs/cgroup/bounded.slice/{file}"));
    expect_eq("cpu.idle", &read(machine, "in-bounded.service/cpu.idle")?.as_str(), &"1")?;
    // What a slice has for those below it that say nothing themselves; what runs takes up another one.
    expect_eq("memory.min", &read(machine, "in-bounded.service/memory.min")?.as_str(), &"262144")?;
    expect_eq("memory.low", &read(machine, "in-bounded.service/memory.low")?.as_str(), &"524288")?;
    ok(machine, "agentctl set-property --runtime bounded.slice DefaultMemoryLow=1M")?;
    expect_eq("memory.low", &read(machine, "in-bounded.service/memory.low")?.as_str(), &"1048576")?;
    ok(machine, "agentctl set-property --runtime in-bounded.service CPUWeight=70")?;
    expect_eq("cpu.idle", &read(machine, "in-bounded.service/cpu.idle")?.as_str(), &"0")?;
    expect_eq("cpu.weight", &read(machine, "in-bounded.service/cpu.weight")?.as_str(), &"70")?;
    ok(machine, "agentctl set-property --runtime bounded.slice MemoryMax=60M CPUWeight=idle")?;
    expect_eq("memory.max", &read(machine, "memory.max")?.as_str(), &"62914560")?;
    expect_eq("cpu.idle", &read(machine, "cpu.idle")?.as_str(), &"1")?;
    ok(machine, "agentctl set-property --runtime bounded.slice MemoryMax= CPUWeight=")?;
    all_stand(machine, "/bounded.slice", &EVERY[..EVERY.len() - 1])?;
    ok(machine, "agentctl stop in-bounded.service").map(|_| ())
}

fn hog(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    let mark = machine.console().mark();
    then_console(machine, |m| ok(m, "agentctl start hog.service").map(|_| ()), "HOG is back")?;
    let since = machine.console().text().split_off(mark);
    expect(since.contains("oom-kill"), || format!("nothing says oom-kill:\n{since}"))?;
    let properties = show(machine, "hog.service")?;
    expect_eq("NRestarts", &properties["NRestarts"].as_u64(), &Some(1))?;
    expect_eq("ActiveState", &properties["ActiveState"].as_str(), &Some("active"))?;
    ok(machine, "agentctl stop hog.service").map(|_| ())
}

/// Orphans are adopted and reaped while the unit runs, and gone when it has stopped, those in sessions of their own too.
fn orphans(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    then_console(machine, |m| ok(m, "agentctl start orphans.service").map(|_| ()), "ORPHANS are out")?;
    let group = group_of(machine, "orphans.service")?;
    let alive = ok(machine, "pgrep -fc '[s]leep 654321'")?;
    expect_eq("sleepers", &alive.as_str(), &"3")?;
    ok(machine, "agentctl stop orphans.service")?;
    let left = machine.run("pgrep -fa '[s]leep 654321'")?;
    expect_eq("left after stop", &left.text.as_str(), &"")?;
    let zombies = machine.run("grep -l '^State:.Z' /proc/[0-9]*/status")?;
    expect_eq("zombies", &zombies.text.as_str(), &"")?;
    let folder = machine.run(&format!("cat /sys/fs/cgroup{group}/cgroup.procs 2>/dev/null"))?;
    expect_eq("processes in its cgroup", &folder.text.as_str(), &"")
}

/// The cgroup of a unit that runs.
fn group_of(machine: &mut Machine, unit: &str) -> Result<String> {
    let properties = show(machine, unit)?;
    match properties["ControlGroup"].as_str() {
        Some(group) if !group.is_empty() => Ok(group.to_owned()),
        _ => Err(Error::new(format!("{unit} has no ControlGroup: {properties}"))),
    }
}
