//! `[Socket]`, systemd.socket(5), and `[Path]`, systemd.path(5): one field a key.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Principal;
use crate::name::UnitName;
use crate::words::Words;

/// `[Socket]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketSection {
    /// `ListenStream`, `ListenDatagram`, `ListenSequentialPacket`, `ListenFIFO`: what it listens on, in order.
    pub listen: Vec<Listen>,
    /// `Accept`: one service instance a connection; default no.
    pub accept: bool,
    /// `Service`: what it starts; default the service of its name.
    pub service: Option<UnitName>,
    /// `FileDescriptorName`: the name in `LISTEN_FDNAMES`; default the unit's.
    pub descriptor_name: Option<String>,
    /// `MaxConnections` with `Accept`; default 64.
    pub max_connections: u32,
    /// `MaxConnectionsPerSource`; 0: no bound.
    pub max_connections_per_source: u32,
    /// `Backlog`; default 4294967295, the kernel's own bound.
    pub backlog: u32,
    /// `BindIPv6Only`.
    pub bind_ipv6_only: BindIpv6Only,
    /// `BindToDevice`: the network interface.
    pub device: Option<String>,
    /// `SocketUser`: who owns the file.
    pub user: Option<Principal>,
    /// `SocketGroup`: its group.
    pub group: Option<Principal>,
    /// `SocketMode`; default 0666.
    pub mode: u32,
    /// `DirectoryMode` of folders that are made; default 0755.
    pub directory_mode: u32,
    /// `Symlinks` to the file.
    pub symlinks: Vec<PathBuf>,
    /// `RemoveOnStop`: take the file away; default no.
    pub remove_on_stop: bool,
    /// `TriggerLimitIntervalSec`; default 2 s, 0: no limit.
    pub trigger_limit_interval: Duration,
    /// `TriggerLimitBurst`; `None`: 200 with `Accept`, else 20; 0: no limit.
    pub trigger_limit_burst: Option<u32>,
    /// `PollLimitIntervalSec`; default 2 s, 0: no limit.
    pub poll_limit_interval: Duration,
    /// `PollLimitBurst`; `None`: 150 with `Accept`, else 15; 0: no limit.
    pub poll_limit_burst: Option<u32>,
    /// `TimeoutSec`: how long making it may take; default 90 s.
    pub timeout: Option<Duration>,
    /// The options of the sockets themselves.
    pub options: SocketOptions,
}

impl Default for SocketSection {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            accept: false,
            service: None,
            descriptor_name: None,
            max_connections: 64,
            max_connections_per_source: 0,
            backlog: u32::MAX,
            bind_ipv6_only: BindIpv6Only::Default,
            device: None,
            user: None,
            group: None,
            mode: 0o666,
            directory_mode: 0o755,
            symlinks: Vec::new(),
            remove_on_stop: false,
            trigger_limit_interval: Duration::from_secs(2),
            trigger_limit_burst: None,
            poll_limit_interval: Duration::from_secs(2),
            poll_limit_burst: None,
            timeout: Some(Duration::from_secs(90)),
            options: SocketOptions::default(),
        }
    }
}

/// Options of socket(7), ip(7), tcp(7) and unix(7); `None` is the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketOptions {
    /// `KeepAlive`.
    pub keep_alive: bool,
    /// `KeepAliveTimeSec`.
    pub keep_alive_time: Option<Duration>,
    /// `KeepAliveIntervalSec`.
    pub keep_alive_interval: Option<Duration>,
    /// `KeepAliveProbes`.
    pub keep_alive_probes: Option<u32>,
    /// `NoDelay`.
    pub no_delay: bool,
    /// `FreeBind`.
    pub free_bind: bool,
    /// `Transparent`.
    pub transparent: bool,
    /// `Broadcast`.
    pub broadcast: bool,
    /// `PassCredentials`.
    pub pass_credentials: bool,
    /// `ReusePort`.
    pub reuse_port: bool,
    /// `FlushPending`: throw away what waits before the service starts again.
    pub flush_pending: bool,
    /// `Writable`: open a FIFO or device for writing too.
    pub writable: bool,
    /// `DeferAcceptSec`.
    pub defer_accept: Option<Duration>,
    /// `Priority`.
    pub priority: Option<i32>,
    /// `Mark`.
    pub mark: Option<i32>,
    /// `IPTTL`: 1 to 255.
    pub ip_ttl: Option<i32>,
    /// `ReceiveBuffer`, in bytes.
    pub receive_buffer: Option<u64>,
    /// `SendBuffer`, in bytes.
    pub send_buffer: Option<u64>,
    /// `PipeSize` of a FIFO, in bytes.
    pub pipe_size: Option<u64>,
    /// `MessageQueueMaxMessages`: how many messages a queue holds.
    pub queue_messages: Option<i32>,
    /// `MessageQueueMessageSize`, in bytes.
    pub queue_message_size: Option<i32>,
    /// `TCPCongestion`: the algorithm.
    pub tcp_congestion: Option<String>,
}

/// What a socket unit listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// How.
    pub kind: ListenKind,
    /// Where.
    pub address: ListenAddress,
}

impl Listen {
    /// Whether it has connections to accept, and does not read what comes in itself.
    #[must_use]
    pub const fn takes_connections(&self) -> bool {
        matches!(self.kind, ListenKind::Stream | ListenKind::SequentialPacket)
    }

    /// Whether it is a socket or FIFO in the file system.
    #[must_use]
    pub const fn has_a_file(&self) -> bool {
        use ListenKind as K;
        matches!(self.kind, K::Stream | K::Datagram | K::SequentialPacket | K::Fifo)
            && matches!(self.address, ListenAddress::Path(_))
    }
}

/// The kinds of listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenKind {
    /// `ListenStream`: SOCK_STREAM.
    Stream,
    /// `ListenDatagram`: SOCK_DGRAM.
    Datagram,
    /// `ListenSequentialPacket`: SOCK_SEQPACKET.
    SequentialPacket,
    /// `ListenFIFO`: a named pipe.
    Fifo,
    /// `ListenSpecial`: a device or a file below `/proc` or `/sys`.
    Special,
    /// `ListenNetlink`: netlink(7).
    Netlink,
    /// `ListenMessageQueue`: mq_overview(7).
    MessageQueue,
}

impl ListenKind {
    /// The key in the unit file.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Stream => "ListenStream",
            Self::Datagram => "ListenDatagram",
            Self::SequentialPacket => "ListenSequentialPacket",
            Self::Fifo => "ListenFIFO",
            Self::Special => "ListenSpecial",
            Self::Netlink => "ListenNetlink",
            Self::MessageQueue => "ListenMessageQueue",
        }
    }
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A path in the file system.
    Path(PathBuf),
    /// A name in the abstract namespace, without its `@`.
    Abstract(String),
    /// A port on all addresses.
    Port(u16),
    /// An address with its port.
    Inet(std::net::SocketAddr),
    /// A port of vsock(7) on a context; `None`: on any.
    Vsock(Option<u32>, u32),
    /// A family of netlink(7) by name, and the group to join.
    Netlink(String, u32),
}

/// As it stands in a unit file.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Abstract(name) => write!(f, "@{name}"),
            Self::Port(port) => write!(f, "{port}"),
            Self::Inet(address) => write!(f, "{address}"),
            Self::Vsock(Some(context), port) => write!(f, "vsock:{context}:{port}"),
            Self::Vsock(None, port) => write!(f, "vsock::{port}"),
            Self::Netlink(family, group) => write!(f, "{family} {group}"),
        }
    }
}

/// `BindIPv6Only`, systemd.socket(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BindIpv6Only {
    /// As the system has it.
    #[default]
    Default,
    /// IPv4 too.
    Both,
    /// IPv6 alone.
    Ipv6Only,
}

impl Words for BindIpv6Only {
    const WORDS: &'static [(&'static str, Self)] =
        &[("default", Self::Default), ("both", Self::Both), ("ipv6-only", Self::Ipv6Only)];
}

/// `[Path]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSection {
    /// `PathExists`, `PathExistsGlob`, `PathChanged`, `PathModified`, `DirectoryNotEmpty`: what it watches, in order.
    pub watches: Vec<(PathWatch, PathBuf)>,
    /// `Unit`: what it starts; default the service of its name.
    pub unit: Option<UnitName>,
    /// `MakeDirectory`: make the folder before watching it; default no.
    pub make_directory: bool,
    /// `DirectoryMode` of a folder that is made; default 0755.
    pub directory_mode: u32,
    /// `TriggerLimitIntervalSec`; default 2 s, 0: no limit.
    pub trigger_limit_interval: Duration,
    /// `TriggerLimitBurst`; default 200.
    pub trigger_limit_burst: u32,
}

impl Default for PathSection {
    fn default() -> Self {
        Self {
            watches: Vec::new(),
            unit: None,
            make_directory: false,
            directory_mode: 0o755,
            trigger_limit_interval: Duration::from_secs(2),
            trigger_limit_burst: 200,
        }
    }
}

/// What a path unit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathWatch {
    /// `PathExists`.
    Exists,
    /// `PathExistsGlob`.
    ExistsGlob,
    /// `PathChanged`: written and closed, or renamed.
    Changed,
    /// `PathModified`: written.
    Modified,
    /// `DirectoryNotEmpty`.
    DirectoryNotEmpty,
}

impl PathWatch {
    /// The key that says it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Exists => "PathExists",
            Self::ExistsGlob => "PathExistsGlob",
            Self::Changed => "PathChanged",
            Self::Modified => "PathModified",
            Self::DirectoryNotEmpty => "DirectoryNotEmpty",
        }
    }
}
