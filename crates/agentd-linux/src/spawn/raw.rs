//! System calls with nothing in between: what the newborn child may use.
//!
//! A child that shares the manager's memory also shares its thread-local storage. A wrapper of libc would write
//! `errno` there, take libc's locks, or refresh its caches. These do not: a number in, a number out.
//!
//! # Invariants
//!
//! - Nothing here allocates, locks, panics or touches thread-local storage.
//! - A failed call gives its errno as `Err`; no global is involved.

mod landlock;
mod mount;

pub(super) use landlock::{allow_beneath, create_ruleset, open_place, restrict_self};
pub(super) use mount::{
    enter, loopback_up, make_file, make_folder, mount, mount_setattr, move_mount, open_tree, unshare,
};

use core::arch::asm;
use core::ffi::{c_char, c_int, c_long};
use core::sync::atomic::AtomicU32;

/// A positive errno.
pub(super) type Errno = i32;

/// The result of a call: what the kernel returned, or errno.
pub(super) type Raw = Result<usize, Errno>;

/// Makes one system call.
///
/// # Safety
/// Every argument that the call takes as an address must be valid for what the call does with it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn syscall(number: c_long, args: [usize; 6]) -> Raw {
    let [a, b, c, d, e, f] = args;
    let result: isize;
    // SAFETY: the kernel clobbers rax, rcx and r11 alone; the caller vouches for the addresses.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c,
             in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    outcome(result)
}

/// Makes one system call.
///
/// # Safety
/// Every argument that the call takes as an address must be valid for what the call does with it.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) unsafe fn syscall(number: c_long, args: [usize; 6]) -> Raw {
    let [a, b, c, d, e, f] = args;
    let result: isize;
    // SAFETY: the kernel clobbers x0 alone; the caller vouches for the addresses.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") d,
             in("x4") e, in("x5") f, options(nostack));
    }
    outcome(result)
}

/// The kernel's convention: -4095 to -1 are errors.
#[inline(always)]
fn outcome(result: isize) -> Raw {
    if (-4095..0).contains(&result) { Err((-result) as Errno) } else { Ok(result as usize) }
}

/// Makes a call whose arguments are all numbers.
#[inline(always)]
fn numbers(number: c_long, args: [usize; 6]) -> Raw {
    // SAFETY: the callers in this file pass numbers of calls that read and write no memory of ours.
    unsafe { syscall(number, args) }
}

/// Sign-extends, as the kernel expects of an int in a 64-bit register.
#[inline(always)]
fn int(value: c_int) -> usize {
    value as isize as usize
}

/// getpid(2).
pub(super) fn getpid() -> u32 {
    numbers(libc::SYS_getpid, [0; 6]).unwrap_or(0) as u32
}

/// keyctl(2) KEYCTL_JOIN_SESSION_KEYRING with no name: a new ring.
pub(super) fn own_session_keyring() -> Raw {
    numbers(libc::SYS_keyctl, [libc::KEYCTL_JOIN_SESSION_KEYRING as usize, 0, 0, 0, 0, 0])
}

/// keyctl(2) KEYCTL_LINK of the user's ring to that of the session.
pub(super) fn link_user_keyring() -> Raw {
    let [user, session] = [libc::KEY_SPEC_USER_KEYRING, libc::KEY_SPEC_SESSION_KEYRING].map(int);
    numbers(libc::SYS_keyctl, [libc::KEYCTL_LINK as usize, user, session, 0, 0, 0])
}

/// setsid(2).
pub(super) fn setsid() -> Raw {
    numbers(libc::SYS_setsid, [0; 6])
}

/// umask(2), which cannot fail.
pub(super) fn umask(mask: u32) {
    // The result is the old mask.
    let _old = numbers(libc::SYS_umask, [mask as usize, 0, 0, 0, 0, 0]);
}

/// setpriority(2) of the caller itself: where it may not have so low a nice value, the lowest that it may, as in systemd.
pub(super) fn set_nice(nice: i32) -> Raw {
    let set = |nice| numbers(libc::SYS_setpriority, [libc::PRIO_PROCESS as usize, 0, int(nice), 0, 0, 0]);
    let errno = match set(nice) {
        Err(errno @ (libc::EACCES | libc::EPERM)) => errno,
        done => return done,
    };
    // The call itself gives 20 less the nice value, so that it is never negative.
    let current = 20 - numbers(libc::SYS_getpriority, [libc::PRIO_PROCESS as usize, 0, 0, 0, 0, 0])? as c_int;
    if nice >= current {
        return Err(errno);
    }
    let limit = rlimit(libc::RLIMIT_NICE)?.rlim_cur;
    let lowest = nice.max(20 - if limit > 40 { 40 } else { limit as c_int });
    if lowest < current { set(lowest) } else { Ok(0) }
}

/// sched_setscheduler(2) of the caller itself.
pub(super) fn set_scheduler(policy: i32, priority: i32) -> Raw {
    let parameters: c_int = priority;
    // SAFETY: the call reads one int, which is all that struct sched_param has, from the live local.
    unsafe {
        syscall(libc::SYS_sched_setscheduler, [0, int(policy), &raw const parameters as usize, 0, 0, 0])
    }
}

/// sched_setaffinity(2) of the caller itself.
pub(super) fn set_affinity(mask: &[u8]) -> Raw {
    // SAFETY: the call reads as many bytes as the slice holds.
    unsafe { syscall(libc::SYS_sched_setaffinity, [0, mask.len(), mask.as_ptr() as usize, 0, 0, 0]) }
}

/// set_mempolicy(2) of the caller itself. The kernel looks at one bit less than it is told of.
pub(super) fn set_memory_policy(mode: i32, nodes: &[u8]) -> Raw {
    let bits = if nodes.is_empty() { 0 } else { nodes.len() * 8 + 1 };
    let address = if nodes.is_empty() { 0 } else { nodes.as_ptr() as usize };
    // SAFETY: the call reads as many whole words as the bits fill, which are those of the slice, or nothing.
    unsafe { syscall(libc::SYS_set_mempolicy, [int(mode), address, bits, 0, 0, 0]) }
}

/// personality(2).
pub(super) fn set_personality(personality: u32) -> Raw {
    numbers(libc::SYS_personality, [personality as usize, 0, 0, 0, 0, 0])
}

/// read(2).
pub(super) fn read(fd: c_int, bytes: &mut [u8]) -> Raw {
    // SAFETY: the call writes at most as many bytes as the slice holds.
    unsafe { syscall(libc::SYS_read, [int(fd), bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

/// `IOPRIO_WHO_PROCESS`, ioprio_set(2).
const IOPRIO_WHO_PROCESS: usize = 1;

/// ioprio_set(2) of the caller itself.
pub(super) fn set_io_priority(priority: i32) -> Raw {
    numbers(libc::SYS_ioprio_set, [IOPRIO_WHO_PROCESS, 0, int(priority), 0, 0, 0])
}

/// ioctl(2) TIOCSCTTY: makes a terminal the controlling one of the caller's session.
pub(super) fn take_terminal(fd: c_int, force: bool) -> Raw {
    numbers(libc::SYS_ioctl, [int(fd), libc::TIOCSCTTY as usize, usize::from(force), 0, 0, 0])
}

/// setresgid(2), all three the same.
pub(super) fn set_gid(gid: u32) -> Raw {
    let gid = gid as usize;
    numbers(libc::SYS_setresgid, [gid, gid, gid, 0, 0, 0])
}

/// setresuid(2), all three the same.
pub(super) fn set_uid(uid: u32) -> Raw {
    let uid = uid as usize;
    numbers(libc::SYS_setresuid, [uid, uid, uid, 0, 0, 0])
}

/// prctl(2) with options that take numbers only.
pub(super) fn prctl(option: c_int, a: usize, b: usize) -> Raw {
    numbers(libc::SYS_prctl, [int(option), a, b, 0, 0, 0])
}

/// prctl(2) PR_SET_SECCOMP: adds a filter to those that there are.
pub(super) fn add_filter(program: &[libc::sock_filter]) -> Raw {
    // A program is never longer than 4096 instructions; the kernel only reads it.
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_MODE_FILTER as usize;
    let args = [int(libc::PR_SET_SECCOMP), mode, &raw const filter as usize, 0, 0, 0];
    // SAFETY: the call reads the live local and the instructions of the slice.
    unsafe { syscall(libc::SYS_prctl, args) }
}

/// fcntl(2) F_DUPFD_CLOEXEC: the lowest free descriptor that is not below `least`.
pub(super) fn duplicate_above(fd: c_int, least: c_int) -> Raw {
    numbers(libc::SYS_fcntl, [int(fd), libc::F_DUPFD_CLOEXEC as usize, int(least), 0, 0, 0])
}

/// fcntl(2) F_SETFD FD_CLOEXEC.
pub(super) fn set_cloexec(fd: c_int) -> Raw {
    numbers(libc::SYS_fcntl, [int(fd), libc::F_SETFD as usize, libc::FD_CLOEXEC as usize, 0, 0, 0])
}

/// dup3(2) without flags: the copy stays open over an exec.
pub(super) fn duplicate_to(fd: c_int, target: c_int) -> Raw {
    numbers(libc::SYS_dup3, [int(fd), int(target), 0, 0, 0, 0])
}

/// dup3(2) with O_CLOEXEC: the number becomes a copy of `fd`.
pub(super) fn place(fd: c_int, number: c_int) -> Raw {
    numbers(libc::SYS_dup3, [int(fd), int(number), libc::O_CLOEXEC as usize, 0, 0, 0])
}

/// close_range(2) with CLOSE_RANGE_CLOEXEC, Linux 5.11: everything from `first` up ends at the exec.
pub(super) fn cloexec_from(first: u32) -> Raw {
    let flags = libc::CLOSE_RANGE_CLOEXEC as usize;
    numbers(libc::SYS_close_range, [first as usize, u32::MAX as usize, flags, 0, 0, 0])
}

/// close_range(2) with CLOSE_RANGE_UNSHARE, Linux 5.9: a table of our own that has what is below `first` alone. The kernel
/// does not even copy the rest.
pub(super) fn unshare_below(first: u32) -> Raw {
    const UNSHARE: usize = libc::CLOSE_RANGE_UNSHARE as usize;
    numbers(libc::SYS_close_range, [first as usize, u32::MAX as usize, UNSHARE, 0, 0, 0])
}

/// futex(2) FUTEX_WAIT, of the kind that the kernel wakes for CLONE_CHILD_CLEARTID: not a private one. `most`: no longer.
pub(super) fn futex_wait(word: &AtomicU32, expected: u32, most: Option<&libc::timespec>) -> Raw {
    let address = word.as_ptr() as usize;
    let most = most.map_or(0, |most| std::ptr::from_ref(most) as usize);
    // SAFETY: the call reads the word, which is borrowed, and the time, if there is one.
    unsafe { syscall(libc::SYS_futex, [address, libc::FUTEX_WAIT as usize, expected as usize, most, 0, 0]) }
}

/// close(2).
pub(super) fn close(fd: c_int) -> Raw {
    numbers(libc::SYS_close, [int(fd), 0, 0, 0, 0, 0])
}

/// exit_group(2): ends the process without running anything of ours. Its own filters may refuse that: then by SIGKILL, and
/// where that is refused too by an illegal instruction, for which no call is needed.
pub(super) fn exit(status: u8) -> ! {
    let _refused = numbers(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]);
    if let Ok(own) = numbers(libc::SYS_getpid, [0; 6]) {
        let _refused = numbers(libc::SYS_kill, [own, libc::SIGKILL as usize, 0, 0, 0, 0]);
    }
    illegal()
}

#[cfg(target_arch = "x86_64")]
fn illegal() -> ! {
    // SAFETY: the instruction raises SIGILL and touches nothing.
    unsafe { asm!("ud2", options(noreturn, nomem, nostack)) }
}

#[cfg(target_arch = "aarch64")]
fn illegal() -> ! {
    // SAFETY: the instruction raises SIGILL and touches nothing.
    unsafe { asm!("udf #0", options(noreturn, nomem, nostack)) }
}

/// setgroups(2).
pub(super) fn set_groups(groups: &[u32]) -> Raw {
    // SAFETY: the call reads as many 32-bit ids as the slice holds.
    unsafe { syscall(libc::SYS_setgroups, [groups.len(), groups.as_ptr() as usize, 0, 0, 0, 0]) }
}

/// prlimit64(2) of the caller itself.
pub(super) fn set_rlimit(resource: u32, limit: &libc::rlimit64) -> Raw {
    let limit = std::ptr::from_ref(limit) as usize;
    // SAFETY: the call reads one rlimit64 from the reference and writes nothing, as the old one is not asked for.
    unsafe { syscall(libc::SYS_prlimit64, [0, resource as usize, limit, 0, 0, 0]) }
}

/// prlimit64(2) of the caller itself: the limit that it has.
pub(super) fn rlimit(resource: u32) -> Result<libc::rlimit64, Errno> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let args = [0, resource as usize, 0, &raw mut limit as usize, 0, 0];
    // SAFETY: the call writes one rlimit64 to the live local and reads nothing.
    unsafe { syscall(libc::SYS_prlimit64, args) }?;
    Ok(limit)
}

/// The kernel's signal set has 64 bits on every architecture that agentd knows.
const SIGSET_BYTES: usize = 8;

/// rt_sigprocmask(2) SIG_SETMASK with the kernel's own set; gives the mask there was.
pub(super) fn set_signal_mask(mask: u64) -> Result<u64, Errno> {
    let mut old = 0u64;
    let args =
        [libc::SIG_SETMASK as usize, &raw const mask as usize, &raw mut old as usize, SIGSET_BYTES, 0, 0];
    // SAFETY: the call reads eight bytes from one live local and writes eight to the other.
    unsafe { syscall(libc::SYS_rt_sigprocmask, args) }?;
    Ok(old)
}

/// What rt_sigaction(2) takes; a zeroed one is SIG_DFL with an empty mask. Four words on x86_64, three on aarch64.
pub(super) type KernelSigaction = [usize; 4];

/// rt_sigaction(2): gives `signal` its default disposition.
pub(super) fn default_disposition(signal: c_int) -> Raw {
    let action: KernelSigaction = [0; 4];
    let args = [int(signal), &raw const action as usize, 0, SIGSET_BYTES, 0, 0];
    // SAFETY: the call reads at most the four words of the live local.
    unsafe { syscall(libc::SYS_rt_sigaction, args) }
}

/// rt_sigaction(2): has `signal` ignored, which an exec hands down.
pub(super) fn ignore(signal: c_int) -> Raw {
    let action: KernelSigaction = [libc::SIG_IGN, 0, 0, 0];
    let args = [int(signal), &raw const action as usize, 0, SIGSET_BYTES, 0, 0];
    // SAFETY: the call reads at most the four words of the live local.
    unsafe { syscall(libc::SYS_rt_sigaction, args) }
}

/// rt_sigaction(2): the disposition of `signal`, which is SIG_DFL, SIG_IGN or the address of a handler.
pub(super) fn disposition(signal: c_int) -> Raw {
    let mut action: KernelSigaction = [0; 4];
    let args = [int(signal), 0, &raw mut action as usize, SIGSET_BYTES, 0, 0];
    // SAFETY: the call writes at most the four words of the live local.
    unsafe { syscall(libc::SYS_rt_sigaction, args) }?;
    let [handler, ..] = action;
    Ok(handler)
}

/// chdir(2).
///
/// # Safety
/// `path` must point to a string that ends in NUL.
pub(super) unsafe fn chdir(path: *const c_char) -> Raw {
    // SAFETY: the call reads the string that the caller vouches for.
    unsafe { syscall(libc::SYS_chdir, [path as usize, 0, 0, 0, 0, 0]) }
}

/// chroot(2).
///
/// # Safety
/// `path` must point to a string that ends in NUL.
pub(super) unsafe fn chroot(path: *const c_char) -> Raw {
    // SAFETY: the call reads the string that the caller vouches for.
    unsafe { syscall(libc::SYS_chroot, [path as usize, 0, 0, 0, 0, 0]) }
}

/// Writes all of a short text to a file at once: openat(2), write(2), close(2).
pub(super) fn write_file(folder: c_int, path: &core::ffi::CStr, text: &[u8]) -> Raw {
    let flags = (libc::O_WRONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: the call reads the string, which the type says ends in NUL.
    let fd =
        unsafe { syscall(libc::SYS_openat, [int(folder), path.as_ptr() as usize, flags, 0, 0, 0]) }? as c_int;
    let written = write(fd, text);
    close(fd)?;
    written
}

/// write(2).
pub(super) fn write(fd: c_int, bytes: &[u8]) -> Raw {
    // SAFETY: the call reads as many bytes as the slice holds.
    unsafe { syscall(libc::SYS_write, [int(fd), bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

/// execve(2). Comes back only with an error.
///
/// # Safety
/// `path` must end in NUL; `argv` and `envp` must be arrays of such strings that end in a null pointer.
pub(super) unsafe fn execve(
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> Errno {
    // SAFETY: the call reads the strings and arrays that the caller vouches for.
    let result = unsafe { syscall(libc::SYS_execve, [path as usize, argv as usize, envp as usize, 0, 0, 0]) };
    result.err().unwrap_or(0)
}

/// execveat(2) of what the descriptor is open on, whatever its name now is. Comes back only with an error.
///
/// # Safety
/// `argv` and `envp` must be arrays of strings that end in NUL, and end in a null pointer themselves.
pub(super) unsafe fn execve_fd(fd: c_int, argv: *const *const c_char, envp: *const *const c_char) -> Errno {
    let args =
        [int(fd), c"".as_ptr() as usize, argv as usize, envp as usize, libc::AT_EMPTY_PATH as usize, 0];
    // SAFETY: the call reads the strings and arrays that the caller vouches for.
    let result = unsafe { syscall(libc::SYS_execveat, args) };
    result.err().unwrap_or(0)
}

/// One half of what capget(2) and capset(2) pass; two of them make 64 capabilities.
#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityWord {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The version word and the process (0 is the caller) in front of the sets.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// _LINUX_CAPABILITY_VERSION_3: 64-bit sets, Linux 2.6.26.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The effective, permitted and inheritable sets of the caller, capability N at bit N.
#[derive(Clone, Copy)]
pub(super) struct CapabilitySets {
    pub(super) effective: u64,
    pub(super) permitted: u64,
    pub(super) inheritable: u64,
}

/// capget(2) of the caller.
pub(super) fn capabilities() -> Result<CapabilitySets, Errno> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut words = [CapabilityWord { effective: 0, permitted: 0, inheritable: 0 }; 2];
    let args = [&raw mut header as usize, words.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: version 3 writes two words, which is what the live local has; the header is a live local as well.
    unsafe { syscall(libc::SYS_capget, args) }?;
    let [low, high] = words;
    Ok(CapabilitySets {
        effective: u64::from(low.effective) | u64::from(high.effective) << 32,
        permitted: u64::from(low.permitted) | u64::from(high.permitted) << 32,
        inheritable: u64::from(low.inheritable) | u64::from(high.inheritable) << 32,
    })
}

/// capset(2) of the caller.
pub(super) fn set_capabilities(sets: CapabilitySets) -> Raw {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let half = |shift: u32| CapabilityWord {
        effective: (sets.effective >> shift) as u32,
        permitted: (sets.permitted >> shift) as u32,
        inheritable: (sets.inheritable >> shift) as u32,
    };
    let words = [half(0), half(32)];
    let args = [&raw mut header as usize, words.as_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: version 3 reads two words, which is what the live local has; the header is a live local as well.
    unsafe { syscall(libc::SYS_capset, args) }
}
