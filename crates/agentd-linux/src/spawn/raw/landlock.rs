//! The calls of landlock(7).

use core::ffi::{CStr, c_int};

use super::{Raw, int, numbers, syscall};
use crate::landlock::Handled;

/// `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: usize = 1;

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: c_int,
}

/// landlock_create_ruleset(2), Linux 5.13: what the kernel is to ask about. The descriptor is close-on-exec from birth.
pub(in super::super) fn create_ruleset(handled: &Handled) -> Raw {
    let args = [std::ptr::from_ref(handled) as usize, size_of::<Handled>(), 0, 0, 0, 0];
    // SAFETY: the call reads as many bytes as the reference is to.
    unsafe { syscall(libc::SYS_landlock_create_ruleset, args) }
}

/// landlock_add_rule(2), Linux 5.13: what is allowed of what the descriptor is open on, and below it.
pub(in super::super) fn allow_beneath(ruleset: c_int, parent: c_int, allowed: u64) -> Raw {
    let rule = PathBeneath { allowed, parent };
    let args = [int(ruleset), PATH_BENEATH, &raw const rule as usize, 0, 0, 0];
    // SAFETY: the call reads as many bytes as the live local has.
    unsafe { syscall(libc::SYS_landlock_add_rule, args) }
}

/// landlock_restrict_self(2), Linux 5.13: from now on the rules count.
pub(in super::super) fn restrict_self(ruleset: c_int) -> Raw {
    numbers(libc::SYS_landlock_restrict_self, [int(ruleset), 0, 0, 0, 0, 0])
}

/// openat(2) O_PATH: something to name a place by.
pub(in super::super) fn open_place(path: &CStr) -> Raw {
    let flags = (libc::O_PATH | libc::O_CLOEXEC) as usize;
    // SAFETY: the call reads the string, which ends in NUL by its type.
    unsafe { syscall(libc::SYS_openat, [int(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0, 0, 0]) }
}
