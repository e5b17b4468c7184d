//! The checks: which keys, how much each weighs, and what it means. Names, weights and ranges are those of
//! `systemd-analyze security` of systemd 252, against which the tests hold them.

use agentd_unit::sections::PrivateUsers;

use super::facts::Judge;

/// One check.
#[derive(Debug)]
pub(super) struct Check {
    /// As systemd-analyze's JSON calls it.
    pub(super) id: &'static str,
    /// The key, with the part of it that is looked at.
    pub(super) name: &'static str,
    /// How much of the whole it is.
    pub(super) weight: u64,
    /// The worst badness.
    pub(super) range: u64,
    /// How its badness is found.
    pub(super) judge: Judge,
    /// What it means that it is shut.
    pub(super) good: &'static str,
    /// What it means that it is open, if only by a gap.
    pub(super) bad: &'static str,
}

const fn check(
    (id, name): (&'static str, &'static str),
    (weight, range): (u64, u64),
    judge: Judge,
    [good, bad]: [&'static str; 2],
) -> Check {
    Check { id, name, weight, range, judge, good, bad }
}

/// All of them, the heaviest first among their kind.
pub(super) const CHECKS: &[Check] = &[
    check(
        ("UserOrDynamicUser", "User=/DynamicUser="),
        (2000, 10),
        Judge::Rule(|f| Some(f.user())),
        ["It runs as a user other than root", "It runs as root, or as a user that many share"],
    ),
    check(
        ("SupplementaryGroups", "SupplementaryGroups="),
        (200, 1),
        Judge::Rule(|f| (!f.root).then(|| u64::from(!f.service.execution.supplementary_groups.is_empty()))),
        ["It is in no further groups", "It is in further groups"],
    ),
    check(
        ("PrivateMounts", "PrivateMounts="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.has_own_mounts()))),
        ["What it mounts stays with it", "What it mounts is mounted for all"],
    ),
    check(
        ("PrivateDevices", "PrivateDevices="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().private_devices))),
        ["It has pseudo devices alone", "It may reach the machine's devices"],
    ),
    check(
        ("PrivateNetwork", "PrivateNetwork="),
        (2500, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().private_network))),
        ["It has a network of its own", "It is on the host's network"],
    ),
    check(
        ("PrivateTmp", "PrivateTmp="),
        (1000, 1),
        Judge::Late(|f| Some(u64::from(!f.sandbox().private_tmp))),
        ["Its temporary files are its own", "It shares /tmp with others"],
    ),
    check(
        ("ProtectControlGroups", "ProtectControlGroups="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().protect_control_groups))),
        ["It cannot write to the control groups", "It may write to the control groups"],
    ),
    check(
        ("ProtectKernelModules", "ProtectKernelModules="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().protect_kernel_modules))),
        ["It cannot load kernel modules", "It may load kernel modules"],
    ),
    check(
        ("ProtectKernelTunables", "ProtectKernelTunables="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().protect_kernel_tunables))),
        ["It cannot change what /proc/sys and /sys tune", "It may change what /proc/sys and /sys tune"],
    ),
    check(
        ("ProtectKernelLogs", "ProtectKernelLogs="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().protect_kernel_logs))),
        ["The kernel's log is out of its reach", "It may read and write the kernel's log"],
    ),
    check(
        ("ProtectClock", "ProtectClock="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().protect_clock))),
        ["It cannot set the clocks", "It may set the clocks"],
    ),
    check(
        ("ProtectHostname", "ProtectHostname="),
        (50, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().protect_hostname))),
        ["It cannot change the host's name", "It may change the host's name"],
    ),
    check(
        ("RestrictSUIDSGID", "RestrictSUIDSGID="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().restrict_suid_sgid))),
        ["It cannot make set-user-id files", "It may make set-user-id files"],
    ),
    check(
        ("LockPersonality", "LockPersonality="),
        (100, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().lock_personality))),
        ["Its execution domain stays as it is", "It may change its execution domain"],
    ),
    check(
        ("MemoryDenyWriteExecute", "MemoryDenyWriteExecute="),
        (100, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().deny_write_execute))),
        ["It cannot execute what it has written to memory", "It may execute what it has written to memory"],
    ),
    check(
        ("RestrictRealtime", "RestrictRealtime="),
        (500, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().restrict_realtime))),
        ["It cannot ask for real-time scheduling", "It may take the processor by real-time scheduling"],
    ),
    check(
        ("ProtectHome", "ProtectHome="),
        (1000, 10),
        Judge::Late(|f| Some(f.home())),
        ["The homes are out of its reach", "It sees something of the homes"],
    ),
    check(
        ("ProtectSystem", "ProtectSystem="),
        (1000, 10),
        Judge::Late(|f| Some(f.system())),
        ["It can write to its own folders alone", "It may write to parts of the system"],
    ),
    check(
        ("ProtectProc", "ProtectProc="),
        (1000, 3),
        Judge::Rule(|f| Some(f.processes())),
        ["It sees its own user's processes alone", "It sees the processes of others"],
    ),
    check(
        ("ProcSubset", "ProcSubset="),
        (10, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().proc_of_processes))),
        ["/proc has processes alone", "/proc has more than processes"],
    ),
    check(
        ("RootDirectoryOrRootImage", "RootDirectory=/RootImage="),
        (200, 1),
        Judge::Late(|f| Some(u64::from(f.service.execution.root_directory.is_none()))),
        ["It has a root folder of its own", "It runs in the host's root folder"],
    ),
    check(
        ("NoNewPrivileges", "NoNewPrivileges="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.service.no_new_privileges))),
        ["No program gives it privileges", "Set-user-id programs give it privileges"],
    ),
    check(
        ("AmbientCapabilities", "AmbientCapabilities="),
        (500, 1),
        Judge::Rule(|f| Some(u64::from(f.service.ambient_capabilities != 0))),
        ["It keeps no capability over an exec", "It keeps capabilities over an exec"],
    ),
    check(
        ("UMask", "UMask="),
        (100, 10),
        Judge::Rule(|f| Some(f.umask())),
        ["Its files are for itself alone", "Others may read or write its files"],
    ),
    check(
        ("NotifyAccess", "NotifyAccess="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(f.others_notify()))),
        ["Only its main processes speak for it", "Each of its processes can speak for it"],
    ),
    check(
        ("Delegate", "Delegate="),
        (100, 1),
        Judge::Rule(|f| Some(u64::from(f.service.resources.delegate))),
        ["Its control group is the manager's", "It makes control groups of its own"],
    ),
    check(
        ("SystemCallArchitectures", "SystemCallArchitectures="),
        (1000, 10),
        Judge::Rule(|f| Some(if f.sandbox().native_calls { 0 } else { 10 })),
        ["It makes system calls in one way alone", "It may make system calls in every way of the processor"],
    ),
    check(
        ("KeyringMode", "KeyringMode="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(!f.own_keys()))),
        ["It has a key ring of its own", "It has the manager's key ring, or its user's keys"],
    ),
    check(
        ("PrivateUsers", "PrivateUsers="),
        (1000, 1),
        Judge::Rule(|f| Some(u64::from(f.sandbox().private_users == PrivateUsers::No))),
        ["It sees no other users", "It sees the users of the machine"],
    ),
    check(
        ("RemoveIPC", "RemoveIPC="),
        (100, 1),
        Judge::Rule(|f| (!f.root).then(|| u64::from(!f.sandbox().remove_ipc))),
        ["Nothing of its IPC stays behind", "Its shared memory and queues may stay behind"],
    ),
    check(
        ("DeviceAllow", "DeviceAllow="),
        (1000, 10),
        Judge::Rule(|f| Some(f.devices())),
        ["It may use no devices but pseudo ones", "It may use further devices, or all"],
    ),
    check(
        ("IPAddressDeny", "IPAddressDeny="),
        (1000, 10),
        Judge::Rule(|f| Some(f.addresses())),
        ["It may talk to no address", "It may talk to some addresses, or to all"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_ADMIN", "CapabilityBoundingSet=~CAP_SYS_ADMIN"),
        (1500, 1),
        Judge::Capabilities(&["CAP_SYS_ADMIN"]),
        ["It cannot do what administrators do", "It may do what administrators do"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SET_UID_GID_PCAP", "CapabilityBoundingSet=~CAP_SET(UID|GID|PCAP)"),
        (1500, 1),
        Judge::Capabilities(&["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"]),
        ["It cannot become another user", "It may become another user"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_PTRACE", "CapabilityBoundingSet=~CAP_SYS_PTRACE"),
        (1500, 1),
        Judge::Capabilities(&["CAP_SYS_PTRACE"]),
        ["It cannot trace other programs", "It may trace other programs"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_TIME", "CapabilityBoundingSet=~CAP_SYS_TIME"),
        (1000, 1),
        Judge::Capabilities(&["CAP_SYS_TIME"]),
        ["It has no privilege to set the clocks", "It has the privilege to set the clocks"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_NET_ADMIN", "CapabilityBoundingSet=~CAP_NET_ADMIN"),
        (1000, 1),
        Judge::Capabilities(&["CAP_NET_ADMIN"]),
        ["It cannot set the network up", "It may set the network up"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_RAWIO", "CapabilityBoundingSet=~CAP_SYS_RAWIO"),
        (1000, 1),
        Judge::Capabilities(&["CAP_SYS_RAWIO"]),
        ["It cannot do raw I/O", "It may do raw I/O"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_MODULE", "CapabilityBoundingSet=~CAP_SYS_MODULE"),
        (1000, 1),
        Judge::Capabilities(&["CAP_SYS_MODULE"]),
        ["It has no privilege to load modules", "It has the privilege to load modules"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_AUDIT", "CapabilityBoundingSet=~CAP_AUDIT_*"),
        (500, 1),
        Judge::Capabilities(&["CAP_AUDIT_CONTROL", "CAP_AUDIT_READ", "CAP_AUDIT_WRITE"]),
        ["It cannot use the audit log", "It may use the audit log"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYSLOG", "CapabilityBoundingSet=~CAP_SYSLOG"),
        (500, 1),
        Judge::Capabilities(&["CAP_SYSLOG"]),
        ["It has no privilege to read the kernel's log", "It has the privilege to read the kernel's log"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_NICE_RESOURCE", "CapabilityBoundingSet=~CAP_SYS_(NICE|RESOURCE)"),
        (500, 1),
        Judge::Capabilities(&["CAP_SYS_NICE", "CAP_SYS_RESOURCE"]),
        ["It cannot raise its priority and its limits", "It may raise its priority and its limits"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_MKNOD", "CapabilityBoundingSet=~CAP_MKNOD"),
        (500, 1),
        Judge::Capabilities(&["CAP_MKNOD"]),
        ["It cannot make device nodes", "It may make device nodes"],
    ),
    check(
        (
            "CapabilityBoundingSet_CAP_CHOWN_FSETID_SETFCAP",
            "CapabilityBoundingSet=~CAP_(CHOWN|FSETID|SETFCAP)",
        ),
        (1000, 1),
        Judge::Capabilities(&["CAP_CHOWN", "CAP_FSETID", "CAP_SETFCAP"]),
        ["It cannot give files away", "It may give files away and give them privileges"],
    ),
    check(
        (
            "CapabilityBoundingSet_CAP_DAC_FOWNER_IPC_OWNER",
            "CapabilityBoundingSet=~CAP_(DAC_*|FOWNER|IPC_OWNER)",
        ),
        (1000, 1),
        Judge::Capabilities(&["CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_IPC_OWNER"]),
        ["The permissions of files hold it back", "The permissions of files do not hold it back"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_KILL", "CapabilityBoundingSet=~CAP_KILL"),
        (500, 1),
        Judge::Capabilities(&["CAP_KILL"]),
        ["It cannot signal the processes of others", "It may signal every process"],
    ),
    check(
        (
            "CapabilityBoundingSet_CAP_NET_BIND_SERVICE_BROADCAST_RAW)",
            "CapabilityBoundingSet=~CAP_NET_(BIND_SERVICE|BROADCAST|RAW)",
        ),
        (500, 1),
        Judge::Capabilities(&["CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_RAW"]),
        ["It cannot use low ports and raw sockets", "It may use low ports and raw sockets"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_BOOT", "CapabilityBoundingSet=~CAP_SYS_BOOT"),
        (100, 1),
        Judge::Capabilities(&["CAP_SYS_BOOT"]),
        ["It cannot reboot", "It may reboot"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_MAC", "CapabilityBoundingSet=~CAP_MAC_*"),
        (100, 1),
        Judge::Capabilities(&["CAP_MAC_ADMIN", "CAP_MAC_OVERRIDE"]),
        ["It cannot change the labels of Smack", "It may change the labels of Smack"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_LINUX_IMMUTABLE", "CapabilityBoundingSet=~CAP_LINUX_IMMUTABLE"),
        (75, 1),
        Judge::Capabilities(&["CAP_LINUX_IMMUTABLE"]),
        ["It cannot make files unchangeable", "It may make files that cannot be changed"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_IPC_LOCK", "CapabilityBoundingSet=~CAP_IPC_LOCK"),
        (50, 1),
        Judge::Capabilities(&["CAP_IPC_LOCK"]),
        ["It cannot keep much memory from being swapped", "It may keep much memory from being swapped"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_CHROOT", "CapabilityBoundingSet=~CAP_SYS_CHROOT"),
        (50, 1),
        Judge::Capabilities(&["CAP_SYS_CHROOT"]),
        ["It cannot change its root folder", "It may change its root folder"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_BLOCK_SUSPEND", "CapabilityBoundingSet=~CAP_BLOCK_SUSPEND"),
        (25, 1),
        Judge::Capabilities(&["CAP_BLOCK_SUSPEND"]),
        ["It cannot keep the machine awake", "It may keep the machine awake"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_WAKE_ALARM", "CapabilityBoundingSet=~CAP_WAKE_ALARM"),
        (25, 1),
        Judge::Capabilities(&["CAP_WAKE_ALARM"]),
        ["It cannot wake the machine", "It may wake the machine"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_LEASE", "CapabilityBoundingSet=~CAP_LEASE"),
        (25, 1),
        Judge::Capabilities(&["CAP_LEASE"]),
        ["It cannot hold leases of files", "It may hold leases of files"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_TTY_CONFIG", "CapabilityBoundingSet=~CAP_SYS_TTY_CONFIG"),
        (25, 1),
        Judge::Capabilities(&["CAP_SYS_TTY_CONFIG"]),
        ["It cannot hang terminals up", "It may hang terminals up"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_SYS_PACCT", "CapabilityBoundingSet=~CAP_SYS_PACCT"),
        (25, 1),
        Judge::Capabilities(&["CAP_SYS_PACCT"]),
        ["It cannot switch process accounting", "It may switch process accounting"],
    ),
    check(
        ("CapabilityBoundingSet_CAP_BPF", "CapabilityBoundingSet=~CAP_BPF"),
        (25, 1),
        Judge::Capabilities(&["CAP_BPF"]),
        ["It cannot load BPF programs", "It may load BPF programs"],
    ),
    check(
        ("RestrictNamespaces_user", "RestrictNamespaces=~user"),
        (1500, 1),
        Judge::Namespace("user"),
        ["It cannot make user namespaces", "It may make user namespaces"],
    ),
    check(
        ("RestrictNamespaces_pid", "RestrictNamespaces=~pid"),
        (500, 1),
        Judge::Namespace("pid"),
        ["It cannot make pid namespaces", "It may make pid namespaces"],
    ),
    check(
        ("RestrictNamespaces_net", "RestrictNamespaces=~net"),
        (500, 1),
        Judge::Namespace("net"),
        ["It cannot make net namespaces", "It may make net namespaces"],
    ),
    check(
        ("RestrictNamespaces_uts", "RestrictNamespaces=~uts"),
        (100, 1),
        Judge::Namespace("uts"),
        ["It cannot make uts namespaces", "It may make uts namespaces"],
    ),
    check(
        ("RestrictNamespaces_mnt", "RestrictNamespaces=~mnt"),
        (500, 1),
        Judge::Namespace("mnt"),
        ["It cannot make mnt namespaces", "It may make mnt namespaces"],
    ),
    check(
        ("RestrictNamespaces_cgroup", "RestrictNamespaces=~cgroup"),
        (500, 1),
        Judge::Namespace("cgroup"),
        ["It cannot make cgroup namespaces", "It may make cgroup namespaces"],
    ),
    check(
        ("RestrictNamespaces_ipc", "RestrictNamespaces=~ipc"),
        (500, 1),
        Judge::Namespace("ipc"),
        ["It cannot make ipc namespaces", "It may make ipc namespaces"],
    ),
    check(
        ("RestrictAddressFamilies_AF_INET_INET6", "RestrictAddressFamilies=~AF_(INET|INET6)"),
        (1500, 1),
        Judge::Families(&["AF_INET", "AF_INET6"]),
        ["It cannot have Internet sockets", "It may have Internet sockets"],
    ),
    check(
        ("RestrictAddressFamilies_AF_UNIX", "RestrictAddressFamilies=~AF_UNIX"),
        (25, 1),
        Judge::Families(&["AF_UNIX"]),
        ["It cannot have local sockets", "It may have local sockets"],
    ),
    check(
        ("RestrictAddressFamilies_AF_NETLINK", "RestrictAddressFamilies=~AF_NETLINK"),
        (200, 1),
        Judge::Families(&["AF_NETLINK"]),
        ["It cannot have netlink sockets", "It may have netlink sockets"],
    ),
    check(
        ("RestrictAddressFamilies_AF_PACKET", "RestrictAddressFamilies=~AF_PACKET"),
        (1000, 1),
        Judge::Families(&["AF_PACKET"]),
        ["It cannot have packet sockets", "It may have packet sockets"],
    ),
    check(
        ("RestrictAddressFamilies_OTHER", "RestrictAddressFamilies=~…"),
        (1250, 1),
        Judge::Families(&[]),
        ["It cannot have sockets of rare families", "It may have sockets of rare families"],
    ),
    check(
        ("SystemCallFilter_clock", "SystemCallFilter=~@clock"),
        (1000, 10),
        Judge::Calls("@clock"),
        ["It makes no call of @clock", "It may make calls of @clock"],
    ),
    check(
        ("SystemCallFilter_cpu_emulation", "SystemCallFilter=~@cpu-emulation"),
        (250, 10),
        Judge::Calls("@cpu-emulation"),
        ["It makes no call of @cpu-emulation", "It may make calls of @cpu-emulation"],
    ),
    check(
        ("SystemCallFilter_debug", "SystemCallFilter=~@debug"),
        (1000, 10),
        Judge::Calls("@debug"),
        ["It makes no call of @debug", "It may make calls of @debug"],
    ),
    check(
        ("SystemCallFilter_module", "SystemCallFilter=~@module"),
        (1000, 10),
        Judge::Calls("@module"),
        ["It makes no call of @module", "It may make calls of @module"],
    ),
    check(
        ("SystemCallFilter_mount", "SystemCallFilter=~@mount"),
        (1000, 10),
        Judge::Calls("@mount"),
        ["It makes no call of @mount", "It may make calls of @mount"],
    ),
    check(
        ("SystemCallFilter_obsolete", "SystemCallFilter=~@obsolete"),
        (250, 10),
        Judge::Calls("@obsolete"),
        ["It makes no call of @obsolete", "It may make calls of @obsolete"],
    ),
    check(
        ("SystemCallFilter_privileged", "SystemCallFilter=~@privileged"),
        (700, 10),
        Judge::Calls("@privileged"),
        ["It makes no call of @privileged", "It may make calls of @privileged"],
    ),
    check(
        ("SystemCallFilter_raw_io", "SystemCallFilter=~@raw-io"),
        (1000, 10),
        Judge::Calls("@raw-io"),
        ["It makes no call of @raw-io", "It may make calls of @raw-io"],
    ),
    check(
        ("SystemCallFilter_reboot", "SystemCallFilter=~@reboot"),
        (1000, 10),
        Judge::Calls("@reboot"),
        ["It makes no call of @reboot", "It may make calls of @reboot"],
    ),
    check(
        ("SystemCallFilter_resources", "SystemCallFilter=~@resources"),
        (700, 10),
        Judge::Calls("@resources"),
        ["It makes no call of @resources", "It may make calls of @resources"],
    ),
    check(
        ("SystemCallFilter_swap", "SystemCallFilter=~@swap"),
        (1000, 10),
        Judge::Calls("@swap"),
        ["It makes no call of @swap", "It may make calls of @swap"],
    ),
    // Not one of systemd's: it weighs nothing, so that numbers can be compared.
    check(
        ("Landlock", "Landlock="),
        (0, 1),
        Judge::Rule(|f| Some(u64::from(!f.sandbox().landlock))),
        [
            "The kernel asks Landlock too, and it signals its own processes alone",
            "The kernel does not ask Landlock about it",
        ],
    ),
];
