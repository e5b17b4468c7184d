//! What keeps a service's processes from the rest of the machine, systemd.exec(5) "SANDBOXING".

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{CapabilityMask, ServiceSection};
use crate::exec::ExecKind;
use crate::values::syscalls::Denial;
use crate::words::Words;

/// The walls around a service's processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// `PrivateTmp`: its own `/tmp` and `/var/tmp`, gone when the run ends.
    pub private_tmp: bool,
    /// `PrivateDevices`: a `/dev` with pseudo devices alone, and no capability to make others.
    pub private_devices: bool,
    /// `PrivateIPC`: System V IPC and message queues of its own.
    pub private_ipc: bool,
    /// `PrivateNetwork`: a network of its own, with nothing but a loopback device.
    pub private_network: bool,
    /// `NetworkNamespacePath`: the network of this file, in place of one of its own.
    pub network_path: Option<PathBuf>,
    /// `IPCNamespacePath`: the IPC of this file, in place of one of its own.
    pub ipc_path: Option<PathBuf>,
    /// `PrivateUsers`: whose ids it sees, and that its privileges hold nowhere but within.
    pub private_users: PrivateUsers,
    /// `PrivatePIDs`: it is PID 1 of processes of its own.
    pub private_pids: bool,
    /// `PrivateMounts`: what it mounts is mounted for itself alone.
    pub private_mounts: bool,
    /// `MountFlags`: how mounts travel between it and the machine.
    pub propagation: Option<Propagation>,
    /// `RemoveIPC`: what its user has left of IPC goes with its run.
    pub remove_ipc: bool,
    /// `ProtectSystem`.
    pub protect_system: ProtectSystem,
    /// `ProtectHome`.
    pub protect_home: ProtectHome,
    /// `ProtectProc`.
    pub protect_proc: ProtectProc,
    /// `ProcSubset=pid`: `/proc` shows processes alone.
    pub proc_of_processes: bool,
    /// `ProtectKernelTunables`: `/proc/sys`, `/sys` and the like are read-only.
    pub protect_kernel_tunables: bool,
    /// `ProtectKernelModules`: none is loaded.
    pub protect_kernel_modules: bool,
    /// `ProtectKernelLogs`: the kernel's log is out of reach.
    pub protect_kernel_logs: bool,
    /// `ProtectControlGroups`: `/sys/fs/cgroup` is read-only.
    pub protect_control_groups: bool,
    /// `ProtectClock`: the clocks cannot be set.
    pub protect_clock: bool,
    /// `ProtectHostname`: a host name of its own, which cannot be changed.
    pub protect_hostname: bool,
    /// `ReadWritePaths`: exceptions from what is read-only.
    pub read_write: Vec<SandboxPath>,
    /// `ReadOnlyPaths`.
    pub read_only: Vec<SandboxPath>,
    /// `ExecPaths`: exceptions from `NoExecPaths`.
    pub exec: Vec<SandboxPath>,
    /// `NoExecPaths`: where no program can be run from.
    pub no_exec: Vec<SandboxPath>,
    /// `InaccessiblePaths`.
    pub inaccessible: Vec<SandboxPath>,
    /// `TemporaryFileSystem`.
    pub temporary: Vec<TemporaryFileSystem>,
    /// `BindPaths`, `BindReadOnlyPaths`.
    pub binds: Vec<Bind>,
    /// `RestrictNamespaces`: the kinds that may be made and entered, as flags of clone(2); `None`: all.
    pub namespaces: Option<u32>,
    /// `RestrictSUIDSGID`: no file is given these bits.
    pub restrict_suid_sgid: bool,
    /// `RestrictRealtime`: no real-time scheduling.
    pub restrict_realtime: bool,
    /// `LockPersonality`: the execution domain stays Linux.
    pub lock_personality: bool,
    /// `MemoryDenyWriteExecute`: no memory is both written and executed.
    pub deny_write_execute: bool,
    /// `RestrictAddressFamilies`; `None`: all.
    pub address_families: Option<AddressFamilies>,
    /// `SystemCallFilter`; `None`: all.
    pub system_calls: Option<SystemCalls>,
    /// `SystemCallErrorNumber`: what a denied call gives; default: the process is killed.
    pub system_call_error: Option<Denial>,
    /// `SystemCallLog`: the calls that the kernel's audit log tells of, or all but these; `None`: none.
    pub logged_calls: Option<SystemCalls>,
    /// `SystemCallArchitectures=native`.
    pub native_calls: bool,
    /// `[Agent] Landlock`: the kernel asks about each file, TCP, signals and abstract sockets besides.
    pub landlock: bool,
}

/// `ProtectSystem`: what is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectSystem {
    /// Nothing.
    #[default]
    No,
    /// `/usr` and the boot loader.
    Yes,
    /// `/etc` too.
    Full,
    /// Everything but `/dev`, `/proc`, `/sys` and the homes.
    Strict,
}

impl Words for ProtectSystem {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Yes), ("full", Self::Full), ("strict", Self::Strict)];
}

/// `ProtectHome`: what becomes of `/home`, `/root` and `/run/user`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectHome {
    /// Nothing.
    #[default]
    No,
    /// They cannot be entered.
    Yes,
    /// They are read-only.
    ReadOnly,
    /// They are empty.
    Tmpfs,
}

impl Words for ProtectHome {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Yes), ("read-only", Self::ReadOnly), ("tmpfs", Self::Tmpfs)];
}

/// `ProtectProc`: whose processes `/proc` shows, proc(5) `hidepid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectProc {
    /// All.
    #[default]
    Default,
    /// Of others nothing but the numbers.
    NoAccess,
    /// Those of its user.
    Invisible,
    /// Those that it could trace.
    Ptraceable,
}

impl Words for ProtectProc {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("default", Self::Default),
        ("noaccess", Self::NoAccess),
        ("invisible", Self::Invisible),
        ("ptraceable", Self::Ptraceable),
    ];
}

/// `PrivateUsers`: which ids there are within, user_namespaces(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrivateUsers {
    /// All, and its privileges are the machine's.
    #[default]
    No,
    /// The manager's and its own; all others are seen as nobody's.
    Own,
    /// The first 65536, each as itself.
    Identity,
}

impl Words for PrivateUsers {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Own), ("self", Self::Own), ("identity", Self::Identity)];
}

/// `MountFlags`: mount_namespaces(7) "SHARED SUBTREES".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// It sees what the machine mounts, and namespaces within see what it mounts.
    Shared,
    /// It sees what the machine mounts.
    Slave,
    /// It sees nothing of that.
    Private,
}

impl Words for Propagation {
    const WORDS: &'static [(&'static str, Self)] =
        &[("shared", Self::Shared), ("slave", Self::Slave), ("private", Self::Private)];
}

/// capabilities(7).
const CAP_SYS_MODULE: u32 = 16;
const CAP_SYS_RAWIO: u32 = 17;
const CAP_SYS_TIME: u32 = 25;
const CAP_MKNOD: u32 = 27;
const CAP_SYSLOG: u32 = 34;
const CAP_WAKE_ALARM: u32 = 35;

impl Sandbox {
    /// The capabilities that keys take away besides what they hide.
    #[must_use]
    pub fn takes(&self) -> CapabilityMask {
        [
            (self.private_devices, 1 << CAP_MKNOD | 1 << CAP_SYS_RAWIO),
            (self.protect_kernel_modules, 1 << CAP_SYS_MODULE),
            (self.protect_kernel_logs, 1 << CAP_SYSLOG),
            (self.protect_clock, 1 << CAP_SYS_TIME | 1 << CAP_WAKE_ALARM),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .fold(0, |all, (_, mask): (bool, CapabilityMask)| all | mask)
    }
}

/// A path of a list; `-` in front: it may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPath {
    /// Where.
    pub path: PathBuf,
    /// Whether a missing one is no error.
    pub optional: bool,
}

/// One file system in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemporaryFileSystem {
    /// Where.
    pub path: PathBuf,
    /// `ro`: nothing can be written to it.
    pub read_only: bool,
    /// Options of tmpfs(5).
    pub options: String,
}

/// A file or folder that is seen somewhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// What.
    pub source: PathBuf,
    /// Where.
    pub target: PathBuf,
    /// Whether a missing source is no error.
    pub optional: bool,
    /// With what is mounted below the source.
    pub recursive: bool,
    /// `BindReadOnlyPaths`.
    pub read_only: bool,
}

impl ServiceSection {
    /// Where a path that commands of this kind see is on the machine, as the unit says it: in what is bound there, else below
    /// `RootDirectory`. Without that it is the same path.
    #[must_use]
    pub fn outside(&self, kind: Option<ExecKind>, path: &Path) -> PathBuf {
        let Some(root) = self.root_of(kind) else { return path.to_owned() };
        let above = self.sandbox.binds.iter().rev().filter(|bind| path.starts_with(&bind.target));
        let nearest = above.max_by_key(|bind| bind.target.components().count());
        let (source, target) =
            nearest.map_or((root, Path::new("/")), |bind| (bind.source.as_path(), bind.target.as_path()));
        match path.strip_prefix(target) {
            Ok(below) if !below.as_os_str().is_empty() => source.join(below),
            _ => source.to_owned(),
        }
    }
}

/// The families that sockets may have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressFamilies {
    /// Whether these are the allowed ones; else all but these are.
    pub allow: bool,
    /// Their numbers.
    pub families: BTreeSet<u16>,
}

/// The calls that processes may make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemCalls {
    /// Whether these are the allowed ones; else all but these are.
    pub allow: bool,
    /// Their names, and what a denied one gives where it says so itself.
    pub calls: BTreeMap<&'static str, Option<Denial>>,
}
