//! Sets of capabilities, capabilities(7).

use super::Refused;
use crate::diagnostic::{nearest, quote};
use crate::sections::CapabilityMask;

/// The names without `CAP_`, by number, up to Linux 5.9's `checkpoint_restore`.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Every capability that has a name. One that a newer kernel adds is in no set written here: it fails closed.
pub const ALL: CapabilityMask = (1 << NAMES.len()) - 1;

/// What one assignment says: these capabilities, or (`~`) all but these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// These.
    Only(CapabilityMask),
    /// All but these.
    AllBut(CapabilityMask),
}

/// Words such as `CAP_NET_RAW`; a `~` before the first inverts the whole.
///
/// # Errors
/// A word that is no capability's name.
pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Set, Refused> {
    let mut inverted = false;
    let mut mask = 0;
    for (index, word) in words.into_iter().enumerate() {
        let name = match word.strip_prefix('~') {
            Some(_) if index > 0 => {
                let help = "a ~ before the first capability turns the whole list round";
                return Err(Refused::of(word, "has its ~ in the middle", help));
            }
            Some(name) => {
                inverted = true;
                name
            }
            None => word,
        };
        // A lone ~ is "all but none".
        if !(name.is_empty() && inverted) {
            mask |= 1 << number(name)?;
        }
    }
    Ok(if inverted { Set::AllBut(mask) } else { Set::Only(mask) })
}

fn number(name: &str) -> Result<usize, Refused> {
    let bare = name.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case("CAP_")).map(|_| &name[4..]);
    let by_name = |bare: &str| NAMES.iter().position(|known| known.eq_ignore_ascii_case(bare));
    if let Some(number) = bare.and_then(by_name) {
        return Ok(number);
    }
    let near = nearest(bare.unwrap_or(name), NAMES);
    let help =
        near.map_or("capabilities(7) lists them".to_owned(), |near| format!("did you mean CAP_{near}?"));
    Err(Refused::with_help(format!("{} is no capability", quote(name)), help))
}

/// The names of a set, in the order of their numbers, as `CapabilityBoundingSet` takes them back.
#[must_use]
pub fn names(mask: CapabilityMask) -> Vec<String> {
    NAMES
        .iter()
        .enumerate()
        .filter(|(n, _)| mask >> n & 1 == 1)
        .map(|(_, name)| format!("CAP_{name}"))
        .collect()
}

/// What a set becomes when one more assignment follows, systemd.exec(5) `CapabilityBoundingSet`: the first replaces
/// what there is by default, later ones add to it or (`~`) take away; a lone `~` is everything.
#[must_use]
pub fn merge(before: Option<CapabilityMask>, set: Set) -> CapabilityMask {
    match (before, set) {
        (None, Set::Only(mask)) => mask,
        (Some(before), Set::Only(mask)) => before | mask,
        (None, Set::AllBut(mask)) => ALL & !mask,
        (Some(_), Set::AllBut(0)) => ALL,
        (Some(before), Set::AllBut(mask)) => before & !mask,
    }
}
