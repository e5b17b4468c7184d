//! Resource limits: getrlimit(2), setrlimit(2).

use std::fmt;
use std::io;

/// One of the kernel's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Resource {
    /// `LimitCPU`: seconds of processor time.
    Cpu = libc::RLIMIT_CPU,
    /// `LimitFSIZE`: bytes of a file.
    Fsize = libc::RLIMIT_FSIZE,
    /// `LimitDATA`: bytes of data segment.
    Data = libc::RLIMIT_DATA,
    /// `LimitSTACK`: bytes of stack.
    Stack = libc::RLIMIT_STACK,
    /// `LimitCORE`: bytes of core dump.
    Core = libc::RLIMIT_CORE,
    /// `LimitRSS`: bytes resident; without effect since Linux 2.4.30.
    Rss = libc::RLIMIT_RSS,
    /// `LimitNPROC`: processes of the user.
    Nproc = libc::RLIMIT_NPROC,
    /// `LimitNOFILE`: one more than the highest descriptor.
    Nofile = libc::RLIMIT_NOFILE,
    /// `LimitMEMLOCK`: bytes locked into memory.
    Memlock = libc::RLIMIT_MEMLOCK,
    /// `LimitAS`: bytes of address space.
    As = libc::RLIMIT_AS,
    /// `LimitLOCKS`: without effect since Linux 2.4.25.
    Locks = libc::RLIMIT_LOCKS,
    /// `LimitSIGPENDING`: signals queued for the user.
    Sigpending = libc::RLIMIT_SIGPENDING,
    /// `LimitMSGQUEUE`: bytes in POSIX message queues.
    Msgqueue = libc::RLIMIT_MSGQUEUE,
    /// `LimitNICE`: 20 minus the lowest nice value.
    Nice = libc::RLIMIT_NICE,
    /// `LimitRTPRIO`: the highest real-time priority.
    Rtprio = libc::RLIMIT_RTPRIO,
    /// `LimitRTTIME`: microseconds of real-time scheduling without a blocking call.
    Rttime = libc::RLIMIT_RTTIME,
}

/// No limit.
pub const INFINITY: u64 = libc::RLIM64_INFINITY;

/// A resource with its soft and hard limit. `soft` is at most `hard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlimit {
    /// What is limited.
    pub resource: Resource,
    /// What the kernel enforces.
    pub soft: u64,
    /// Up to where a process may raise its soft limit.
    pub hard: u64,
}

impl fmt::Display for Rlimit {
    /// The key and its value, as a unit file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.resource).to_uppercase();
        let part = |value: u64| if value == INFINITY { "infinity".to_owned() } else { value.to_string() };
        write!(f, "Limit{name}={}:{}", part(self.soft), part(self.hard))
    }
}

/// The limit of this process.
///
/// # Errors
/// None that a known resource can have.
pub fn get(resource: Resource) -> io::Result<Rlimit> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one rlimit64 to the address of the live local.
    if unsafe { libc::getrlimit64(resource as u32, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Rlimit { resource, soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// Sets the limit of this process.
///
/// # Errors
/// EINVAL: soft above hard. EPERM: the hard limit is raised without CAP_SYS_RESOURCE.
pub fn set(limit: Rlimit) -> io::Result<()> {
    let raw = libc::rlimit64 { rlim_cur: limit.soft, rlim_max: limit.hard };
    // SAFETY: the call reads one rlimit64 from the address of the live local.
    if unsafe { libc::setrlimit64(limit.resource as u32, &raw const raw) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Raises the manager's soft limit of descriptors to its hard one and gives the limit there was, which is what the
/// services must get: a program that closes or allocates by the limit would stall on the manager's.
///
/// # Errors
/// As for [`get`] and [`set`].
pub fn raise_nofile() -> io::Result<Rlimit> {
    let original = get(Resource::Nofile)?;
    if original.soft < original.hard {
        set(Rlimit { soft: original.hard, ..original })?;
    }
    Ok(original)
}

/// Raises both limits of descriptors to `count`, or to `fs.nr_open` where that is less (proc_sys_fs(5)). Lowers nothing.
///
/// # Errors
/// EPERM: without CAP_SYS_RESOURCE. /proc is not mounted.
pub fn raise_hard_nofile(count: u64) -> io::Result<()> {
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open")?;
    let most =
        most.trim().parse::<u64>().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let limit = Rlimit { resource: Resource::Nofile, soft: count.min(most), hard: count.min(most) };
    if get(Resource::Nofile)?.hard < limit.hard { set(limit) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_soft_limit_reads_back() {
        let before = get(Resource::Core).unwrap();
        set(Rlimit { soft: 0, ..before }).unwrap();
        assert_eq!(get(Resource::Core).unwrap(), Rlimit { soft: 0, ..before });
        set(before).unwrap();
    }

    #[test]
    fn soft_above_hard_is_refused() {
        let error = set(Rlimit { resource: Resource::Rss, soft: 2, hard: 1 }).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
