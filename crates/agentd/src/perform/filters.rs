//! From the keys that restrict system calls to filters for the kernel.

use agentd_linux::seccomp::{Action, Condition, Program, Rule, number};
use agentd_unit::sections::{AddressFamilies, Sandbox, SystemCalls};
use agentd_unit::values::syscalls::{ALL_NAMESPACES, Denial, group};

const EPERM: Action = Action::Errno(1);
const ENOSYS: Action = Action::Errno(38);
const EAFNOSUPPORT: Action = Action::Errno(97);

/// The set-user-id and set-group-id bits of a mode, inode(7).
const SET_ID_BITS: [u64; 2] = [0o4000, 0o2000];
/// `O_CREAT` and the bit that tells `O_TMPFILE` from `O_DIRECTORY`, openat(2).
const CREATING: [u64; 2] = [0o100, 0o20_000_000];
/// `PROT_WRITE`, `PROT_EXEC`, mprotect(2); `SHM_EXEC`, shmat(2).
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const SHM_EXEC: u64 = 0o100_000;
/// `SCHED_OTHER`, `SCHED_BATCH`, `SCHED_IDLE`; and `SCHED_RESET_ON_FORK`, sched_setscheduler(2).
const ORDINARY_POLICIES: [u64; 3] = [0, 3, 5];
const RESET_ON_FORK: u64 = 0x4000_0000;
/// What asks personality(2) for the present one.
const ASK_PERSONALITY: u32 = u32::MAX;

/// The filters of a unit, each with its key. None: one is longer than the kernel takes.
#[must_use]
pub fn filters(sandbox: &Sandbox) -> Option<Vec<(&'static str, Program)>> {
    let mut filters = Vec::new();
    if let Some(calls) = &sandbox.logged_calls {
        let (default, rules) = logged(calls);
        filters.push(("SystemCallLog", Program::compile_open(default, &rules)?));
    }
    let mut add = |key, default, rules: &[Rule]| {
        filters.push((key, Program::compile(default, rules)?));
        Some(())
    };
    let rest = Action::Allow;
    if sandbox.native_calls {
        add("SystemCallArchitectures", rest, &[])?;
    }
    if let Some(families) = &sandbox.address_families {
        add("RestrictAddressFamilies", rest, &address_families(families))?;
    }
    if let Some(allowed) = sandbox.namespaces {
        add("RestrictNamespaces", rest, &namespaces(ALL_NAMESPACES & !allowed))?;
    }
    for (key, wanted, rules) in [
        ("MemoryDenyWriteExecute", sandbox.deny_write_execute, write_execute as fn() -> Vec<Rule>),
        ("RestrictRealtime", sandbox.restrict_realtime, realtime),
        ("RestrictSUIDSGID", sandbox.restrict_suid_sgid, set_id),
        ("LockPersonality", sandbox.lock_personality, personality),
        ("ProtectHostname", sandbox.protect_hostname, || deny(["sethostname", "setdomainname"])),
        ("ProtectKernelModules", sandbox.protect_kernel_modules, || deny_group("@module")),
        ("ProtectKernelLogs", sandbox.protect_kernel_logs, || deny(["syslog"])),
        ("ProtectKernelTunables", sandbox.protect_kernel_tunables, || deny(["_sysctl"])),
        ("ProtectClock", sandbox.protect_clock, || deny_group("@clock")),
        ("PrivateDevices", sandbox.private_devices, || deny_group("@raw-io")),
    ] {
        if wanted {
            add(key, rest, &rules())?;
        }
    }
    if let Some(calls) = &sandbox.system_calls {
        let denied = sandbox.system_call_error.map_or(Action::Kill, action);
        let (default, rules) = system_calls(calls, denied);
        add("SystemCallFilter", default, &rules)?;
    }
    Some(filters)
}

fn action(denial: Denial) -> Action {
    match denial {
        Denial::Kill => Action::Kill,
        Denial::Errno(errno) => Action::Errno(errno),
    }
}

/// A rule, if this architecture has the call.
fn rule(call: &str, when: &[Condition], action: Action) -> Option<Rule> {
    Some(Rule { call: number(call)?, when: when.to_vec(), action })
}

fn deny<'c>(calls: impl IntoIterator<Item = &'c str>) -> Vec<Rule> {
    calls.into_iter().filter_map(|call| rule(call, &[], EPERM)).collect()
}

fn deny_group(name: &str) -> Vec<Rule> {
    deny(group(name).unwrap_or_default())
}

/// An allowed call that says what it gives when it is denied is denied, as in systemd.
fn system_calls(calls: &SystemCalls, denied: Action) -> (Action, Vec<Rule>) {
    let default = if calls.allow { denied } else { Action::Allow };
    let one = |(call, denial): (&&'static str, &Option<Denial>)| {
        let listed = if calls.allow { Action::Allow } else { denied };
        rule(call, &[], denial.map_or(listed, action))
    };
    (default, calls.calls.iter().filter_map(one).collect())
}

/// A list that allows names the calls that are told of; one that does not, those that are not.
fn logged(calls: &SystemCalls) -> (Action, Vec<Rule>) {
    let (default, listed) =
        if calls.allow { (Action::Allow, Action::Log) } else { (Action::Log, Action::Allow) };
    (default, calls.calls.keys().filter_map(|call| rule(call, &[], listed)).collect())
}

fn address_families(families: &AddressFamilies) -> Vec<Rule> {
    let listed = if families.allow { Action::Allow } else { EAFNOSUPPORT };
    let each = families.families.iter().map(|family| Condition::is(0, u32::from(*family)));
    let mut rules: Vec<Rule> = each.filter_map(|is| rule("socket", &[is], listed)).collect();
    if families.allow {
        rules.extend(rule("socket", &[], EAFNOSUPPORT));
    }
    rules
}

/// clone3 hides its flags behind a pointer; a C library that is told it is not there uses clone.
fn namespaces(denied: u32) -> Vec<Rule> {
    let mut rules = Vec::new();
    for bit in (0..32).map(|n| 1_u32 << n).filter(|bit| denied & bit != 0) {
        let bit = u64::from(bit);
        rules.extend(rule("clone", &[Condition::has(0, bit)], EPERM));
        rules.extend(rule("unshare", &[Condition::has(0, bit)], EPERM));
        rules.extend(rule("setns", &[Condition::has(1, bit)], EPERM));
    }
    if denied != 0 {
        // Zero means whatever kind the descriptor is of.
        rules.extend(rule("setns", &[Condition::is(1, 0)], EPERM));
        rules.extend(rule("clone3", &[], ENOSYS));
    }
    rules
}

fn write_execute() -> Vec<Rule> {
    let both = Condition::has(2, PROT_WRITE | PROT_EXEC);
    let execute = Condition::has(2, PROT_EXEC);
    let rules = [
        rule("mmap", &[both], EPERM),
        rule("mprotect", &[execute], EPERM),
        rule("pkey_mprotect", &[execute], EPERM),
        rule("shmat", &[Condition::has(2, SHM_EXEC)], EPERM),
    ];
    rules.into_iter().flatten().collect()
}

/// sched_setattr hides its policy behind a pointer, so it is refused as a whole.
fn realtime() -> Vec<Rule> {
    let policy = |value| Condition { argument: 1, mask: u64::from(u32::MAX) & !RESET_ON_FORK, value };
    let ordinary = ORDINARY_POLICIES.into_iter();
    let mut rules: Vec<Rule> =
        ordinary.filter_map(|p| rule("sched_setscheduler", &[policy(p)], Action::Allow)).collect();
    rules.extend(deny(["sched_setscheduler", "sched_setattr"]));
    rules
}

/// openat2 hides its mode behind a pointer; a C library that is told it is not there uses openat.
fn set_id() -> Vec<Rule> {
    let mut rules = Vec::new();
    for bit in SET_ID_BITS {
        for (call, mode) in [
            ("chmod", 1),
            ("fchmod", 1),
            ("fchmodat", 2),
            ("fchmodat2", 2),
            ("mkdir", 1),
            ("mkdirat", 2),
            ("mknod", 1),
            ("mknodat", 2),
            ("creat", 1),
        ] {
            rules.extend(rule(call, &[Condition::has(mode, bit)], EPERM));
        }
        for (call, flags) in [("open", 1), ("openat", 2)] {
            for creating in CREATING {
                let when = [Condition::has(flags, creating), Condition::has(flags + 1, bit)];
                rules.extend(rule(call, &when, EPERM));
            }
        }
    }
    rules.extend(rule("openat2", &[], ENOSYS));
    rules
}

fn personality() -> Vec<Rule> {
    let allowed = [0, ASK_PERSONALITY].map(|value| Condition::is(0, value));
    let mut rules: Vec<Rule> =
        allowed.into_iter().filter_map(|is| rule("personality", &[is], Action::Allow)).collect();
    rules.extend(deny(["personality"]));
    rules
}
