//! Opening unit files by their names in an open folder, and listing folders: openat(2), getdents64(2).

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use agentd_unit::loader::{Door, Kind, OpenFolder};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// Asks the kernel itself: no path is walked from the root for each file, and no folder is looked at for the C library.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelDoor;

/// Bytes that a folder's entries are read into at once: some four hundred names.
const ENTRIES: usize = 16 << 10;

/// As the entries lie in it, on a boundary of their first number.
#[repr(C, align(8))]
struct Entries([MaybeUninit<u8>; ENTRIES]);

impl Door for KernelDoor {
    fn open(&self, folder: OpenFolder<'_>, name: &Path) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        loop {
            match openat(folder.file, name, flags, Mode::empty()) {
                Ok(file) => return Ok(file.into()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn both(&self, first: &mut dyn FnMut(), second: &mut (dyn FnMut() + Send)) {
        crate::beside::both(first, second);
    }

    fn list(&self, folder: OpenFolder<'_>, each: &mut dyn FnMut(&OsStr, io::Result<Kind>)) -> io::Result<()> {
        let mut entries = Entries([MaybeUninit::uninit(); ENTRIES]);
        loop {
            let mut rest = next_entries(folder.file, &mut entries)?;
            if rest.is_empty() {
                return Ok(());
            }
            while let Some((name, kind, behind)) = first_entry(rest) {
                rest = behind;
                if name != "." && name != ".." {
                    // Some file systems do not keep in a folder what its names are.
                    let looked_at = || std::fs::symlink_metadata(folder.path.join(name));
                    each(name, kind.map_or_else(|| looked_at().map(|data| data.file_type().into()), Ok));
                }
            }
        }
    }
}

/// The next entries of a folder; none: that was all.
fn next_entries<'e>(folder: &File, entries: &'e mut Entries) -> io::Result<&'e [u8]> {
    let room = entries.0.as_mut_ptr();
    // SAFETY: the kernel writes at most so many bytes to the room, which is borrowed for as long as the call takes.
    let length = unsafe { libc::syscall(libc::SYS_getdents64, folder.as_raw_fd(), room, ENTRIES) };
    let length = usize::try_from(Errno::result(length)?).unwrap_or(0);
    // SAFETY: that many bytes were written, from the beginning on.
    Ok(unsafe { std::slice::from_raw_parts(room.cast::<u8>(), length) })
}

/// Where the parts of `struct linux_dirent64` lie: its length, what the name is of, the name with its NUL.
const LENGTH: usize = 16;
const TYPE: usize = 18;
const NAME: usize = 19;

/// The name and the kind of the first entry, and the entries behind it. `None`: there is none. No kind: the file system
/// does not tell.
fn first_entry(entries: &[u8]) -> Option<(&OsStr, Option<Kind>, &[u8])> {
    let length = u16::from_ne_bytes(*entries.get(LENGTH..)?.first_chunk()?);
    let (entry, behind) = entries.split_at_checked(usize::from(length))?;
    let name = CStr::from_bytes_until_nul(entry.get(NAME..)?).ok()?;
    let kind = match *entry.get(TYPE)? {
        libc::DT_REG => Some(Kind::File),
        libc::DT_DIR => Some(Kind::Folder),
        libc::DT_LNK => Some(Kind::Link),
        libc::DT_FIFO => Some(Kind::Fifo),
        libc::DT_SOCK => Some(Kind::Socket),
        libc::DT_CHR | libc::DT_BLK => Some(Kind::Device),
        libc::DT_UNKNOWN => None,
        _ => Some(Kind::Other),
    };
    Some((OsStr::from_bytes(name.to_bytes()), kind, behind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use agentd_unit::loader::StandardDoor;

    use super::*;
    use crate::testing::TempDir;

    fn listed(door: &dyn Door, path: &Path) -> BTreeMap<Vec<u8>, Kind> {
        let mut found = BTreeMap::new();
        let mut each = |name: &OsStr, kind: io::Result<Kind>| {
            let earlier = found.insert(name.as_bytes().to_vec(), kind.unwrap());
            assert_eq!(earlier, None, "{name:?} is told once");
        };
        let file = &File::open(path).unwrap();
        door.list(OpenFolder { path, file }, &mut each).unwrap();
        found
    }

    #[test]
    fn a_folder_is_told_as_the_standard_library_tells_it() {
        let folder = TempDir::new();
        let path = folder.path();
        for number in 0..2000 {
            fs::write(path.join(format!("agent-{number:05}.service")), "").unwrap();
        }
        fs::create_dir(path.join("folder")).unwrap();
        fs::write(path.join(OsStr::from_bytes(b"no-\xff-text")), "").unwrap();
        fs::write(path.join("n".repeat(255)), "").unwrap();
        symlink("/dev/null", path.join("link")).unwrap();
        nix::unistd::mkfifo(&path.join("fifo"), Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(path.join("socket")).unwrap();
        let found = listed(&KernelDoor, path);
        assert_eq!(found.len(), 2006);
        assert_eq!(found, listed(&StandardDoor, path));
        assert_eq!(listed(&KernelDoor, &path.join("folder")), BTreeMap::new());
    }

    #[test]
    fn both_doors_open_the_same_and_fail_alike() {
        let folder = TempDir::new();
        let path = folder.path();
        fs::create_dir(path.join("web.service.d")).unwrap();
        fs::write(path.join("web.service"), "a").unwrap();
        fs::write(path.join("web.service.d/10.conf"), "b").unwrap();
        symlink("web.service", path.join("link")).unwrap();
        nix::unistd::mkfifo(&path.join("fifo"), Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(path.join("socket")).unwrap();
        let root = OpenFolder { path, file: &File::open(path).unwrap() };
        for (name, expected) in [
            ("web.service", Ok("a")),
            ("web.service.d/10.conf", Ok("b")),
            ("link", Err(libc::ELOOP)),
            ("socket", Err(libc::ENXIO)),
            ("absent", Err(libc::ENOENT)),
            ("web.service/x", Err(libc::ENOTDIR)),
            // Nobody writes to it, and nobody is waited for.
            ("fifo", Ok("")),
        ] {
            for door in [&KernelDoor as &dyn Door, &StandardDoor] {
                let read = door.open(root, Path::new(name)).map(|file| io::read_to_string(file).unwrap());
                let read = read.map_err(|error| error.raw_os_error().unwrap());
                assert_eq!(read, expected.map(str::to_owned), "{name} by {door:?}");
            }
        }
    }

    #[test]
    fn what_is_no_folder_cannot_be_listed() {
        let folder = TempDir::new();
        let path = folder.path().join("file");
        let file = OpenFolder { path: &path, file: &File::create(&path).unwrap() };
        let error = KernelDoor.list(file, &mut |_, _| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
    }
}
