//! System calls, their groups, errors and address families by name, systemd.exec(5) "SYSTEM CALL FILTERING".

use std::collections::BTreeSet;

use super::Refused;
use super::syscall_names::{CALLS, GROUPS};
use crate::diagnostic::nearest;

/// The calls of a group, those of the groups in it too.
#[must_use]
pub fn group(name: &str) -> Option<BTreeSet<&'static str>> {
    let (_, words) = GROUPS.iter().find(|(known, _)| *known == name)?;
    let mut calls = BTreeSet::new();
    for word in words.split_whitespace() {
        if word.starts_with('@') {
            calls.extend(group(word).unwrap_or_default());
        } else {
            calls.insert(word);
        }
    }
    Some(calls)
}

/// The calls that one word of `SystemCallFilter` means, and the error that they get: `name`, `@group`, either with
/// `:EPERM` or `:kill` behind it.
///
/// # Errors
/// No such call, group or error.
pub fn rule(text: &str) -> Result<(BTreeSet<&'static str>, Option<Denial>), Refused> {
    let (name, denial) = match text.split_once(':') {
        Some((name, denial)) => (name, Some(self::denial(denial)?)),
        None => (text, None),
    };
    let calls = if name.starts_with('@') {
        group(name)
    } else {
        CALLS.split_whitespace().find(|known| *known == name).map(|call| BTreeSet::from([call]))
    };
    let groups = GROUPS.iter().map(|(known, _)| *known);
    calls.map(|calls| (calls, denial)).ok_or_else(|| {
        let near = nearest(name, CALLS.split_whitespace().chain(groups));
        let help = near.map_or("syscalls(2) lists them".into(), |near| format!("did you mean '{near}'?"));
        Refused::of(name, "is no system call", &help)
    })
}

/// Whether what one word of `SystemCallFilter` names is a call or a group.
#[must_use]
pub fn is_known(text: &str) -> bool {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    CALLS.split_whitespace().any(|known| known == name) || GROUPS.iter().any(|(known, _)| *known == name)
}

/// What becomes of a process that makes a call that is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// SIGSYS.
    Kill,
    /// The call fails with this errno.
    Errno(u16),
}

/// The errors that a denied call may give, with the numbers that all Linux architectures have.
const ERRORS: [(&str, u16); 17] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EBUSY", 16),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("ENOTTY", 25),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("ENOSYS", 38),
    ("EOPNOTSUPP", 95),
    ("EAFNOSUPPORT", 97),
];

/// `kill`, or an error by name or number.
///
/// # Errors
/// Any other text.
pub fn denial(text: &str) -> Result<Denial, Refused> {
    if text == "kill" {
        return Ok(Denial::Kill);
    }
    let by_name = ERRORS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let number = by_name.or_else(|| text.parse().ok().filter(|number| (1..4096).contains(number)));
    number.map(Denial::Errno).ok_or_else(|| {
        Refused::of(text, "is no error of a call", "write a name such as EPERM, a number up to 4095, or kill")
    })
}

/// The address families that sockets have, address_families(7).
const FAMILIES: [(&str, u16); 22] = [
    ("AF_UNIX", 1),
    ("AF_LOCAL", 1),
    ("AF_INET", 2),
    ("AF_AX25", 3),
    ("AF_IPX", 4),
    ("AF_APPLETALK", 5),
    ("AF_X25", 9),
    ("AF_INET6", 10),
    ("AF_KEY", 15),
    ("AF_NETLINK", 16),
    ("AF_PACKET", 17),
    ("AF_RDS", 21),
    ("AF_PPPOX", 24),
    ("AF_CAN", 29),
    ("AF_TIPC", 30),
    ("AF_BLUETOOTH", 31),
    ("AF_ALG", 38),
    ("AF_NFC", 39),
    ("AF_VSOCK", 40),
    ("AF_KCM", 41),
    ("AF_QIPCRTR", 42),
    ("AF_XDP", 44),
];

/// An address family by name.
///
/// # Errors
/// Any other text.
pub fn address_family(text: &str) -> Result<u16, Refused> {
    FAMILIES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number).ok_or_else(|| {
        let near = nearest(text, FAMILIES.map(|(name, _)| name));
        let help = near.map_or("write for example AF_INET".into(), |near| format!("did you mean {near}?"));
        Refused::of(text, "is no address family", &help)
    })
}

/// The name of a family; its number where it has none here.
#[must_use]
pub fn family_name(number: u16) -> String {
    let known = FAMILIES.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

/// The kinds of namespaces, namespaces(7), with their flags of clone(2).
const NAMESPACES: [(&str, u32); 7] = [
    ("mnt", 0x0002_0000),
    ("cgroup", 0x0200_0000),
    ("uts", 0x0400_0000),
    ("ipc", 0x0800_0000),
    ("user", 0x1000_0000),
    ("pid", 0x2000_0000),
    ("net", 0x4000_0000),
];

/// The flags of all kinds.
pub const ALL_NAMESPACES: u32 = 0x7E02_0000;

/// A kind of namespace by name.
///
/// # Errors
/// Any other text.
pub fn namespace(text: &str) -> Result<u32, Refused> {
    NAMESPACES.iter().find(|(name, _)| *name == text).map(|(_, flag)| *flag).ok_or_else(|| {
        let help = "the kinds are cgroup, ipc, mnt, net, pid, user and uts";
        Refused::of(text, "is no kind of namespace", help)
    })
}

/// The names of the kinds whose flags are set.
#[must_use]
pub fn namespace_names(flags: u32) -> Vec<&'static str> {
    NAMESPACES.iter().filter(|(_, flag)| flags & flag != 0).map(|(name, _)| *name).collect()
}

/// How a denial is written.
#[must_use]
pub fn denial_name(denial: Denial) -> String {
    match denial {
        Denial::Kill => "kill".to_owned(),
        Denial::Errno(errno) => {
            let known = ERRORS.iter().find(|(_, number)| *number == errno);
            known.map_or_else(|| errno.to_string(), |(name, _)| (*name).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_their_groups() {
        let service = group("@system-service").unwrap();
        for call in ["read", "openat", "clone3", "socket", "epoll_wait", "clock_nanosleep"] {
            assert!(service.contains(call), "{call}");
        }
        for call in ["mount", "ptrace", "reboot", "init_module", "swapon", "kexec_load", "iopl"] {
            assert!(!service.contains(call), "{call}");
        }
        for (name, words) in GROUPS {
            assert!(group(name).unwrap().len() >= words.split_whitespace().count().min(1), "{name}");
        }
    }

    #[test]
    fn every_call_of_a_group_can_be_named() {
        for call in GROUPS.iter().flat_map(|(name, _)| group(name).unwrap()) {
            assert!(rule(call).is_ok(), "{call}");
        }
        assert_eq!(NAMESPACES.iter().fold(0, |all, (_, flag)| all | flag), ALL_NAMESPACES);
    }
}
