//! Giving birth: clone3(2) where it is allowed, clone(2) where it is not, on a stack of the child's own.

use core::arch::asm;
use core::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use super::presence::Presence;
use super::raw::{Errno, syscall};

/// What the child runs. It never returns.
pub(super) type Entry = unsafe extern "C" fn(*mut c_void) -> !;

/// Room for the deepest call of the child in a debug build many times over; untouched pages cost nothing.
const STACK_BYTES: usize = 64 * 1024;

/// A stack that ends in a page without access, so that running over it faults and destroys nothing.
#[derive(Debug)]
pub(super) struct Stack {
    base: NonNull<c_void>,
    guard: usize,
}

// SAFETY: the mapping belongs to this value alone, and no thread is bound to it.
unsafe impl Send for Stack {}

impl Stack {
    /// Maps one: mmap(2), mprotect(2).
    pub(super) fn new() -> io::Result<Self> {
        let guard = page_size();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlays nothing of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), guard + STACK_BYTES, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let stack = Self { base, guard };
        // SAFETY: the range is the first page of the mapping that was just made and that nothing uses yet.
        if unsafe { libc::mprotect(base.as_ptr(), guard, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    /// The lowest usable address.
    fn low(&self) -> usize {
        self.base.as_ptr() as usize + self.guard
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the range is the one that `new` mapped, and no child runs on it: whoever lends it waits
        // until the child has left.
        let result = unsafe { libc::munmap(self.base.as_ptr(), self.guard + STACK_BYTES) };
        debug_assert_eq!(result, 0, "the mapping was ours");
    }
}

/// sysconf(3) _SC_PAGESIZE.
fn page_size() -> usize {
    // SAFETY: the call takes a number and touches no memory of ours.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Whose memory the child uses until its exec.
#[derive(Debug, Clone, Copy)]
pub(super) enum Memory<'a> {
    /// A copy: it costs that of the page tables.
    Copied,
    /// CLONE_VM | CLONE_VFORK: the parent's, which waits in the call for exec or exit.
    Lent,
    /// CLONE_VM | CLONE_CHILD_CLEARTID: the parent's, which goes on, and is told here when the child is past its exec or
    /// gone. Only with `clone3`.
    Shared(&'a Presence),
}

/// How the child is born.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth<'a> {
    pub(super) memory: Memory<'a>,
    /// CLONE_FILES: no copy of the table of descriptors either. Not with a copy of the memory.
    pub(super) share_descriptors: bool,
    /// CLONE_INTO_CGROUP, Linux 5.7. Only with `clone3`.
    pub(super) cgroup: Option<BorrowedFd<'a>>,
    /// CLONE_NEWPID and CLONE_NEWUSER, as they are asked for.
    pub(super) namespaces: i32,
    /// Use clone3 with CLONE_CLEAR_SIGHAND, Linux 5.5; else clone(2), whose child keeps the handlers.
    pub(super) clone3: bool,
}

/// struct clone_args of linux/sched.h, as of Linux 5.7 (CLONE_ARGS_SIZE_VER2).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// CLONE_CLEAR_SIGHAND and CLONE_INTO_CGROUP lie above the 32 bits of clone(2), and libc has them as ints.
const CLEAR_SIGHAND: u64 = 1 << 32;
const INTO_CGROUP: u64 = 1 << 33;

/// Whether clone3 can be called at all: a seccomp filter may answer ENOSYS or EPERM in its place.
pub(super) fn clone3_answers() -> bool {
    // SAFETY: a size of zero is refused with EINVAL before the address is looked at.
    let result = unsafe { syscall(libc::SYS_clone3, [0; 6]) };
    result == Err(libc::EINVAL)
}

/// Starts a child at `entry` with `argument`. Gives its pid and a close-on-exec pidfd.
///
/// # Safety
/// `entry` with `argument` must keep to raw system calls and to memory that nobody else uses until the child has
/// called exec or exit: no allocation, no lock, no thread-local storage, no unwinding. All signals must be blocked,
/// as a handler would run in the child on this memory. Nobody else may use the stack meanwhile. Of memory that is
/// shared, the stack, the argument and the presence must stay until the child has left.
pub(super) unsafe fn clone(
    birth: Birth<'_>,
    stack: &Stack,
    entry: Entry,
    argument: *mut c_void,
) -> Result<(u32, OwnedFd), Errno> {
    let mut pidfd: RawFd = -1;
    let mut flags = (libc::CLONE_PIDFD | birth.namespaces) as u64;
    let mut child_tid = 0;
    match birth.memory {
        Memory::Copied => {}
        Memory::Lent => flags |= (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        Memory::Shared(presence) => {
            flags |= (libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID) as u64;
            child_tid = presence.begin() as u64;
        }
    }
    if birth.share_descriptors {
        flags |= libc::CLONE_FILES as u64;
    }
    let result = if birth.clone3 {
        let args = CloneArgs {
            flags: flags | CLEAR_SIGHAND | if birth.cgroup.is_some() { INTO_CGROUP } else { 0 },
            pidfd: &raw mut pidfd as u64,
            child_tid,
            exit_signal: libc::SIGCHLD as u64,
            stack: stack.low() as u64,
            stack_size: STACK_BYTES as u64,
            cgroup: birth.cgroup.map_or(0, |fd| fd.as_raw_fd() as u64),
            ..CloneArgs::default()
        };
        let registers = [&raw const args as usize, size_of::<CloneArgs>(), 0, 0, 0];
        // SAFETY: the arguments are live locals, the stack is free, and the caller vouches for the entry.
        unsafe { enter(libc::SYS_clone3, registers, entry, argument) }
    } else {
        let flags = flags as usize | libc::SIGCHLD as usize;
        let top = stack.low() + STACK_BYTES;
        let registers = [flags, top, &raw mut pidfd as usize, 0, 0];
        // SAFETY: as above; with CLONE_PIDFD the third argument is where the pidfd goes.
        unsafe { enter(libc::SYS_clone, registers, entry, argument) }
    };
    if result < 0 {
        if let Memory::Shared(presence) = birth.memory {
            presence.end();
        }
        return Err((-result) as Errno);
    }
    // SAFETY: the call succeeded, so CLONE_PIDFD has put a descriptor there that is ours alone.
    Ok((result as u32, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// The call that returns twice: in the child the stack is a new one, so only assembly may stand after it.
///
/// # Safety
/// As for [`clone`]; the registers must be valid arguments of the call, with a stack for the child among them.
#[cfg(target_arch = "x86_64")]
unsafe fn enter(number: i64, args: [usize; 5], entry: Entry, argument: *mut c_void) -> isize {
    let [a, b, c, d, e] = args;
    let result: isize;
    // SAFETY: in the parent the call clobbers rax, rcx and r11 and nothing of the stack. The child starts on a
    // 16-byte aligned stack, calls `entry`, which never returns, and so never runs anything after the block.
    // r12 and r13 keep their values over the call.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            in("r12") entry, in("r13") argument,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// The call that returns twice: in the child the stack is a new one, so only assembly may stand after it.
///
/// # Safety
/// As for [`clone`]; the registers must be valid arguments of the call, with a stack for the child among them.
#[cfg(target_arch = "aarch64")]
unsafe fn enter(number: i64, args: [usize; 5], entry: Entry, argument: *mut c_void) -> isize {
    let [a, b, c, d, e] = args;
    let result: isize;
    // SAFETY: in the parent the call clobbers x0 alone. The child starts on a 16-byte aligned stack, branches to
    // `entry`, which never returns, and so never runs anything after the block.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, {argument}",
            "blr {entry}",
            "brk 1",
            "2:",
            in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            entry = in(reg) entry, argument = in(reg) argument,
        );
    }
    result
}
