//! Options of sockets: socket(7), ip(7), ipv6(7), tcp(7).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use agentd_unit::sections::{BindIpv6Only, SocketSection};
use nix::sys::socket::{AddressFamily, SockType};

use super::Failure;

/// The options that a unit asks for, of one of its sockets.
pub(super) struct Options<'a> {
    pub(super) section: &'a SocketSection,
    pub(super) family: AddressFamily,
    pub(super) socket_type: SockType,
}

impl Options<'_> {
    /// Sets them all before the socket is bound. What is only for some families leaves other sockets as they are: newer
    /// kernels refuse it.
    pub(super) fn set(&self, fd: &OwnedFd) -> Result<(), Failure> {
        let (section, options) = (self.section, &self.section.options);
        if self.is_inet() {
            number(fd, "SO_REUSEADDR", libc::SOL_SOCKET, libc::SO_REUSEADDR, Some(1))?;
            self.inet(fd)?;
        }
        if let Some(device) = section.device.as_ref().filter(|_| self.is_inet()) {
            bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())
                .map_err(Failure::of(format!("BindToDevice={device}")))?;
        }
        let flag = |set: bool| set.then_some(1);
        for (key, name, value) in [
            ("ReusePort", libc::SO_REUSEPORT, flag(options.reuse_port && self.is_inet())),
            ("Broadcast", libc::SO_BROADCAST, flag(options.broadcast)),
            ("PassCredentials", libc::SO_PASSCRED, flag(options.pass_credentials && self.has_senders())),
            ("KeepAlive", libc::SO_KEEPALIVE, flag(options.keep_alive)),
            ("Priority", libc::SO_PRIORITY, options.priority),
            ("Mark", libc::SO_MARK, options.mark),
        ] {
            number(fd, key, libc::SOL_SOCKET, name, value)?;
        }
        let size = |bytes: Option<u64>| bytes.map(|bytes| i32::try_from(bytes).unwrap_or(i32::MAX));
        buffer(fd, "ReceiveBuffer", [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], size(options.receive_buffer))?;
        buffer(fd, "SendBuffer", [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], size(options.send_buffer))
    }

    fn is_inet(&self) -> bool {
        matches!(self.family, AddressFamily::Inet | AddressFamily::Inet6)
    }

    /// Whether a datagram can say whose it is: `SCM_CREDENTIALS` of unix(7) and netlink(7).
    fn has_senders(&self) -> bool {
        matches!(self.family, AddressFamily::Unix | AddressFamily::Netlink)
    }

    fn inet(&self, fd: &OwnedFd) -> Result<(), Failure> {
        let (section, options) = (self.section, &self.section.options);
        let flag = |set: bool| set.then_some(1);
        number(fd, "FreeBind", libc::SOL_IP, libc::IP_FREEBIND, flag(options.free_bind))?;
        number(fd, "Transparent", libc::SOL_IP, libc::IP_TRANSPARENT, flag(options.transparent))?;
        if self.family == AddressFamily::Inet6 {
            let only = match section.bind_ipv6_only {
                BindIpv6Only::Default => None,
                BindIpv6Only::Both => Some(0),
                BindIpv6Only::Ipv6Only => Some(1),
            };
            number(fd, "BindIPv6Only", libc::SOL_IPV6, libc::IPV6_V6ONLY, only)?;
            number(fd, "IPTTL", libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS, options.ip_ttl)?;
        } else {
            number(fd, "IPTTL", libc::SOL_IP, libc::IP_TTL, options.ip_ttl)?;
        }
        if self.socket_type != SockType::Stream {
            return Ok(());
        }
        // Whole seconds, as the kernel has them; a part of one counts as one.
        let seconds = |span: Option<std::time::Duration>| {
            span.map(|span| i32::try_from(span.as_millis().div_ceil(1000)).unwrap_or(i32::MAX))
        };
        let probes = options.keep_alive_probes.and_then(|probes| i32::try_from(probes).ok());
        for (key, name, value) in [
            ("NoDelay", libc::TCP_NODELAY, flag(options.no_delay)),
            ("KeepAliveTimeSec", libc::TCP_KEEPIDLE, seconds(options.keep_alive_time)),
            ("KeepAliveIntervalSec", libc::TCP_KEEPINTVL, seconds(options.keep_alive_interval)),
            ("KeepAliveProbes", libc::TCP_KEEPCNT, probes),
            ("DeferAcceptSec", libc::TCP_DEFER_ACCEPT, seconds(options.defer_accept)),
        ] {
            number(fd, key, libc::SOL_TCP, name, value)?;
        }
        match &options.tcp_congestion {
            Some(name) => bytes(fd, libc::SOL_TCP, libc::TCP_CONGESTION, name.as_bytes())
                .map_err(Failure::of(format!("TCPCongestion={name}"))),
            None => Ok(()),
        }
    }
}

/// Past the system's bound where the manager may, else up to it.
fn buffer(fd: &OwnedFd, key: &str, [force, ask]: [i32; 2], size: Option<i32>) -> Result<(), Failure> {
    number(fd, key, libc::SOL_SOCKET, force, size).or_else(|_| number(fd, key, libc::SOL_SOCKET, ask, size))
}

fn number(fd: &OwnedFd, key: &str, level: i32, name: i32, value: Option<i32>) -> Result<(), Failure> {
    let Some(value) = value else { return Ok(()) };
    bytes(fd, level, name, &value.to_ne_bytes()).map_err(Failure::of(format!("{key}={value}")))
}

/// setsockopt(2).
fn bytes(fd: &OwnedFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the call reads `length` bytes of the live slice.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// socket(2), for families that no wrapper has.
pub(super) fn raw_socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes three integers and touches no memory of ours.
    let fd: RawFd = unsafe { libc::socket(family, kind, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so `fd` is open and we are its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number of a family of netlink(7), by systemd's name for it.
pub(super) fn netlink_protocol(family: &str) -> i32 {
    match family {
        "firewall" => libc::NETLINK_FIREWALL,
        "inet-diag" => libc::NETLINK_SOCK_DIAG,
        "nflog" => libc::NETLINK_NFLOG,
        "xfrm" => libc::NETLINK_XFRM,
        "selinux" => libc::NETLINK_SELINUX,
        "iscsi" => libc::NETLINK_ISCSI,
        "audit" => libc::NETLINK_AUDIT,
        "fib-lookup" => libc::NETLINK_FIB_LOOKUP,
        "connector" => libc::NETLINK_CONNECTOR,
        "netfilter" => libc::NETLINK_NETFILTER,
        "ip6-fw" => libc::NETLINK_IP6_FW,
        "dnrtmsg" => libc::NETLINK_DNRTMSG,
        "kobject-uevent" => libc::NETLINK_KOBJECT_UEVENT,
        "generic" => libc::NETLINK_GENERIC,
        _ => libc::NETLINK_ROUTE,
    }
}
