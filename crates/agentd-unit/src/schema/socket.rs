//! `[Socket]`, systemd.socket(5), and `[Path]`, systemd.path(5).

use super::apply::{ApplyContext, resets, set};
use super::execution::{octal, scalar};
use super::slot::{names, put};
use super::{Setting, Slot};
use crate::assignment::Value;
use crate::draft::Draft;
use crate::sections::{BindIpv6Only, Listen, ListenAddress, ListenKind, PathWatch};
use crate::values::{Refused, address, limit, numbers, path};

const ADDRESS: &str = "address, or a list of them";
const PATH: &str = "absolute path, or a list of them";

/// The keys of `[Socket]`.
pub(super) const SOCKET_SETTINGS: &[Setting] = &[
    Setting::new(
        "ListenStream",
        Slot::Own(ADDRESS, |value, d, cx| listen(ListenKind::Stream, value, d, cx)),
        "Listens for connections, as TCP and Unix streams have them.",
    ),
    Setting::new(
        "ListenDatagram",
        Slot::Own(ADDRESS, |value, d, cx| listen(ListenKind::Datagram, value, d, cx)),
        "Listens for datagrams.",
    ),
    Setting::new(
        "ListenSequentialPacket",
        Slot::Own(ADDRESS, |value, d, cx| listen(ListenKind::SequentialPacket, value, d, cx)),
        "Listens for connections of packets.",
    ),
    Setting::new(
        "ListenFIFO",
        Slot::Own(PATH, |value, d, cx| listen(ListenKind::Fifo, value, d, cx)),
        "Reads from a named pipe.",
    ),
    Setting::new(
        "ListenSpecial",
        Slot::Own(PATH, |value, d, cx| listen(ListenKind::Special, value, d, cx)),
        "Reads from a device or a file below /proc or /sys.",
    ),
    Setting::new(
        "ListenNetlink",
        Slot::Own("family of netlink, or a list of them", |value, d, cx| {
            listen(ListenKind::Netlink, value, d, cx);
        }),
        "Listens to the kernel, netlink(7).",
    ),
    Setting::new(
        "ListenMessageQueue",
        Slot::Own("/name of a queue, or a list of them", |value, d, cx| {
            listen(ListenKind::MessageQueue, value, d, cx)
        }),
        "Reads from a message queue, mq_overview(7).",
    ),
    Setting::new(
        "Accept",
        Slot::Bool(|d| &mut d.socket.accept),
        "One service instance a connection; default no.",
    ),
    Setting::new(
        "Service",
        Slot::UnitName(|d| &mut d.socket.service),
        "What it starts; default the service of its name.",
    ),
    Setting::new(
        "FileDescriptorName",
        Slot::Text(|d| &mut d.socket.descriptor_name),
        "The name in LISTEN_FDNAMES; default the unit's.",
    ),
    Setting::new(
        "MaxConnections",
        Slot::Count(|d| &mut d.socket.max_connections),
        "How many connections at once with Accept; default 64.",
    ),
    Setting::new(
        "MaxConnectionsPerSource",
        Slot::Count(|d| &mut d.socket.max_connections_per_source),
        "How many of them from one address; default 0, any number.",
    ),
    Setting::new(
        "Backlog",
        Slot::Count(|d| &mut d.socket.backlog),
        "How many connections may wait, listen(2).",
    ),
    Setting::new(
        "BindIPv6Only",
        Slot::Choice(names::<BindIpv6Only>, |d, word| put(&mut d.socket.bind_ipv6_only, word)),
        "Whether an IPv6 listener takes IPv4 too; default as the system has it.",
    ),
    Setting::new("BindToDevice", Slot::Text(|d| &mut d.socket.device), "The network interface."),
    Setting::new(
        "SocketUser",
        Slot::Principal(|d| &mut d.socket.user),
        "Who owns the file; default the manager.",
    ),
    Setting::new("SocketGroup", Slot::Principal(|d| &mut d.socket.group), "Its group."),
    Setting::new(
        "SocketMode",
        Slot::Own("octal digits", |value, d, cx| set(&mut d.socket.mode, octal(value, cx))),
        "The mode of the file; default 0666.",
    ),
    Setting::new(
        "DirectoryMode",
        Slot::Own("octal digits", |value, d, cx| set(&mut d.socket.directory_mode, octal(value, cx))),
        "The mode of folders that are made for it; default 0755.",
    ),
    Setting::new("Symlinks", Slot::Paths(|d| &mut d.socket.symlinks), "Links to the file."),
    Setting::new(
        "RemoveOnStop",
        Slot::Bool(|d| &mut d.socket.remove_on_stop),
        "Takes the file away; default no.",
    ),
    Setting::new(
        "TriggerLimitIntervalSec",
        Slot::Span(|d| &mut d.socket.trigger_limit_interval),
        "The time in which starts are counted; default 2 s.",
    ),
    Setting::new(
        "TriggerLimitBurst",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.trigger_limit_burst, count(value, cx));
        }),
        "How many starts that time may have, else the socket fails; default 20, 200 with Accept; 0: no limit.",
    ),
    Setting::new(
        "PollLimitIntervalSec",
        Slot::Span(|d| &mut d.socket.poll_limit_interval),
        "The time in which it is counted how often something comes; default 2 s.",
    ),
    Setting::new(
        "PollLimitBurst",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.poll_limit_burst, count(value, cx));
        }),
        "How often something may come in that time, else the rest waits as long; default 15, 150 with Accept; 0: no limit.",
    ),
    Setting::new(
        "TimeoutSec",
        Slot::Timeout(|d| &mut d.socket.timeout),
        "How long making it may take; default 90 s.",
    ),
    Setting::new("KeepAlive", Slot::Bool(|d| &mut d.socket.options.keep_alive), "SO_KEEPALIVE; default no."),
    Setting::new(
        "KeepAliveTimeSec",
        Slot::Timeout(|d| &mut d.socket.options.keep_alive_time),
        "TCP_KEEPIDLE; default the kernel's.",
    ),
    Setting::new(
        "KeepAliveIntervalSec",
        Slot::Timeout(|d| &mut d.socket.options.keep_alive_interval),
        "TCP_KEEPINTVL; default the kernel's.",
    ),
    Setting::new(
        "KeepAliveProbes",
        Slot::Own("whole number", |value, d, cx| {
            let probes = whole(value, cx, 1, 127);
            set(&mut d.socket.options.keep_alive_probes, probes.map(|count| count.map(i32::unsigned_abs)));
        }),
        "TCP_KEEPCNT; default the kernel's.",
    ),
    Setting::new("NoDelay", Slot::Bool(|d| &mut d.socket.options.no_delay), "TCP_NODELAY; default no."),
    Setting::new("FreeBind", Slot::Bool(|d| &mut d.socket.options.free_bind), "IP_FREEBIND; default no."),
    Setting::new(
        "Transparent",
        Slot::Bool(|d| &mut d.socket.options.transparent),
        "IP_TRANSPARENT; default no.",
    ),
    Setting::new("Broadcast", Slot::Bool(|d| &mut d.socket.options.broadcast), "SO_BROADCAST; default no."),
    Setting::new(
        "PassCredentials",
        Slot::Bool(|d| &mut d.socket.options.pass_credentials),
        "SO_PASSCRED; default no.",
    ),
    Setting::new("ReusePort", Slot::Bool(|d| &mut d.socket.options.reuse_port), "SO_REUSEPORT; default no."),
    Setting::new(
        "FlushPending",
        Slot::Bool(|d| &mut d.socket.options.flush_pending),
        "Throws away what waits before the service starts again; default no.",
    ),
    Setting::new(
        "Writable",
        Slot::Bool(|d| &mut d.socket.options.writable),
        "Opens a FIFO for writing too; default no.",
    ),
    Setting::new(
        "DeferAcceptSec",
        Slot::Timeout(|d| &mut d.socket.options.defer_accept),
        "TCP_DEFER_ACCEPT: starts when data comes; default not.",
    ),
    Setting::new(
        "Priority",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.options.priority, whole(value, cx, 0, i32::MAX));
        }),
        "SO_PRIORITY; default the kernel's.",
    ),
    Setting::new(
        "Mark",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.options.mark, whole(value, cx, 0, i32::MAX));
        }),
        "SO_MARK; default none.",
    ),
    Setting::new(
        "IPTTL",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.options.ip_ttl, whole(value, cx, 1, 255));
        }),
        "IP_TTL and IPV6_UNICAST_HOPS; default the kernel's.",
    ),
    Setting::new(
        "ReceiveBuffer",
        Slot::Own("size", |value, d, cx| {
            set(&mut d.socket.options.receive_buffer, size(value, cx));
        }),
        "SO_RCVBUF; default the kernel's.",
    ),
    Setting::new(
        "SendBuffer",
        Slot::Own("size", |value, d, cx| {
            set(&mut d.socket.options.send_buffer, size(value, cx));
        }),
        "SO_SNDBUF; default the kernel's.",
    ),
    Setting::new(
        "PipeSize",
        Slot::Own("size", |value, d, cx| {
            set(&mut d.socket.options.pipe_size, size(value, cx));
        }),
        "The size of a FIFO; default the kernel's.",
    ),
    Setting::new(
        "MessageQueueMaxMessages",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.options.queue_messages, whole(value, cx, 1, i32::MAX));
        }),
        "How many messages a queue that is made holds, with MessageQueueMessageSize; default the kernel's.",
    ),
    Setting::new(
        "MessageQueueMessageSize",
        Slot::Own("whole number", |value, d, cx| {
            set(&mut d.socket.options.queue_message_size, whole(value, cx, 1, i32::MAX));
        }),
        "How many bytes each of them may have, with MessageQueueMaxMessages; default the kernel's.",
    ),
    Setting::new(
        "TCPCongestion",
        Slot::Text(|d| &mut d.socket.options.tcp_congestion),
        "The algorithm, tcp(7); default the kernel's.",
    ),
];

/// The keys of `[Path]`.
pub(super) const PATH_SETTINGS: &[Setting] = &[
    Setting::new(
        "PathExists",
        Slot::Own(PATH, |value, d, cx| watch(PathWatch::Exists, value, d, cx)),
        "Starts its unit when the path is there.",
    ),
    Setting::new(
        "PathExistsGlob",
        Slot::Own(PATH, |value, d, cx| watch(PathWatch::ExistsGlob, value, d, cx)),
        "Starts its unit when a path of the pattern is there.",
    ),
    Setting::new(
        "PathChanged",
        Slot::Own(PATH, |value, d, cx| watch(PathWatch::Changed, value, d, cx)),
        "Starts its unit when the file was written and closed, or renamed.",
    ),
    Setting::new(
        "PathModified",
        Slot::Own(PATH, |value, d, cx| watch(PathWatch::Modified, value, d, cx)),
        "Starts its unit when the file is written.",
    ),
    Setting::new(
        "DirectoryNotEmpty",
        Slot::Own(PATH, |value, d, cx| watch(PathWatch::DirectoryNotEmpty, value, d, cx)),
        "Starts its unit when the folder has an entry.",
    ),
    Setting::new(
        "Unit",
        Slot::UnitName(|d| &mut d.path.unit),
        "What it starts; default the service of its name.",
    ),
    Setting::new(
        "MakeDirectory",
        Slot::Bool(|d| &mut d.path.make_directory),
        "Makes the folder before watching it; default no.",
    ),
    Setting::new(
        "DirectoryMode",
        Slot::Own("octal digits", |value, d, cx| set(&mut d.path.directory_mode, octal(value, cx))),
        "The mode of that folder; default 0755.",
    ),
    Setting::new(
        "TriggerLimitIntervalSec",
        Slot::Span(|d| &mut d.path.trigger_limit_interval),
        "The time in which starts are counted; default 2 s.",
    ),
    Setting::new(
        "TriggerLimitBurst",
        Slot::Count(|d| &mut d.path.trigger_limit_burst),
        "How many starts that time may have; default 200.",
    ),
];

/// A whole number; what was parsed, if it was.
fn whole(value: &Value<'_>, cx: &mut ApplyContext<'_>, low: i32, high: i32) -> Option<Option<i32>> {
    scalar(value, cx, "a whole number", |text| numbers::between(text, low, high)).map(Some)
}

/// How many; what was parsed, if it was.
fn count(value: &Value<'_>, cx: &mut ApplyContext<'_>) -> Option<Option<u32>> {
    whole(value, cx, 0, i32::MAX).map(|count| count.map(i32::unsigned_abs))
}

/// A number of bytes; what was parsed, if it was.
fn size(value: &Value<'_>, cx: &mut ApplyContext<'_>) -> Option<Option<u64>> {
    cx.parse(value, "a size", limit::size).map(Some)
}

/// One value or a list of them, each parsed after its specifiers are resolved.
fn lines<T>(
    value: &Value<'_>,
    cx: &mut ApplyContext<'_>,
    wanted: &str,
    parser: impl Fn(&str) -> Result<T, Refused>,
) -> Vec<T> {
    value.parts().iter().filter_map(|part| scalar(part, cx, wanted, &parser)).collect()
}

/// Listeners add up; an empty value takes all of them back.
fn listen(kind: ListenKind, value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        return draft.socket.listen.clear();
    }
    let parser: fn(&str) -> Result<ListenAddress, Refused> = match kind {
        ListenKind::Fifo | ListenKind::Special => address::fifo,
        ListenKind::MessageQueue => address::queue,
        ListenKind::Netlink => address::netlink,
        ListenKind::Stream | ListenKind::Datagram | ListenKind::SequentialPacket => address::parse,
    };
    let found = lines(value, cx, "an address", parser);
    draft.socket.listen.extend(found.into_iter().map(|address| Listen { kind, address }));
}

/// Watches add up; an empty value takes all of them back.
fn watch(kind: PathWatch, value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        return draft.path.watches.clear();
    }
    let found = lines(value, cx, "an absolute path", path::absolute);
    draft.path.watches.extend(found.into_iter().map(|path| (kind, path)));
}
