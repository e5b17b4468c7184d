//! What runs between birth and exec.
//!
//! # Invariants
//!
//! - The child makes raw system calls and writes to its [`Walk`] alone: no allocation, no lock, no panic, no
//!   thread-local storage.
//! - Each step is checked. The first that fails is reported and ends the child with the step's exit status; the
//!   program never starts with less than was asked for.
//!
//! # The order
//!
//! own descriptors, cgroup, session, signals, OOM score, scheduling, namespaces and mounts, descriptors, terminal, limits,
//! users, umask, root, bounding set, secure bits, groups, user, keyring, folder, capabilities, no-new-privileges, Landlock,
//! filters, exec. The rules of Landlock are opened with the descriptors, once all is mounted. Limits come after the descriptors, so that a low `LimitNOFILE` does not keep them from being placed. Users of its
//! own come once all is done that needs privileges on the machine; for a manager that has none they come first of all, as
//! they bring those that the other namespaces need. The bounding set and the secure bits come before the
//! user, since both need CAP_SETPCAP; the ambient set after it, since a change of user clears it. The folder is
//! entered as the user: on a network file system only the user may be allowed to.

mod attributes;
mod descriptors;
mod identity;
mod landlock;
mod namespaces;

use core::ffi::{c_char, c_void};
use std::os::fd::RawFd;

use super::mounts::Namespaces;
use super::raw::{self, Errno};
use super::step::Step;
use super::users::Ask;
use crate::landlock::Rules;
use crate::seccomp::Program;

/// Where the child writes that it failed; the parent reads it once the child is past its exec or gone.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Report {
    /// [`Step`] as a number, 0 for none.
    pub(super) step: u32,
    /// What the kernel said.
    pub(super) errno: Errno,
    /// Which of the things of the step it was, counted from 0.
    pub(super) item: u32,
}

impl Report {
    /// How many bytes a report has in a pipe.
    pub(super) const BYTES: usize = 12;

    /// In the place of a step: the child waits for the maps of its users.
    pub(super) const ASKS_FOR_MAPS: u32 = u32::MAX;

    /// The bytes of a report in a pipe.
    pub(super) fn bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.step.to_ne_bytes();
        let [e, f, g, h] = self.errno.to_ne_bytes();
        let [i, j, k, l] = self.item.to_ne_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// The report in these bytes.
    pub(super) fn from_bytes([a, b, c, d, e, f, g, h, i, j, k, l]: [u8; Self::BYTES]) -> Self {
        Self {
            step: u32::from_ne_bytes([a, b, c, d]),
            errno: Errno::from_ne_bytes([e, f, g, h]),
            item: u32::from_ne_bytes([i, j, k, l]),
        }
    }
}

/// What is executed, as the kernel takes it.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Path(*const c_char),
    Fd(RawFd),
    /// The last of the descriptors handed over.
    LastFd,
}

/// User, group and the supplementary groups.
pub(super) struct Who<'a> {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: &'a [u32],
}

/// How the program's default dispositions come about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dispositions {
    /// Signals to reset, number N at bit N-1.
    pub(super) reset: u64,
    /// SIGPIPE is ignored.
    pub(super) ignore_pipe: bool,
}

/// How the descriptors that are not handed over are kept from the program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shut {
    /// close_range(2).
    Range,
    /// One by one up to this number, on kernels before 5.11.
    EachTo(RawFd),
}

/// All that the child needs, made by the parent. Pointers in it point to memory that outlives the walk.
pub(super) struct Walk<'a> {
    /// The table of descriptors is the manager's: take a copy of what is below this number, before anything else.
    pub(super) own_below: Option<u32>,
    /// How it gets users of its own; only with memory of its own.
    pub(super) ask: Option<Ask>,
    /// The folder of the cgroup to move to; None where the birth has done it.
    pub(super) cgroup: Option<RawFd>,
    pub(super) new_session: bool,
    pub(super) dispositions: Dispositions,
    /// The text for `oom_score_adj`.
    pub(super) oom_score_adjust: Option<&'a [u8]>,
    /// The text for `coredump_filter`.
    pub(super) coredump_filter: Option<&'a [u8]>,
    pub(super) nice: Option<i32>,
    /// Policy and priority, sched_setscheduler(2).
    pub(super) scheduling: Option<(i32, i32)>,
    /// The bits of the processors that it may run on; empty: as the manager.
    pub(super) affinity: &'a [u8],
    /// The mode of set_mempolicy(2), and the bits of its nodes.
    pub(super) memory_policy: Option<i32>,
    pub(super) memory_nodes: &'a [u8],
    /// In nanoseconds.
    pub(super) timer_slack: Option<u64>,
    pub(super) personality: Option<u32>,
    /// Class and priority as ioprio_set(2) takes them.
    pub(super) io_priority: Option<i32>,
    /// Descriptor 0 becomes the controlling terminal; true: even if it is another session's.
    pub(super) terminal: Option<bool>,
    pub(super) namespaces: &'a Namespaces,
    /// The network and the IPC that it enters.
    pub(super) joined: [Option<RawFd>; 2],
    /// Room for a descriptor for each mount.
    pub(super) trees: &'a mut [RawFd],
    pub(super) filters: &'a [(&'static str, Program)],
    /// What Landlock is to hold, and the descriptor of it once it is made.
    pub(super) landlock: Option<&'a Rules>,
    pub(super) ruleset: Option<RawFd>,
    /// The sources of descriptors 0 and up; moved out of the way as the walk goes.
    pub(super) sources: &'a mut [RawFd],
    pub(super) shut: Shut,
    pub(super) rlimits: &'a [(u32, libc::rlimit64)],
    pub(super) umask: u32,
    /// What becomes `/`; null: as the manager.
    pub(super) root: *const c_char,
    pub(super) secure_bits: Option<u32>,
    /// Capabilities to drop from the bounding set, number N at bit N.
    pub(super) drop: u64,
    pub(super) who: Option<Who<'a>>,
    /// A session keyring of its own; true: with that of the user on it.
    pub(super) keyring: Option<bool>,
    pub(super) working_directory: *const c_char,
    pub(super) directory_optional: bool,
    /// The inheritable and ambient set; None where both are empty and stay so.
    pub(super) ambient: Option<u64>,
    pub(super) no_new_privileges: bool,
    /// Where to write the pid in digits, each with room for eleven bytes.
    pub(super) pid_slots: &'a [*mut u8],
    pub(super) target: Target,
    pub(super) argv: *const *const c_char,
    pub(super) envp: *const *const c_char,
    /// Where a report goes as well, if memory is not shared. Close-on-exec.
    pub(super) report_fd: Option<RawFd>,
    pub(super) report: Report,
}

/// The entry of the child.
///
/// # Safety
/// `argument` is the address of a [`Walk`] that nobody else touches until the child has called exec or exit.
pub(super) unsafe extern "C" fn run(argument: *mut c_void) -> ! {
    // SAFETY: the parent passes the address of a Walk and waits until the child is past its exec or gone.
    let walk = unsafe { &mut *argument.cast::<Walk<'_>>() };
    let failure = match walk.prepare() {
        Ok(()) => Failure::of(Step::Exec, walk.exec()),
        Err(failure) => failure,
    };
    walk.report = Report { step: failure.step as u32, errno: failure.errno, item: failure.item };
    if let Some(fd) = walk.report_fd {
        // If the pipe has no reader the parent is gone, and nobody is left to tell.
        let _unheard = raw::write(fd, &walk.report.bytes());
    }
    raw::exit(failure.step.exit_status().unwrap_or(u8::MAX))
}

/// The step that failed and why.
struct Failure {
    step: Step,
    errno: Errno,
    /// Which of the step's things it was.
    item: u32,
}

impl Failure {
    fn of(step: Step, errno: Errno) -> Self {
        Self { step, errno, item: 0 }
    }
}

/// Names the step of an error.
trait At<T>: Sized {
    fn at(self, step: Step) -> Result<T, Failure> {
        self.at_item(step, 0)
    }

    /// The same with the number of the thing that failed.
    fn at_item(self, step: Step, item: u32) -> Result<T, Failure>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at_item(self, step: Step, item: u32) -> Result<T, Failure> {
        self.map_err(|errno| Failure { step, errno, item })
    }
}

impl Walk<'_> {
    /// Every step before the exec.
    fn prepare(&mut self) -> Result<(), Failure> {
        if let Some(first) = self.own_below {
            raw::unshare_below(first).at(Step::Fds)?;
        }
        if let Some(ask) = self.ask {
            raw::close(ask.writer).at(Step::PrivateUsers)?;
        }
        self.own_users(true)?;
        if let Some(folder) = self.cgroup {
            raw::write_file(folder, c"cgroup.procs", b"0").at(Step::Cgroup)?;
        }
        if self.new_session {
            raw::setsid().at(Step::Setsid)?;
        }
        self.reset_signals().at(Step::SignalMask)?;
        self.set_attributes()?;
        self.enter_namespaces()?;
        self.place_descriptors()?;
        self.prepare_landlock()?;
        if let Some(force) = self.terminal {
            raw::take_terminal(0, force).at(Step::Stdin)?;
        }
        for (item, (resource, limit)) in (0..).zip(self.rlimits) {
            set_limit(*resource, limit).at_item(Step::Limits, item)?;
        }
        self.own_users(false)?;
        raw::umask(self.umask);
        if !self.root.is_null() {
            // SAFETY: the parent made the pointer from a C string that outlives the walk.
            unsafe { raw::chroot(self.root) }.at(Step::Chroot)?;
        }
        self.drop_bounding_set().at(Step::Capabilities)?;
        if let Some(bits) = self.secure_bits {
            raw::prctl(libc::PR_SET_SECUREBITS, bits as usize, 0).at(Step::SecureBits)?;
        }
        self.become_user()?;
        self.own_keyring().at(Step::Keyring)?;
        self.change_directory().at(Step::Chdir)?;
        self.set_ambient().at(Step::Capabilities)?;
        if self.no_new_privileges {
            raw::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).at(Step::NoNewPrivileges)?;
        }
        self.write_pid();
        self.hold_to_landlock()?;
        for (item, (_, program)) in (0..).zip(self.filters) {
            raw::add_filter(program.instructions()).at_item(Step::Seccomp, item)?;
        }
        Ok(())
    }

    /// Default dispositions first: until then a signal that the mask lets in would run a handler of the manager.
    fn reset_signals(&self) -> Result<(), Errno> {
        for number in 1..=64 {
            let unchangeable = number == libc::SIGKILL || number == libc::SIGSTOP;
            if self.dispositions.reset & (1 << (number - 1)) != 0 && !unchangeable {
                raw::default_disposition(number)?;
            }
        }
        if self.dispositions.ignore_pipe {
            raw::ignore(libc::SIGPIPE)?;
        }
        raw::set_signal_mask(0)?;
        Ok(())
    }

    /// As the user, who is to own it. Where there are no keys, or none are left for this user, it goes on as it is: keys
    /// are then nothing that anybody could take.
    fn own_keyring(&self) -> Result<(), Errno> {
        let Some(link) = self.keyring else { return Ok(()) };
        match raw::own_session_keyring() {
            Err(libc::ENOSYS | libc::EPERM | libc::EACCES | libc::EDQUOT) => Ok(()),
            Err(errno) => Err(errno),
            Ok(_) if link => raw::link_user_keyring().map(|_| ()),
            Ok(_) => Ok(()),
        }
    }

    fn change_directory(&self) -> Result<(), Errno> {
        // SAFETY: the parent made the pointer from a C string that outlives the walk.
        match unsafe { raw::chdir(self.working_directory) } {
            Ok(_) => Ok(()),
            Err(_) if self.directory_optional => {
                // SAFETY: the literal ends in NUL.
                unsafe { raw::chdir(c"/".as_ptr()) }.map(|_| ())
            }
            Err(errno) => Err(errno),
        }
    }

    /// Before the filters, which may not let it ask.
    fn write_pid(&self) {
        if self.pid_slots.is_empty() {
            return;
        }
        let pid = raw::getpid();
        for slot in self.pid_slots {
            // SAFETY: each slot has room for eleven bytes, in a buffer that only this child writes to.
            unsafe { write_decimal(*slot, pid) };
        }
    }

    /// Becomes the program; comes back only with an errno.
    fn exec(&self) -> Errno {
        match self.target {
            // SAFETY: the parent made all three from C strings and arrays with a null at the end.
            Target::Path(path) => unsafe { raw::execve(path, self.argv, self.envp) },
            // SAFETY: as above.
            Target::Fd(fd) => unsafe { raw::execve_fd(fd, self.argv, self.envp) },
            Target::LastFd => {
                let last = self.sources.len() as RawFd - 1;
                // SAFETY: as above.
                unsafe { raw::execve_fd(last, self.argv, self.envp) }
            }
        }
    }
}

/// Sets a limit. `infinity` is the most that there may be: the kernel gives nobody more descriptors than `fs.nr_open`, nor
/// a process without CAP_SYS_RESOURCE more than it has.
fn set_limit(resource: u32, limit: &libc::rlimit64) -> raw::Raw {
    match raw::set_rlimit(resource, limit) {
        Err(libc::EPERM) if limit.rlim_max == libc::RLIM64_INFINITY => {
            let most = raw::rlimit(resource)?.rlim_max;
            let rlim_cur = if limit.rlim_cur < most { limit.rlim_cur } else { most };
            raw::set_rlimit(resource, &libc::rlimit64 { rlim_cur, rlim_max: most })
        }
        other => other,
    }
}

/// Writes a number in digits, and NUL.
///
/// # Safety
/// `at` has room for eleven bytes: ten digits of the largest u32, and NUL.
unsafe fn write_decimal(at: *mut u8, number: u32) {
    let mut divisor = 1_000_000_000u32;
    let mut next = at;
    while divisor != 0 {
        let digit = (number / divisor % 10) as u8;
        if number >= divisor || divisor == 1 {
            // SAFETY: at most ten digits are written, and there is room for eleven bytes.
            unsafe { next.write(b'0' + digit) };
            next = next.wrapping_add(1);
        }
        divisor /= 10;
    }
    // SAFETY: at most ten bytes are written so far.
    unsafe { next.write(0) };
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;

    #[test]
    fn a_pid_is_written_in_digits() {
        for (number, text) in
            [(0, "0"), (1, "1"), (10, "10"), (4_194_304, "4194304"), (u32::MAX, "4294967295")]
        {
            let mut buffer = [b'x'; 11];
            // SAFETY: the buffer has eleven bytes.
            unsafe { write_decimal(buffer.as_mut_ptr(), number) };
            assert_eq!(CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap(), text);
        }
    }

    #[test]
    fn a_report_comes_out_of_the_pipe_as_it_went_in() {
        let report = Report { step: Step::Exec as u32, errno: libc::ENOENT, item: 7 };
        let back = Report::from_bytes(report.bytes());
        assert_eq!((back.step, back.errno, back.item), (report.step, report.errno, report.item));
    }
}
