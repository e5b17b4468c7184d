//! Programs that the kernel asks about what the processes of a cgroup do. bpf(2).
//!
//! # Invariants
//!
//! - A program belongs to the cgroup from its attachment on, whatever becomes of the manager, and goes with it.
//! - Of several programs on the way up from a cgroup all are asked, and each can forbid.

pub mod addresses;
mod code;
pub mod devices;

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use code::Instruction;

/// What a program is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Devices.
    Devices,
    /// Packets that come.
    In,
    /// Packets that go.
    Out,
}

/// Commands of bpf(2).
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_DETACH: libc::c_int = 9;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const PROG_QUERY: libc::c_int = 16;

/// BPF_F_ALLOW_MULTI: programs below and above are asked too.
const ALLOW_MULTI: u32 = 2;

/// The kernel's bound for one hook of one cgroup, `BPF_CGROUP_MAX_PROGS`.
const PROGRAMS_MAX: usize = 64;

/// How many programs are kept: units that say the same share one.
const KEPT_MAX: usize = 32;

/// The project's; no helper that is used asks for another.
const LICENSE: &CStr = c"MIT";

impl Hook {
    /// BPF_PROG_TYPE_CGROUP_DEVICE, BPF_PROG_TYPE_CGROUP_SKB of linux/bpf.h.
    const fn program_type(self) -> u32 {
        match self {
            Self::Devices => 15,
            Self::In | Self::Out => 8,
        }
    }

    /// BPF_CGROUP_DEVICE, BPF_CGROUP_INET_INGRESS, BPF_CGROUP_INET_EGRESS.
    const fn attach_type(self) -> u32 {
        match self {
            Self::Devices => 6,
            Self::In => 0,
            Self::Out => 1,
        }
    }
}

/// Loaded programs.
#[derive(Debug, Default)]
pub struct Programs(HashMap<(Hook, Vec<Instruction>), OwnedFd>);

impl Programs {
    /// Makes a program the only one of ours at a hook of a cgroup.
    ///
    /// # Errors
    /// EPERM: CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN, are missing. EINVAL: the kernel does not know the hook, or takes
    /// no program like this.
    pub fn put(&mut self, cgroup: BorrowedFd<'_>, hook: Hook, code: Vec<Instruction>) -> io::Result<()> {
        clear(cgroup, hook)?;
        if self.0.len() >= KEPT_MAX {
            self.0.clear();
        }
        let key = (hook, code);
        if !self.0.contains_key(&key) {
            let program = load(hook, &key.1)?;
            self.0.insert(key.clone(), program);
        }
        let Some(program) = self.0.get(&key) else { return Ok(()) };
        let mut attr = Attr::default();
        attr.words(&[fd(&cgroup), fd(program), hook.attach_type(), ALLOW_MULTI]);
        attr.call(PROG_ATTACH).map(drop)
    }
}

/// Whether programs can be loaded here.
///
/// # Errors
/// As [`Programs::put`].
pub fn probe() -> io::Result<()> {
    load(Hook::Devices, &code::give(1))?;
    load(Hook::In, &code::give(1)).map(drop)
}

/// Takes every program away from a hook of a cgroup.
///
/// # Errors
/// As [`Programs::put`].
pub fn clear(cgroup: BorrowedFd<'_>, hook: Hook) -> io::Result<()> {
    let mut ids = [0_u32; PROGRAMS_MAX];
    let mut attr = Attr::default();
    attr.words(&[fd(&cgroup), hook.attach_type(), 0, 0]);
    attr.0[2] = ids.as_mut_ptr() as u64;
    attr.0[3] = PROGRAMS_MAX as u64;
    attr.call(PROG_QUERY)?;
    let count = usize::try_from(attr.0[3] & u64::from(u32::MAX)).unwrap_or(0);
    for id in ids.iter().take(count) {
        let mut attr = Attr::default();
        attr.words(&[*id]);
        let number = attr.call(PROG_GET_FD_BY_ID)?;
        // SAFETY: the call has just made the descriptor, and nobody else knows of it.
        let program = unsafe { OwnedFd::from_raw_fd(number) };
        let mut attr = Attr::default();
        attr.words(&[fd(&cgroup), fd(&program), hook.attach_type(), 0]);
        attr.call(PROG_DETACH)?;
    }
    Ok(())
}

fn load(hook: Hook, code: &[Instruction]) -> io::Result<OwnedFd> {
    let mut attr = Attr::default();
    attr.words(&[hook.program_type(), u32::try_from(code.len()).unwrap_or(u32::MAX)]);
    attr.0[1] = code.as_ptr() as u64;
    attr.0[2] = LICENSE.as_ptr() as u64;
    // expected_attach_type is the word behind prog_ifindex.
    attr.0[8] = u64::from(hook.attach_type()) << 32;
    let number = attr.call(PROG_LOAD)?;
    // SAFETY: the call has just made the descriptor, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn fd(fd: &impl AsRawFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// `union bpf_attr`, as much of it as is used: words of 32 bits two by two, and addresses.
#[derive(Default)]
struct Attr([u64; 9]);

impl Attr {
    /// Sets the first words of 32 bits.
    fn words(&mut self, words: &[u32]) {
        for (slot, pair) in self.0.iter_mut().zip(words.chunks(2)) {
            let word = |index: usize| u64::from(pair.get(index).copied().unwrap_or(0));
            // The lower half stands first on all that agentd knows.
            *slot = word(0) | word(1) << 32;
        }
    }

    fn call(&mut self, command: libc::c_int) -> io::Result<i32> {
        let attr = self.0.as_mut_ptr();
        // SAFETY: the union is a live local of the length that is told; each address in it, set by the callers above, is of
        // a live array with as many entries as the word beside it says, or of a string that ends in NUL.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<Self>()) };
        match i32::try_from(result) {
            Ok(number) if number >= 0 => Ok(number),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use std::os::fd::AsFd;

    use super::addresses::{Direction, Range, filter};
    use super::devices::{DeviceAccess, DeviceKind, only};
    use super::*;

    /// The kernel reads each program before it takes it: no jump out of it, nothing unreachable, no unset register.
    #[test]
    fn the_kernel_takes_every_program() {
        if probe().is_err() {
            assert!(std::env::var_os("CI").is_none(), "programs must be loadable here");
            return;
        }
        let v4 = |bits| Range { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), bits };
        let v6 = |bits| Range { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits };
        let lists: [&[Range]; 5] = [
            &[],
            &[v4(0), v6(0)],
            &[v4(8), v4(31), v4(32)],
            &[v6(1), v6(32), v6(64), v6(127), v6(128)],
            &[v4(0), v4(8), v6(0), v6(8)],
        ];
        for (hook, direction) in [(Hook::In, Direction::In), (Hook::Out, Direction::Out)] {
            for allow in lists {
                for deny in lists {
                    let code = filter(direction, allow, deny);
                    assert!(
                        load(hook, &code).is_ok(),
                        "{allow:?} {deny:?}: {:?}",
                        io::Error::last_os_error()
                    );
                }
            }
        }
        let entry = |major, minor, read| DeviceAccess {
            kind: DeviceKind::Character,
            major,
            minor,
            read,
            write: true,
            make: true,
        };
        for entries in [vec![], vec![entry(None, None, true)], vec![entry(Some(1), Some(3), false); 200]] {
            assert!(load(Hook::Devices, &only(&entries)).is_ok(), "{entries:?}");
        }
    }
    /// How many programs a hook has.
    fn count(cgroup: BorrowedFd<'_>, hook: Hook) -> u64 {
        let mut attr = Attr::default();
        attr.words(&[fd(&cgroup), hook.attach_type(), 0, 0]);
        attr.call(PROG_QUERY).unwrap();
        attr.0[3] & u64::from(u32::MAX)
    }

    #[test]
    fn a_hook_has_the_last_program_alone() {
        use crate::cgroup::{CgroupRoot, Place};
        let place = format!("agentd-test-bpf-{}", std::process::id());
        let root = CgroupRoot::set_up(Place::Folder(&place));
        let (Ok(mut root), Ok(())) = (root, probe()) else {
            assert!(std::env::var_os("CI").is_none(), "programs must be loadable here");
            return;
        };
        let leaf = root.leaf("system.slice", "walled.service").unwrap();
        let mut programs = Programs::default();
        for verdict in [0, 1, 0] {
            programs.put(leaf.as_fd(), Hook::Out, code::give(verdict).to_vec()).unwrap();
            assert_eq!(count(leaf.as_fd(), Hook::Out), 1);
        }
        assert_eq!(programs.0.len(), 2, "the same code is loaded once");
        clear(leaf.as_fd(), Hook::Out).unwrap();
        assert_eq!(count(leaf.as_fd(), Hook::Out), 0);
        leaf.remove().unwrap();
        root.leave();
    }
}
