//! Sealed copies in memory: bytes that nobody, not even we, can change any more. memfd_create(2), Linux 3.17.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// A close-on-exec descriptor of a file in memory with these bytes, sealed against every change; reading starts at its
/// beginning.
///
/// # Errors
/// The errno of memfd_create, write or fcntl.
pub fn sealed(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    let seals =
        SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_copy_holds_the_bytes_and_takes_no_others() {
        let fd = sealed(c"test", b"hello").unwrap();
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let mut file = File::from(fd);
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert_eq!(file.write(b"x").unwrap_err().raw_os_error(), Some(libc::EPERM));
        let again = File::options().write(true).open(path).unwrap();
        assert_eq!(again.set_len(0).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }
}
