//! Landlock, landlock(7): a process gives up what it may do with files, TCP and other processes, for good and for all that
//! it starts.
//!
//! A [`Wall`] says what is to be held; [`Wall::compile`] makes of it what this kernel's interface knows, and
//! [`Wall::missing`] names the rest. Rules are about trees of files and can only allow: what is written nowhere but in a few
//! trees can be said, what is read everywhere but in one cannot.
//!
//! # Invariants
//!
//! - What a kernel does not know is left out as a whole, never half of it in a way that would break a program: before version
//!   2 of the interface no file could be renamed from one folder to another, so there it is not asked about files.
//! - The rules are opened in the child, once all is mounted: a file system that is made for it has files that nobody can name
//!   before.

use std::ffi::CString;
use std::fmt;
use std::sync::OnceLock;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_FOLDER: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_FOLDER: u64 = 1 << 7;
const MAKE_FILE: u64 = 1 << 8;
const MAKE_SOCKET: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const MAKE_LINK: u64 = 1 << 12;
/// Renames and links between folders, version 2.
const REFER: u64 = 1 << 13;
/// Version 3.
const TRUNCATE: u64 = 1 << 14;
/// ioctl(2) of devices, version 5.
const IOCTL_DEVICE: u64 = 1 << 15;

/// What can be done with a file that is no folder; the kernel takes no other right for one.
pub(crate) const OF_FILES: u64 = EXECUTE | WRITE_FILE | TRUNCATE | IOCTL_DEVICE;

/// All that changes something.
const WRITE: u64 = WRITE_FILE
    | REMOVE_FOLDER
    | REMOVE_FILE
    | MAKE_CHARACTER_DEVICE
    | MAKE_FOLDER
    | MAKE_FILE
    | MAKE_SOCKET
    | MAKE_FIFO
    | MAKE_BLOCK_DEVICE
    | MAKE_LINK
    | REFER
    | TRUNCATE
    | IOCTL_DEVICE;

/// bind(2) and connect(2) of TCP.
const TCP: u64 = 1 << 0 | 1 << 1;

/// Abstract sockets of processes outside.
const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
/// Signals to processes outside.
const SCOPE_SIGNALS: u64 = 1 << 1;

/// The version of the interface from which on files are asked about, and those of its further parts.
const FILES_SINCE: u32 = 2;
const TRUNCATE_SINCE: u32 = 3;
const TCP_SINCE: u32 = 4;
const IOCTL_SINCE: u32 = 5;
const SCOPES_SINCE: u32 = 6;

/// The version of the kernel's interface; 0: it has none, or is not asked at the boot (`lsm=`).
///
/// Linux 5.13, landlock_create_ruleset(2). Asked once.
#[must_use]
pub fn version() -> u32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: usize = 1;
    static FOUND: OnceLock<u32> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let none = std::ptr::null::<u8>();
        // SAFETY: with this flag the call takes no memory, and says so by a null pointer and the size 0.
        let found = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
        u32::try_from(found).unwrap_or(0)
    })
}

/// What is held of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wall {
    /// It writes nowhere but in these trees and files. None: wherever it may otherwise.
    pub write: Option<Vec<CString>>,
    /// It makes device files there too.
    pub devices: bool,
    /// It executes nothing but from these trees and files. None: whatever it may otherwise.
    pub execute: Option<Vec<CString>>,
    /// It has no TCP, with whichever socket.
    pub no_tcp: bool,
    /// It sends signals to its own processes alone.
    pub own_signals: bool,
    /// It connects to abstract sockets of its own processes alone.
    pub own_sockets: bool,
}

/// What of a [`Wall`] a kernel does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    version: u32,
    parts: Vec<&'static str>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.join(", ");
        match self.version {
            0 => write!(
                f,
                "Landlock does not hold {parts}: this kernel has none, or 'lsm=' of its command line leaves it out"
            ),
            version => write!(f, "Landlock does not hold {parts}: this kernel has version {version} of it"),
        }
    }
}

impl Wall {
    fn asks_for_files(&self) -> bool {
        self.write.is_some() || self.execute.is_some()
    }

    /// What a kernel with this version does not hold of it.
    #[must_use]
    pub fn missing(&self, version: u32) -> Option<Missing> {
        let parts: Vec<&'static str> = [
            (self.asks_for_files(), FILES_SINCE, "files"),
            (self.write.is_some() && version >= FILES_SINCE, TRUNCATE_SINCE, "truncate(2)"),
            (self.no_tcp, TCP_SINCE, "TCP"),
            (self.own_signals, SCOPES_SINCE, "signals"),
            (self.own_sockets, SCOPES_SINCE, "abstract sockets"),
        ]
        .into_iter()
        .filter(|(asked, since, _)| *asked && version < *since)
        .map(|(_, _, part)| part)
        .collect();
        (!parts.is_empty()).then_some(Missing { version, parts })
    }

    /// The rules for a kernel with this version; none where nothing is left of them.
    #[must_use]
    pub fn compile(self, version: u32) -> Option<Rules> {
        let known = WRITE
            & !(if version < TRUNCATE_SINCE { TRUNCATE } else { 0 })
            & !(if version < IOCTL_SINCE { IOCTL_DEVICE } else { 0 });
        let kept = if self.devices { known } else { known & !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE) };
        let mut rules = Rules::default();
        if version >= FILES_SINCE {
            if let Some(places) = self.write {
                rules.handled.files |= known;
                rules.own_output = known & (WRITE_FILE | TRUNCATE);
                rules.paths.extend(places.into_iter().map(|place| (place, kept)));
            } else if self.execute.is_some() {
                // Whoever is asked about files at all may rename between folders only where a rule says so.
                rules.handled.files |= REFER;
                rules.paths.push((c"/".to_owned(), REFER));
            }
            if let Some(places) = self.execute {
                rules.handled.files |= EXECUTE;
                rules.paths.extend(places.into_iter().map(|place| (place, EXECUTE)));
            }
        }
        if version >= TCP_SINCE && self.no_tcp {
            rules.handled.network = TCP;
        }
        if version >= SCOPES_SINCE {
            let scope = |wanted, bit| if wanted { bit } else { 0 };
            rules.handled.scoped =
                scope(self.own_sockets, SCOPE_ABSTRACT_SOCKETS) | scope(self.own_signals, SCOPE_SIGNALS);
        }
        (rules.handled != Handled::default()).then_some(rules)
    }
}

/// `struct landlock_ruleset_attr`. Older kernels know fewer words, and take more of them if they are zero.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Handled {
    pub(crate) files: u64,
    pub(crate) network: u64,
    pub(crate) scoped: u64,
}

/// What is told to the kernel: what it is to ask about, and what is allowed of that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    pub(crate) handled: Handled,
    /// Trees and files, and what may be done there.
    pub(crate) paths: Vec<(CString, u64)>,
    /// What may be done with the files that are its standard output and standard error: `/dev/stdout` opens them anew.
    pub(crate) own_output: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> Wall {
        Wall {
            write: Some(vec![c"/var/lib/a".to_owned()]),
            execute: None,
            devices: false,
            no_tcp: true,
            own_signals: true,
            own_sockets: true,
        }
    }

    #[test]
    fn a_kernel_is_told_what_its_version_knows() {
        for (version, files, network, scoped) in [
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (2, WRITE & !TRUNCATE & !IOCTL_DEVICE, 0, 0),
            (3, WRITE & !IOCTL_DEVICE, 0, 0),
            (4, WRITE & !IOCTL_DEVICE, TCP, 0),
            (5, WRITE, TCP, 0),
            (6, WRITE, TCP, SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS),
            (99, WRITE, TCP, SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS),
        ] {
            let handled = strict().compile(version).map(|rules| rules.handled).unwrap_or_default();
            assert_eq!(handled, Handled { files, network, scoped }, "version {version}");
        }
    }

    #[test]
    fn what_a_version_lacks_is_named() {
        for (version, missing) in [
            (
                0,
                "Landlock does not hold files, TCP, signals, abstract sockets: this kernel has none, or 'lsm=' of its command line leaves it out",
            ),
            (
                1,
                "Landlock does not hold files, TCP, signals, abstract sockets: this kernel has version 1 of it",
            ),
            (
                2,
                "Landlock does not hold truncate(2), TCP, signals, abstract sockets: this kernel has version 2 of it",
            ),
            (4, "Landlock does not hold signals, abstract sockets: this kernel has version 4 of it"),
        ] {
            assert_eq!(strict().missing(version).unwrap().to_string(), missing, "{version}");
        }
        assert_eq!(strict().missing(6), None);
        assert_eq!(Wall::default().missing(0), None);
        assert_eq!(Wall::default().compile(7), None);
    }

    #[test]
    fn devices_are_made_only_where_that_is_asked_for() {
        for devices in [false, true] {
            let rules = Wall { devices, ..strict() }.compile(7).unwrap();
            let [(_, allowed)] = rules.paths.as_slice() else { panic!("{rules:?}") };
            assert_eq!(allowed & MAKE_CHARACTER_DEVICE != 0, devices);
            assert_eq!(allowed & MAKE_FILE, MAKE_FILE);
        }
    }

    /// The kernel counts a rename between folders as something that a rule has to allow, whatever it is asked about.
    #[test]
    fn who_is_held_to_programs_alone_still_renames() {
        let wall = Wall { execute: Some(vec![c"/usr".to_owned()]), ..Wall::default() };
        let rules = wall.compile(7).unwrap();
        assert_eq!(rules.handled.files, EXECUTE | REFER);
        assert_eq!(rules.paths, [(c"/".to_owned(), REFER), (c"/usr".to_owned(), EXECUTE)]);
    }
}
