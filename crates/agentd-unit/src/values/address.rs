//! Addresses to listen on, systemd.socket(5) `ListenStream`.

use std::net::SocketAddr;

use super::{Refused, path};
use crate::sections::ListenAddress;

const HELP: &str = "write a path, a port, an address with its port, or @name";

/// The longest path or name of a socket in bytes: unix(7) `sun_path` less its end.
const SUN_PATH_MAX: usize = 107;

/// A path, `@name`, a port, `1.2.3.4:80`, `[::1]:80` or `vsock:CID:PORT`.
///
/// # Errors
/// Anything else, port 0, and a path too long for a socket.
pub fn parse(text: &str) -> Result<ListenAddress, Refused> {
    let text = text.trim();
    if text.starts_with('/') || text.starts_with('@') {
        if text.len() > SUN_PATH_MAX {
            return Err(Refused::of(text, "is longer than 107 bytes", "no socket's name can be"));
        }
        return match text.strip_prefix('@') {
            Some("") => Err(Refused::of(text, "has no name behind its @", HELP)),
            Some(name) => Ok(ListenAddress::Abstract(name.to_owned())),
            None => path::absolute(text).map(ListenAddress::Path),
        };
    }
    if let Some(vsock) = text.strip_prefix("vsock:") {
        let (context, port) = vsock.split_once(':').ok_or_else(|| Refused::of(text, "has no port", HELP))?;
        let number =
            |digits: &str| digits.parse::<u32>().map_err(|_| Refused::of(text, "is no address", HELP));
        let context = if context.is_empty() { None } else { Some(number(context)?) };
        return Ok(ListenAddress::Vsock(context, number(port)?));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let port = text.parse::<u16>().ok().filter(|port| *port > 0);
        return port
            .map(ListenAddress::Port)
            .ok_or_else(|| Refused::of(text, "is no port", "ports are numbers from 1 to 65535"));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(ListenAddress::Inet(address)),
        _ => Err(Refused::of(text, "is no address to listen on", HELP)),
    }
}

/// A family of netlink and, behind a space, the group to join: `kobject-uevent 1`.
///
/// # Errors
/// A family that there is not, and what is no number.
pub fn netlink(text: &str) -> Result<ListenAddress, Refused> {
    const FAMILIES: [&str; 14] = [
        "route",
        "firewall",
        "inet-diag",
        "nflog",
        "xfrm",
        "selinux",
        "iscsi",
        "audit",
        "fib-lookup",
        "connector",
        "netfilter",
        "ip6-fw",
        "dnrtmsg",
        "kobject-uevent",
    ];
    let (family, group) = text.trim().split_once(' ').unwrap_or((text.trim(), "0"));
    if !FAMILIES.contains(&family) && family != "generic" {
        return Err(Refused::of(family, "is no family of netlink", "netlink(7) lists them"));
    }
    let group = group.trim().parse();
    let group =
        group.map_err(|_| Refused::of(text, "has no number for its group", "write for example audit 1"))?;
    Ok(ListenAddress::Netlink(family.to_owned(), group))
}

/// The path of a FIFO.
///
/// # Errors
/// Anything that is no absolute path.
pub fn fifo(text: &str) -> Result<ListenAddress, Refused> {
    path::absolute(text.trim()).map(ListenAddress::Path)
}

/// `ListenMessageQueue`: the name of a message queue, `/name`.
///
/// # Errors
/// Anything but one slash and a name of at most 255 bytes, mq_overview(7).
pub fn queue(text: &str) -> Result<ListenAddress, Refused> {
    let name = text.trim();
    let rest = name.strip_prefix('/').unwrap_or_default();
    if rest.is_empty() || rest.len() > 255 || rest.contains(['/', '\0']) || [".", ".."].contains(&rest) {
        return Err(Refused::of(
            name,
            "is no name of a message queue",
            "write it as /name, with no further slash",
        ));
    }
    Ok(ListenAddress::Path(name.into()))
}
