//! The walls: namespaces and mounts.

use std::path::Path;

use super::super::slot::{names, put};
use super::super::{Setting, Slot};
use super::list;
use crate::sections::{
    Bind, PrivateUsers, Propagation, ProtectHome, ProtectProc, ProtectSystem, SandboxPath,
    TemporaryFileSystem,
};
use crate::values::{Refused, path};
use crate::words::Words;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "PrivateTmp",
        Slot::Bool(|d| &mut d.service.sandbox.private_tmp),
        "Its own /tmp and /var/tmp, gone with the run; default no.",
    ),
    Setting::new(
        "PrivateDevices",
        Slot::Bool(|d| &mut d.service.sandbox.private_devices),
        "A /dev with null, zero, random and the like alone; default no.",
    ),
    Setting::new(
        "PrivateIPC",
        Slot::Bool(|d| &mut d.service.sandbox.private_ipc),
        "System V IPC and POSIX message queues of its own; default no.",
    ),
    Setting::new(
        "PrivateNetwork",
        Slot::Bool(|d| &mut d.service.sandbox.private_network),
        "A network of its own, with a loopback device alone; default no.",
    ),
    Setting::new(
        "NetworkNamespacePath",
        Slot::Path(|d| &mut d.service.sandbox.network_path),
        "The network of this file, as ip-netns(8) makes them, in place of one of its own.",
    ),
    Setting::new(
        "IPCNamespacePath",
        Slot::Path(|d| &mut d.service.sandbox.ipc_path),
        "The IPC of this file, such as /proc/PID/ns/ipc, in place of one of its own.",
    ),
    Setting::new(
        "PrivateUsers",
        Slot::Choice(names::<PrivateUsers>, |d, word| put(&mut d.service.sandbox.private_users, word)),
        "It sees the manager's user and its own alone (yes, self), or the first 65536 (identity), and its privileges \
         hold nowhere outside; default no.",
    ),
    Setting::new(
        "PrivatePIDs",
        Slot::Bool(|d| &mut d.service.sandbox.private_pids),
        "It is PID 1 of processes of its own, and sees no others; default no.",
    ),
    Setting::new(
        "PrivateMounts",
        Slot::Bool(|d| &mut d.service.sandbox.private_mounts),
        "What it mounts is mounted for itself alone; default no.",
    ),
    Setting::new(
        "MountFlags",
        Slot::Choice(names::<Propagation>, |d, word| {
            let found = Propagation::from_word(word);
            d.service.sandbox.propagation = found.or(d.service.sandbox.propagation);
            found.is_some()
        }),
        "How mounts travel: it sees the machine's (slave), hands them on to namespaces within (shared), or sees none \
         (private); default slave where it has mounts of its own.",
    ),
    Setting::new(
        "RemoveIPC",
        Slot::Bool(|d| &mut d.service.sandbox.remove_ipc),
        "What its user and group, other than root, left of System V and POSIX IPC goes when the last of their units stops; \
         default no.",
    ),
    Setting::new(
        "ProtectSystem",
        Slot::Choice(names::<ProtectSystem>, |d, word| put(&mut d.service.sandbox.protect_system, word)),
        "Read-only: /usr and /boot (yes), /etc too (full), all but /dev, /proc, /sys and homes (strict); default no.",
    ),
    Setting::new(
        "ProtectHome",
        Slot::Choice(names::<ProtectHome>, |d, word| put(&mut d.service.sandbox.protect_home, word)),
        "/home, /root and /run/user are shut (yes), read-only, or empty (tmpfs); default no.",
    ),
    Setting::new(
        "ProtectProc",
        Slot::Choice(names::<ProtectProc>, |d, word| put(&mut d.service.sandbox.protect_proc, word)),
        "Whose processes /proc shows; default all.",
    ),
    Setting::new(
        "ProcSubset",
        Slot::Choice(
            || vec!["all", "pid"],
            |d, word| {
                d.service.sandbox.proc_of_processes = word == "pid";
                matches!(word, "all" | "pid")
            },
        ),
        "What /proc has: all, or processes alone (pid); default all.",
    ),
    Setting::new(
        "ProtectKernelTunables",
        Slot::Bool(|d| &mut d.service.sandbox.protect_kernel_tunables),
        "/proc/sys, /sys and the like are read-only; default no.",
    ),
    Setting::new(
        "ProtectKernelModules",
        Slot::Bool(|d| &mut d.service.sandbox.protect_kernel_modules),
        "It loads no kernel module; default no.",
    ),
    Setting::new(
        "ProtectKernelLogs",
        Slot::Bool(|d| &mut d.service.sandbox.protect_kernel_logs),
        "The kernel's log is out of its reach; default no.",
    ),
    Setting::new(
        "ProtectControlGroups",
        Slot::Bool(|d| &mut d.service.sandbox.protect_control_groups),
        "/sys/fs/cgroup is read-only; default no.",
    ),
    Setting::new(
        "ProtectClock",
        Slot::Bool(|d| &mut d.service.sandbox.protect_clock),
        "It cannot set the clocks; default no.",
    ),
    Setting::new(
        "ProtectHostname",
        Slot::Bool(|d| &mut d.service.sandbox.protect_hostname),
        "It cannot change the host's name; default no.",
    ),
    Setting::new(
        "ReadWritePaths",
        Slot::Own(PATHS, |v, d, cx| {
            list(&mut d.service.sandbox.read_write, v, cx, "a list of paths", sandbox_path)
        }),
        "Exceptions from what other keys make read-only; with - in front one may be missing.",
    ),
    Setting::new(
        "ReadOnlyPaths",
        Slot::Own(PATHS, |v, d, cx| {
            list(&mut d.service.sandbox.read_only, v, cx, "a list of paths", sandbox_path)
        }),
        "Read-only, with all that is mounted below; with - in front one may be missing.",
    ),
    Setting::new(
        "NoExecPaths",
        Slot::Own(PATHS, |v, d, cx| {
            list(&mut d.service.sandbox.no_exec, v, cx, "a list of paths", sandbox_path)
        }),
        "No program can be run from there, nor from what is mounted below; with - in front one may be missing.",
    ),
    Setting::new(
        "ExecPaths",
        Slot::Own(PATHS, |v, d, cx| {
            list(&mut d.service.sandbox.exec, v, cx, "a list of paths", sandbox_path)
        }),
        "Exceptions from NoExecPaths; with - in front one may be missing.",
    ),
    Setting::new(
        "InaccessiblePaths",
        Slot::Own(PATHS, |v, d, cx| {
            list(&mut d.service.sandbox.inaccessible, v, cx, "a list of paths", sandbox_path)
        }),
        "Covered by something that cannot be entered or read; with - in front one may be missing.",
    ),
    Setting::new(
        "TemporaryFileSystem",
        Slot::Own("list of path:options", |v, d, cx| {
            list(&mut d.service.sandbox.temporary, v, cx, "a list of paths", temporary)
        }),
        "Empty file systems in memory, with options such as ro or size=10M behind a colon.",
    ),
    Setting::new(
        "BindPaths",
        Slot::Own(BINDS, |v, d, cx| {
            list(&mut d.service.sandbox.binds, v, cx, "a list of paths", |text| bind(text, false))
        }),
        "Files and folders that are seen somewhere else; norbind leaves out what is mounted below.",
    ),
    Setting::new(
        "BindReadOnlyPaths",
        Slot::Own(BINDS, |v, d, cx| {
            list(&mut d.service.sandbox.binds, v, cx, "a list of paths", |text| bind(text, true))
        }),
        "As BindPaths, and read-only there.",
    ),
];

const PATHS: &str = "list of absolute paths";
const BINDS: &str = "list of source:target:rbind";

/// `-` may be missing; `+` is below `RootDirectory`, as all are here.
fn sandbox_path(text: &str) -> Result<SandboxPath, Refused> {
    let (optional, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    Ok(SandboxPath { path: path::absolute(text.strip_prefix('+').unwrap_or(text))?, optional })
}

fn temporary(text: &str) -> Result<TemporaryFileSystem, Refused> {
    let (target, options) = text.split_once(':').unwrap_or((text, ""));
    let words = || options.split(',').filter(|word| !word.is_empty());
    const HELP: &str = "the options are ro, rw, mode=, size=, nr_inodes=, uid= and gid=";
    let known = ["mode=", "size=", "nr_inodes=", "uid=", "gid="];
    if let Some(unknown) =
        words().find(|word| !matches!(*word, "ro" | "rw") && !known.iter().any(|k| word.starts_with(k)))
    {
        return Err(Refused::of(unknown, "is no option of a temporary file system", HELP));
    }
    let path = path::absolute(target)?;
    if path == Path::new("/") {
        const ROOT: &str = "bind what it needs into an empty folder and make that its RootDirectory";
        return Err(Refused::of(text, "covers /, which no mount can hide from its processes", ROOT));
    }
    let own: Vec<&str> = words().filter(|word| !matches!(*word, "ro" | "rw")).collect();
    let read_only = words().any(|word| word == "ro");
    Ok(TemporaryFileSystem { path, read_only, options: own.join(",") })
}

fn bind(text: &str, read_only: bool) -> Result<Bind, Refused> {
    let (optional, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let mut parts = text.split(':');
    let source = path::absolute(parts.next().unwrap_or_default())?;
    let target = parts.next().filter(|part| !part.is_empty()).map(path::absolute).transpose()?;
    let recursive = match parts.next() {
        None | Some("rbind") => true,
        Some("norbind") => false,
        Some(other) => return Err(Refused::of(other, "is no way to bind", "write rbind or norbind")),
    };
    if parts.next().is_some() {
        return Err(Refused::of(text, "has too many parts", "write source:target:rbind"));
    }
    Ok(Bind { target: target.unwrap_or_else(|| source.clone()), source, optional, recursive, read_only })
}
