//! The machine as a whole: its name, its id, the loopback, Ctrl-Alt-Del, containers, and its end.

use std::fs;
use std::io;
use std::path::Path;

use nix::sys::reboot::{RebootMode, reboot, set_cad_enabled};

/// Sets the host's name from hostname(5): its first line that is no comment. Returns it, if there is one.
///
/// # Errors
/// The errno of sethostname(2) (a container may not), or of reading.
pub fn set_hostname_from(path: &Path) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(name) = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
    else {
        return Ok(None);
    };
    nix::unistd::sethostname(name)?;
    Ok(Some(name.to_owned()))
}

/// The host's name as the kernel has it, gethostname(2).
#[must_use]
pub fn hostname() -> String {
    nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What came of looking for the machine's id, machine-id(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineId {
    /// It was there.
    Found(String),
    /// A new one was made and kept in the file.
    Made(String),
    /// A new one was made; the file cannot be written, so it lasts until the end of this boot.
    Transient(String),
}

impl MachineId {
    /// The id: 32 lower-case hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Found(id) | Self::Made(id) | Self::Transient(id) => id,
        }
    }
}

/// Reads the id from the file, or makes one (random, version 4) and tries to keep it.
///
/// # Errors
/// If there is no randomness to be had (/proc/sys/kernel/random/uuid, random(4)).
pub fn machine_id(path: &Path) -> io::Result<MachineId> {
    let known = fs::read_to_string(path).unwrap_or_default();
    let known = known.trim();
    if known.len() == 32 && known.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(MachineId::Found(known.to_ascii_lowercase()));
    }
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let id: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let temporary = path.with_extension("new");
    let kept = fs::write(&temporary, format!("{id}\n")).and_then(|()| fs::rename(&temporary, path));
    Ok(if kept.is_ok() { MachineId::Made(id) } else { MachineId::Transient(id) })
}

/// Brings the loopback up, netdevice(7).
///
/// # Errors
/// The errno of socket(2) or of the ioctl: EPERM in a container that may not.
pub fn loopback_up() -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Datagram,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    // SAFETY: the structure is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    // SAFETY: the kernel reads the name from, and writes the flags to, a structure that outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: SIOCGIFFLAGS has just filled this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    if flags & up == up {
        return Ok(());
    }
    request.ifr_ifru.ifru_flags = flags | up;
    // SAFETY: the kernel reads name and flags from a structure that outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Has Ctrl-Alt-Del send SIGINT to PID 1 instead of resetting the machine, reboot(2).
///
/// # Errors
/// EPERM in a container.
pub fn catch_ctrl_alt_del() -> io::Result<()> {
    Ok(set_cad_enabled(false)?)
}

/// Whether this PID 1 is a container's, and which word says so. systemd's container interface,
/// <https://systemd.io/CONTAINER_INTERFACE/>; `/.dockerenv` and `/run/.containerenv` are Docker's and Podman's; else a
/// pid namespace below the machine's tells (namespaces(7): the first one has a fixed inode).
#[must_use]
pub fn container() -> Option<String> {
    if let Some(word) = std::env::var_os("container").filter(|word| !word.is_empty()) {
        return Some(word.to_string_lossy().into_owned());
    }
    for (path, word) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if Path::new(path).exists() {
            return Some(word.to_owned());
        }
    }
    // PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
    const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    (namespace != Path::new(FIRST_PID_NAMESPACE)).then(|| "pid-namespace".to_owned())
}

/// How the machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Power off.
    Poweroff,
    /// Start again.
    Reboot,
    /// Stop, power on.
    Halt,
}

/// Writes all file systems' caches out, sync(2). Returns when it is done.
pub fn sync() {
    nix::unistd::sync();
}

/// Ends the machine, reboot(2). Returns only if the kernel refuses.
///
/// # Errors
/// EPERM without CAP_SYS_BOOT, as in most containers.
pub fn end(end: End) -> io::Error {
    let mode = match end {
        End::Poweroff => RebootMode::RB_POWER_OFF,
        End::Reboot => RebootMode::RB_AUTOBOOT,
        End::Halt => RebootMode::RB_HALT_SYSTEM,
    };
    match reboot(mode) {
        Ok(never) => match never {},
        Err(errno) => errno.into(),
    }
}

/// Starts the machine again with an argument for its firmware or boot loader, reboot(2) "LINUX_REBOOT_CMD_RESTART2".
/// Returns only if the kernel refuses.
///
/// # Errors
/// EPERM without CAP_SYS_BOOT; EINVAL for an argument with a NUL byte in it.
pub fn reboot_with(argument: &str) -> io::Error {
    let Ok(argument) = std::ffi::CString::new(argument) else {
        return io::Error::from_raw_os_error(libc::EINVAL);
    };
    // SAFETY: the call takes three numbers and a text that ends with NUL and outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_reboot,
            libc::LINUX_REBOOT_MAGIC1,
            libc::LINUX_REBOOT_MAGIC2,
            libc::LINUX_REBOOT_CMD_RESTART2,
            argument.as_ptr(),
        )
    };
    io::Error::last_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("agentd-machine-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_machine_id_that_is_there_is_kept_and_a_missing_one_is_made_once() {
        let path = scratch("id");
        fs::write(&path, "0123456789ABCDEF0123456789abcdef\n").unwrap();
        assert_eq!(machine_id(&path).unwrap(), MachineId::Found("0123456789abcdef0123456789abcdef".into()));
        for text in ["", "uninitialized\n", "short"] {
            fs::write(&path, text).unwrap();
            let MachineId::Made(made) = machine_id(&path).unwrap() else { panic!("{text:?}") };
            assert_eq!(made.len(), 32);
            assert_eq!(machine_id(&path).unwrap(), MachineId::Found(made));
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn without_a_place_to_keep_it_the_id_lasts_for_this_boot() {
        let id = machine_id(Path::new("/nonexistent/machine-id")).unwrap();
        assert!(matches!(&id, MachineId::Transient(text) if text.len() == 32), "{id:?}");
    }

    #[test]
    fn no_file_means_no_name() {
        assert_eq!(set_hostname_from(Path::new("/nonexistent")).unwrap(), None);
    }
}
