//! The keys that systemd has (252, and those of later versions), with the reason for each that agentd does not: such a
//! key is never "unknown".

use super::Section;

/// Why a key of systemd's has no effect here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason(&'static str);

impl Reason {
    /// The reason, as the end of a sentence.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        self.0
    }
}

const NOT_YET: Reason = Reason("this version of agentd does not apply it");
const V1: Reason = Reason("it belongs to cgroup v1, and agentd uses v2 alone");
const COUNTED: Reason = Reason("agentd always accounts for what a unit uses");
const NO_IMAGES: Reason =
    Reason("agentd runs programs from the machine's own file systems, not from disk images");
const NO_LABELS: Reason = Reason("agentd sets no labels of SELinux, AppArmor or Smack");
const NO_LOGINS: Reason = Reason("agentd opens no log-in sessions");
const NO_TERMINALS: Reason = Reason("agentd hands no terminals to services");
const NO_TPM: Reason = Reason("agentd reads no encrypted credentials");
const NO_BPF: Reason = Reason("agentd loads no programs into the kernel but for devices and addresses");
const NO_OOMD: Reason = Reason("it is for systemd-oomd, which agentd does not use");
const NO_PHASES: Reason = Reason("agentd has the same limits at boot and later");
const NO_DBUS: Reason = Reason("agentd speaks no D-Bus");
const NO_USB: Reason = Reason("agentd serves no USB gadgets");
const NO_SUCH_SOCKET: Reason = Reason("agents have no use for such sockets");
const GONE: Reason = Reason("systemd itself does nothing with it any more");
const PLUS: Reason = Reason("write + before each command that is to run with full privileges");

/// `[Unit]`, systemd.unit(5).
const UNIT: &str = "\
    Description Documentation SourcePath Requires Requisite Wants BindsTo Upholds Conflicts Before After \
    OnSuccess OnFailure PropagatesReloadTo ReloadPropagatedFrom PropagatesStopTo StopPropagatedFrom PartOf \
    JoinsNamespaceOf RequiresMountsFor StopWhenUnneeded RefuseManualStart RefuseManualStop AllowIsolate \
    DefaultDependencies OnSuccessJobMode OnFailureJobMode IgnoreOnIsolate JobTimeoutSec JobRunningTimeoutSec \
    JobTimeoutAction JobTimeoutRebootArgument StartLimitIntervalSec StartLimitBurst StartLimitAction \
    FailureAction SuccessAction FailureActionExitStatus SuccessActionExitStatus RebootArgument CollectMode \
    SurviveFinalKillSignal WantsMountsFor";

/// What stands behind `Condition` and `Assert`.
const CONDITIONS: &str = "\
    ACPower Architecture CPUFeature CPUPressure CPUs Capability ControlGroupController Credential \
    DirectoryNotEmpty Environment FileIsExecutable FileNotEmpty Firmware FirstBoot Group Host IOPressure \
    KernelCommandLine KernelModuleLoaded KernelVersion Memory MemoryPressure NeedsUpdate OSRelease \
    PathExists PathExistsGlob PathIsDirectory PathIsEncrypted PathIsMountPoint PathIsReadWrite \
    PathIsSymbolicLink Security User Version Virtualization";

/// `[Install]`, systemd.unit(5).
const INSTALL: &str = "\
    Alias WantedBy RequiredBy Also DefaultInstance UpheldBy";

/// `[Timer]`, systemd.timer(5).
const TIMER: &str = "\
    OnCalendar OnActiveSec OnBootSec OnStartupSec OnUnitActiveSec OnUnitInactiveSec OnClockChange \
    OnTimezoneChange Persistent WakeSystem RemainAfterElapse FixedRandomDelay AccuracySec RandomizedDelaySec \
    Unit DeferReactivation RandomizedOffsetSec";

/// `[Path]`, systemd.path(5).
const PATH: &str = "\
    PathExists PathExistsGlob PathChanged PathModified DirectoryNotEmpty Unit MakeDirectory DirectoryMode \
    TriggerLimitIntervalSec TriggerLimitBurst";

/// `[Socket]`, systemd.socket(5).
const SOCKET: &str = "\
    ListenNetlink ListenSpecial ListenMessageQueue ListenStream ListenDatagram ListenSequentialPacket ListenFIFO SocketProtocol BindIPv6Only Backlog \
    BindToDevice ExecStartPre ExecStartPost ExecStopPre ExecStopPost TimeoutSec SocketUser SocketGroup \
    SocketMode DirectoryMode Accept FlushPending Writable MaxConnections MaxConnectionsPerSource KeepAlive \
    KeepAliveTimeSec KeepAliveIntervalSec KeepAliveProbes DeferAcceptSec NoDelay Priority ReceiveBuffer \
    SendBuffer IPTOS IPTTL Mark PipeSize FreeBind Transparent Broadcast PassCredentials PassPacketInfo \
    Timestamping MessageQueueMaxMessages MessageQueueMessageSize TCPCongestion ReusePort RemoveOnStop Symlinks FileDescriptorName Service \
    TriggerLimitIntervalSec TriggerLimitBurst PollLimitIntervalSec PollLimitBurst PassFileDescriptorsToExec \
    AcceptFileDescriptors PassPIDFD DeferTrigger DeferTriggerMaxSec";

/// Sockets that agents have no use for.
const SOCKET_ODD: &str = "\
    ListenUSBFunction SmackLabel SmackLabelIPIn SmackLabelIPOut SELinuxContextFromNet PassSecurity";

/// `[Service]`, systemd.service(5).
const SERVICE: &str = "\
    PIDFile ExecCondition ExecStartPre ExecStart ExecStartPost ExecReload ExecStop ExecStopPost RestartSec \
    TimeoutSec TimeoutStartSec TimeoutStopSec TimeoutAbortSec TimeoutStartFailureMode TimeoutStopFailureMode \
    RuntimeMaxSec RuntimeRandomizedExtraSec WatchdogSec Type ExitType Restart RootDirectoryStartOnly \
    RemainAfterExit GuessMainPID RestartPreventExitStatus RestartForceExitStatus SuccessExitStatus \
    NonBlocking FileDescriptorStoreMax NotifyAccess Sockets OOMPolicy ReloadSignal RestartSteps \
    RestartMaxDelaySec RestartMode OpenFile FileDescriptorStorePreserve LiveMount RefreshOnReload";

/// systemd.kill(5).
const KILL: &str = "\
    SendSIGKILL SendSIGHUP KillMode KillSignal RestartKillSignal FinalKillSignal WatchdogSignal";

/// systemd.exec(5).
const EXEC: &str = "\
    WorkingDirectory RootDirectory User Group SupplementaryGroups Nice OOMScoreAdjust CoredumpFilter \
    IOSchedulingClass IOSchedulingPriority CPUSchedulingPolicy CPUSchedulingPriority \
    CPUSchedulingResetOnFork CPUAffinity NUMAPolicy NUMAMask UMask Environment EnvironmentFile \
    PassEnvironment UnsetEnvironment DynamicUser RemoveIPC StandardInput StandardOutput StandardError \
    StandardInputText StandardInputData SyslogIdentifier SyslogFacility SyslogLevel SyslogLevelPrefix \
    LogLevelMax LogRateLimitIntervalSec LogRateLimitBurst LogExtraFields SecureBits CapabilityBoundingSet \
    AmbientCapabilities TimerSlackNSec NoNewPrivileges KeyringMode ProtectProc ProcSubset SystemCallFilter \
    SystemCallArchitectures SystemCallErrorNumber SystemCallLog MemoryDenyWriteExecute RestrictNamespaces \
    RestrictRealtime RestrictSUIDSGID RestrictAddressFamilies LockPersonality RestrictFileSystems LimitCPU \
    LimitFSIZE LimitDATA LimitSTACK LimitCORE LimitRSS LimitNOFILE LimitAS LimitNPROC LimitMEMLOCK \
    LimitLOCKS LimitSIGPENDING LimitMSGQUEUE LimitNICE LimitRTPRIO LimitRTTIME ReadWritePaths ReadOnlyPaths \
    InaccessiblePaths ExecPaths NoExecPaths ExecSearchPath BindPaths BindReadOnlyPaths TemporaryFileSystem \
    PrivateTmp PrivateDevices ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectClock \
    ProtectControlGroups NetworkNamespacePath IPCNamespacePath LogNamespace PrivateNetwork PrivateUsers \
    PrivateMounts PrivateIPC ProtectSystem ProtectHome MountFlags MountAPIVFS Personality \
    RuntimeDirectoryPreserve RuntimeDirectoryMode RuntimeDirectory StateDirectoryMode StateDirectory \
    CacheDirectoryMode CacheDirectory LogsDirectoryMode LogsDirectory ConfigurationDirectoryMode \
    ConfigurationDirectory SetCredential LoadCredential TimeoutCleanSec IgnoreSIGPIPE ProtectHostname \
    ImportCredential PrivatePIDs MemoryKSM StateDirectoryQuota CacheDirectoryQuota LogsDirectoryQuota \
    LogFilterPatterns BindLogSockets StateDirectoryAccounting PrivateBPF UserNamespacePath \
    DelegateNamespaces";

/// systemd.exec(5): file systems in disk images.
const IMAGES: &str = "\
    RootImage RootImageOptions RootHash RootHashSignature RootVerity ExtensionDirectories ExtensionImages \
    MountImages RootEphemeral RootImagePolicy MountImagePolicy ExtensionImagePolicy";

/// systemd.exec(5): labels of security modules.
const LABELS: &str = "\
    SELinuxContext AppArmorProfile SmackProcessLabel";

/// systemd.exec(5): log-in sessions.
const LOGINS: &str = "\
    PAMName UtmpIdentifier UtmpMode SetLoginEnvironment";

/// systemd.exec(5): terminals.
const TERMINALS: &str = "TTYPath TTYReset TTYVHangup TTYVTDisallocate TTYRows TTYColumns";

/// systemd.resource-control(5).
const CGROUP: &str = "\
    Slice AllowedCPUs AllowedMemoryNodes CPUWeight CPUQuota CPUQuotaPeriodSec MemoryMin DefaultMemoryMin \
    DefaultMemoryLow MemoryLow MemoryHigh MemoryMax MemorySwapMax IOWeight IODeviceWeight IOReadBandwidthMax \
    IOWriteBandwidthMax IOReadIOPSMax IOWriteIOPSMax IODeviceLatencyTargetSec TasksMax Delegate \
    DisableControllers MemoryZSwapMax MemoryZSwapWriteback DelegateSubgroup CoredumpReceive \
    MemoryPressureWatch MemoryPressureThresholdSec";

/// systemd.resource-control(5): cgroup v1.
const CGROUP_V1: &str = "\
    CPUShares StartupCPUShares MemoryLimit BlockIOAccounting BlockIOWeight StartupBlockIOWeight \
    BlockIODeviceWeight BlockIOReadBandwidth BlockIOWriteBandwidth";

/// systemd.resource-control(5): accounting, which cgroup v2 always has.
const ACCOUNTING: &str = "\
    CPUAccounting MemoryAccounting IOAccounting TasksAccounting";

/// systemd.resource-control(5): what systemd does with programs in the kernel.
const BPF: &str = "\
    IPIngressFilterPath IPEgressFilterPath BPFProgram NFTSet SocketBindAllow SocketBindDeny \
    RestrictNetworkInterfaces IPAddressAllow IPAddressDeny IPAccounting DeviceAllow DevicePolicy";

/// systemd.resource-control(5): systemd-oomd.
const OOMD: &str = "\
    ManagedOOMSwap ManagedOOMMemoryPressure ManagedOOMMemoryPressureLimit ManagedOOMPreference \
    ManagedOOMMemoryPressureDurationSec";

/// systemd.resource-control(5): other limits while the machine starts.
const STARTUP: &str = "\
    StartupAllowedCPUs StartupAllowedMemoryNodes StartupCPUWeight StartupIOWeight StartupMemoryLow \
    StartupMemoryHigh StartupMemoryMax StartupMemorySwapMax StartupMemoryZSwapMax DefaultStartupMemoryLow";

/// Which keys a section has: their manual page, and why one that the schema lacks has no effect.
const PAGES: &[(&[Section], &str, Reason, &str)] = {
    use Section as S;
    const EXECUTES: &[Section] = &[S::Service, S::Socket];
    const IN_CGROUP: &[Section] = &[S::Service, S::Socket, S::Slice];
    &[
        (&[S::Unit], "systemd.unit(5)", NOT_YET, UNIT),
        (&[S::Unit], "systemd.unit(5)", GONE, "OnFailureIsolate RequiresOverridable RequisiteOverridable"),
        (&[S::Install], "systemd.unit(5)", NOT_YET, INSTALL),
        (&[S::Timer], "systemd.timer(5)", NOT_YET, TIMER),
        (&[S::Path], "systemd.path(5)", NOT_YET, PATH),
        (&[S::Socket], "systemd.socket(5)", NOT_YET, SOCKET),
        (&[S::Socket], "systemd.socket(5)", NO_SUCH_SOCKET, SOCKET_ODD),
        (&[S::Service], "systemd.service(5)", NOT_YET, SERVICE),
        (&[S::Service], "systemd.service(5)", NO_DBUS, "BusName"),
        (&[S::Service], "systemd.service(5)", NO_USB, "USBFunctionDescriptors USBFunctionStrings"),
        (&[S::Service], "systemd.service(5)", PLUS, "PermissionsStartOnly"),
        (EXECUTES, "systemd.kill(5)", NOT_YET, KILL),
        (EXECUTES, "systemd.exec(5)", NOT_YET, EXEC),
        (EXECUTES, "systemd.exec(5)", NO_IMAGES, IMAGES),
        (EXECUTES, "systemd.exec(5)", NO_LABELS, LABELS),
        (EXECUTES, "systemd.exec(5)", NO_LOGINS, LOGINS),
        (EXECUTES, "systemd.exec(5)", NO_TERMINALS, TERMINALS),
        (EXECUTES, "systemd.exec(5)", NO_TPM, "SetCredentialEncrypted LoadCredentialEncrypted"),
        (IN_CGROUP, "systemd.resource-control(5)", NOT_YET, CGROUP),
        (IN_CGROUP, "systemd.resource-control(5)", V1, CGROUP_V1),
        (IN_CGROUP, "systemd.resource-control(5)", COUNTED, ACCOUNTING),
        (IN_CGROUP, "systemd.resource-control(5)", NO_BPF, BPF),
        (IN_CGROUP, "systemd.resource-control(5)", NO_OOMD, OOMD),
        (IN_CGROUP, "systemd.resource-control(5)", NO_PHASES, STARTUP),
    ]
};

/// A key of systemd's: its manual page, and the reason for which it has no effect unless the schema has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// As man(1) finds it.
    pub(crate) page: &'static str,
    /// Why it has no effect here, if the schema does not have it.
    pub(crate) reason: Reason,
}

fn has(keys: &str, key: &str) -> bool {
    keys.split_ascii_whitespace().any(|known| known == key)
}

/// What systemd knows by this name in this section.
#[must_use]
pub(crate) fn known(section: Section, key: &str) -> Option<Known> {
    let condition = key.strip_prefix("Condition").or_else(|| key.strip_prefix("Assert"));
    if section == Section::Unit && condition.is_some_and(|test| has(CONDITIONS, test)) {
        return Some(Known { page: "systemd.unit(5)", reason: NOT_YET });
    }
    let mut pages = PAGES.iter().filter(|(sections, ..)| sections.contains(&section));
    pages.find(|(.., keys)| has(keys, key)).map(|(_, page, reason, _)| Known { page, reason: *reason })
}

/// Every key that systemd has in a section.
pub(crate) fn keys_of(section: Section) -> impl Iterator<Item = String> {
    let pages = PAGES.iter().filter(move |(sections, ..)| sections.contains(&section));
    let tests = CONDITIONS.split_ascii_whitespace().filter(move |_| section == Section::Unit);
    let tests = tests.flat_map(|test| [format!("Condition{test}"), format!("Assert{test}")]);
    pages.flat_map(|(.., keys)| keys.split_ascii_whitespace().map(str::to_owned)).chain(tests)
}

/// Names that systemd still reads for what has another name, or another place, now.
const RENAMED: &[(Section, &str, Section, &str)] = {
    use Section as S;
    &[
        (S::Unit, "BindTo", S::Unit, "BindsTo"),
        (S::Unit, "PropagateReloadTo", S::Unit, "PropagatesReloadTo"),
        (S::Unit, "PropagateReloadFrom", S::Unit, "ReloadPropagatedFrom"),
        (S::Unit, "StartLimitInterval", S::Unit, "StartLimitIntervalSec"),
        (S::Service, "StartLimitInterval", S::Unit, "StartLimitIntervalSec"),
        (S::Service, "StartLimitBurst", S::Unit, "StartLimitBurst"),
        (S::Service, "StartLimitAction", S::Unit, "StartLimitAction"),
        (S::Service, "FailureAction", S::Unit, "FailureAction"),
        (S::Service, "RebootArgument", S::Unit, "RebootArgument"),
        (S::Service, "ReadWriteDirectories", S::Service, "ReadWritePaths"),
        (S::Service, "ReadOnlyDirectories", S::Service, "ReadOnlyPaths"),
        (S::Service, "InaccessibleDirectories", S::Service, "InaccessiblePaths"),
    ]
};

/// The name and the section that an old name stands for.
#[must_use]
pub(crate) fn renamed(section: Section, key: &str) -> Option<(Section, &'static str)> {
    let found = RENAMED.iter().find(|(old_section, old, ..)| *old_section == section && *old == key);
    found.map(|(_, _, section, key)| (*section, *key))
}

/// Words of systemd's that agentd does not have, with the nearest that it has, and why.
const SUBSTITUTES: &[(&str, &str, &str, &str)] = &[
    ("Type", "dbus", "exec", "agentd speaks no D-Bus"),
    ("StandardOutput", "journal+console", "journal", "agentd copies no output to the console"),
    ("StandardOutput", "kmsg+console", "kmsg", "agentd copies no output to the console"),
    ("StandardOutput", "syslog", "journal", "it is the old name of journal"),
    ("StandardOutput", "syslog+console", "journal", "agentd copies no output to the console"),
    ("StandardError", "journal+console", "journal", "agentd copies no output to the console"),
    ("StandardError", "kmsg+console", "kmsg", "agentd copies no output to the console"),
    ("StandardError", "syslog", "journal", "it is the old name of journal"),
    ("StandardError", "syslog+console", "journal", "agentd copies no output to the console"),
];

/// What a word of systemd's that agentd does not have is taken as in `[Service]`, and why.
#[must_use]
pub(crate) fn substitute(section: Section, key: &str, word: &str) -> Option<(&'static str, &'static str)> {
    let mut known = SUBSTITUTES.iter().filter(|_| section == Section::Service);
    known.find(|(of, theirs, ..)| *of == key && *theirs == word).map(|(.., ours, why)| (*ours, *why))
}

/// Sections of systemd's for units that agentd does not have.
const SECTIONS: [&str; 4] = ["Mount", "Automount", "Swap", "Scope"];

/// Whether systemd has a section of this name that agentd has not.
#[must_use]
pub(crate) fn has_section(name: &str) -> bool {
    SECTIONS.contains(&name)
}

/// Types of units that systemd has and agentd has not.
pub(crate) const TYPES: [&str; 5] = ["mount", "automount", "swap", "device", "scope"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_old_name_is_a_key_of_its_own_section() {
        for (section, old, ..) in RENAMED {
            assert!(section.setting(old).is_none(), "[{}] {old}", section.as_str());
        }
    }
}
