//! The calls that change what is mounted, and the namespaces.

use core::ffi::{CStr, c_int, c_ulong};

use super::{Raw, close, int, numbers, syscall};

/// unshare(2).
pub(in super::super) fn unshare(flags: c_int) -> Raw {
    numbers(libc::SYS_unshare, [int(flags), 0, 0, 0, 0, 0])
}

/// setns(2): the namespace of this kind that the descriptor is open on.
pub(in super::super) fn enter(namespace: c_int, kind: c_int) -> Raw {
    numbers(libc::SYS_setns, [int(namespace), int(kind), 0, 0, 0, 0])
}

fn address(text: Option<&CStr>) -> usize {
    text.map_or(0, |text| text.as_ptr() as usize)
}

/// mount(2).
///
/// # Safety
/// The flags must not be those under which the options are anything but text.
pub(in super::super) unsafe fn mount(
    source: &CStr,
    target: &CStr,
    fstype: Option<&CStr>,
    flags: c_ulong,
    options: Option<&CStr>,
) -> Raw {
    let args =
        [address(Some(source)), address(Some(target)), address(fstype), flags as usize, address(options), 0];
    // SAFETY: the call reads the strings, which end in NUL by their type.
    unsafe { syscall(libc::SYS_mount, args) }
}

/// open_tree(2) OPEN_TREE_CLONE, Linux 5.2: a copy of what is mounted there, attached nowhere.
pub(in super::super) fn open_tree(path: &CStr, recursive: bool) -> Raw {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    let flags = flags as usize | if recursive { libc::AT_RECURSIVE as usize } else { 0 };
    // SAFETY: the call reads the string, which ends in NUL by its type.
    unsafe { syscall(libc::SYS_open_tree, [int(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0, 0, 0]) }
}

/// move_mount(2), Linux 5.2: attaches what the descriptor holds.
pub(in super::super) fn move_mount(tree: c_int, target: &CStr) -> Raw {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH as usize;
    let args = [int(tree), c"".as_ptr() as usize, int(libc::AT_FDCWD), target.as_ptr() as usize, flags, 0];
    // SAFETY: the call reads the strings, which end in NUL by their type.
    unsafe { syscall(libc::SYS_move_mount, args) }
}

/// mount_setattr(2), Linux 5.12: sets flags and takes others away.
pub(in super::super) fn mount_setattr(folder: c_int, path: &CStr, at: c_int, [set, clear]: [u64; 2]) -> Raw {
    let attr = libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let size = size_of::<libc::mount_attr>();
    let args = [int(folder), path.as_ptr() as usize, int(at), &raw const attr as usize, size, 0];
    // SAFETY: the call reads the string, which ends in NUL by its type, and as many bytes of the live local.
    unsafe { syscall(libc::SYS_mount_setattr, args) }
}

/// mkdirat(2), mode 0755.
pub(in super::super) fn make_folder(path: &CStr) -> Raw {
    // SAFETY: the call reads the string, which ends in NUL by its type.
    unsafe { syscall(libc::SYS_mkdirat, [int(libc::AT_FDCWD), path.as_ptr() as usize, 0o755, 0, 0, 0]) }
}

/// openat(2) O_CREAT, mode 0644, and close(2).
pub(in super::super) fn make_file(path: &CStr) -> Raw {
    let flags = (libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW) as usize;
    let args = [int(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0o644, 0, 0];
    // SAFETY: the call reads the string, which ends in NUL by its type.
    close(unsafe { syscall(libc::SYS_openat, args) }? as c_int)
}

/// Brings the loopback device of a new network namespace up: netdevice(7) SIOCSIFFLAGS. Its addresses come by
/// themselves.
pub(in super::super) fn loopback_up() -> Raw {
    let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as usize;
    let socket = numbers(libc::SYS_socket, [libc::AF_INET as usize, kind, 0, 0, 0, 0])? as c_int;
    // `struct ifreq`: sixteen bytes of name, then a union of 24, of which the flags are the first two.
    let mut request = [0_u8; 40];
    [request[0], request[1]] = *b"lo";
    [request[16], request[17]] = ((libc::IFF_UP | libc::IFF_RUNNING) as u16).to_ne_bytes();
    let args = [int(socket), libc::SIOCSIFFLAGS as usize, request.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the call reads a struct ifreq, which the live local is as long as.
    let result = unsafe { syscall(libc::SYS_ioctl, args) };
    close(socket)?;
    result
}
