//! Writes an initramfs: the "newc" format of cpio(5), read by the kernel
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Written here and not by cpio(1), since that copies what the file system holds: everything below is root's, of one
//! time, and device nodes need no privilege.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{During, Result};

const S_IFLNK: u32 = 0o120_000;
const S_IFREG: u32 = 0o100_000;
const S_IFDIR: u32 = 0o040_000;
const S_IFCHR: u32 = 0o020_000;

/// An archive that is being written.
pub struct Archive<W: Write> {
    out: W,
    written: usize,
    inode: u32,
}

/// What a header says of an entry.
struct Entry<'a> {
    name: &'a [u8],
    mode: u32,
    /// Major and minor number, of a device node.
    device: (u32, u32),
    content: &'a [u8],
}

impl<W: Write> Archive<W> {
    /// An empty archive.
    pub fn new(out: W) -> Self {
        Self { out, written: 0, inode: 0 }
    }

    /// Adds a folder.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn folder(&mut self, name: &str) -> Result<()> {
        self.entry(&Entry { name: name.as_bytes(), mode: S_IFDIR | 0o755, device: (0, 0), content: b"" })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn file(&mut self, name: &str, permissions: u32, content: &[u8]) -> Result<()> {
        self.entry(&Entry { name: name.as_bytes(), mode: S_IFREG | permissions, device: (0, 0), content })
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn link(&mut self, name: &str, target: &str) -> Result<()> {
        let content = target.as_bytes();
        self.entry(&Entry { name: name.as_bytes(), mode: S_IFLNK | 0o777, device: (0, 0), content })
    }

    /// Adds a character device.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn device(&mut self, name: &str, permissions: u32, device: (u32, u32)) -> Result<()> {
        self.entry(&Entry { name: name.as_bytes(), mode: S_IFCHR | permissions, device, content: b"" })
    }

    /// Adds everything below a folder, sorted by name, so that the same tree gives the same bytes.
    ///
    /// # Errors
    /// The tree could not be read, or the output not be written.
    pub fn tree(&mut self, folder: &Path, prefix: &Path) -> Result<()> {
        let cannot = || format!("cannot read {}", folder.display());
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).during(cannot)? {
            paths.push(entry.during(cannot)?.path());
        }
        paths.sort();
        for path in paths {
            let name = prefix.join(path.file_name().unwrap_or_default());
            self.path(&path, &name)?;
            if path.is_dir() && !path.is_symlink() {
                self.tree(&path, &name)?;
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, name: &Path) -> Result<()> {
        let cannot = || format!("cannot read {}", path.display());
        let found = fs::symlink_metadata(path).during(cannot)?;
        let name = name.as_os_str().as_bytes();
        let (kind, content) = if found.is_symlink() {
            (S_IFLNK, fs::read_link(path).during(cannot)?.into_os_string().as_bytes().to_vec())
        } else if found.is_dir() {
            (S_IFDIR, Vec::new())
        } else {
            (S_IFREG, fs::read(path).during(cannot)?)
        };
        let mode = kind | (found.permissions().mode() & 0o7777);
        self.entry(&Entry { name, mode, device: (0, 0), content: &content })
    }

    /// Writes the end mark and hands the output back.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn finish(mut self) -> Result<W> {
        self.entry(&Entry { name: b"TRAILER!!!", mode: 0, device: (0, 0), content: b"" })?;
        self.out.flush().during(|| "cannot write the initramfs".into())?;
        Ok(self.out)
    }

    /// Thirteen fields of eight hexadecimal digits, the name with its NUL, the content; both filled up to four bytes.
    fn entry(&mut self, entry: &Entry<'_>) -> Result<()> {
        self.inode += 1;
        let links = if entry.mode & S_IFDIR == S_IFDIR { 2 } else { 1 };
        let size = entry.content.len();
        let mut header = String::from("070701");
        let fields =
            [self.inode, entry.mode, 0, 0, links, 0, u32::try_from(size).during(|| "file too large".into())?];
        let rest = [0, 0, entry.device.0, entry.device.1];
        let name_size = u32::try_from(entry.name.len() + 1).during(|| "name too long".into())?;
        for field in fields.into_iter().chain(rest).chain([name_size, 0]) {
            header.push_str(&format!("{field:08x}"));
        }
        self.write(header.as_bytes())?;
        self.write(entry.name)?;
        self.write(b"\0")?;
        self.fill()?;
        self.write(entry.content)?;
        self.fill()
    }

    fn fill(&mut self) -> Result<()> {
        let missing = self.written.next_multiple_of(4) - self.written;
        self.write(&b"\0\0\0"[..missing])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len();
        self.out.write_all(bytes).during(|| "cannot write the initramfs".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// The reader is busybox's, an implementation that is not ours.
    #[test]
    fn another_reader_finds_what_was_written() {
        let folder = std::env::temp_dir().join(format!("xtask-cpio-{}", std::process::id()));
        fs::create_dir_all(folder.join("tree/sub")).unwrap();
        fs::write(folder.join("tree/sub/odd"), b"12345").unwrap();
        let mut archive = Archive::new(Vec::new());
        archive.folder("etc").unwrap();
        archive.file("etc/name", 0o640, b"agentd\n").unwrap();
        archive.link("init", "etc/name").unwrap();
        archive.tree(&folder.join("tree"), Path::new("")).unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);

        let mut child = crate::run::command("busybox", &["cpio", "-id"])
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(fs::read(folder.join("init")).unwrap(), b"agentd\n");
        assert_eq!(fs::read(folder.join("sub/odd")).unwrap(), b"12345");
        let mode = fs::metadata(folder.join("etc/name")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        fs::remove_dir_all(&folder).unwrap();
    }
}
