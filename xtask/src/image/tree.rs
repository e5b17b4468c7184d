//! What becomes part of a guest's `/`: built as a folder, handed over as a tar archive or an initramfs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::base::busybox;
use crate::error::{During, Error, Result};
use crate::run::{command, run};
use crate::scratch::Scratch;
use crate::vm::GUEST_CONSOLE;

/// A folder that stands for a guest's `/`. Owners do not matter here: all of it becomes root's.
#[derive(Debug)]
pub struct Tree {
    scratch: Scratch,
}

impl Tree {
    /// An empty one.
    ///
    /// # Errors
    /// The folder could not be made.
    pub fn new() -> Result<Self> {
        Ok(Self { scratch: Scratch::new("tree")? })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Writes a file with these permissions, and the folders above it.
    ///
    /// # Errors
    /// It could not be written.
    pub fn write(&self, name: &str, permissions: u32, content: &[u8]) -> Result<PathBuf> {
        let path = self.place(name)?;
        let cannot = || format!("cannot write {}", path.display());
        fs::write(&path, content).during(cannot)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).during(cannot)?;
        Ok(path)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// It could not be made.
    pub fn link(&self, name: &str, target: &str) -> Result<()> {
        let path = self.place(name)?;
        symlink(target, &path).during(|| format!("cannot make the link {}", path.display()))
    }

    /// Copies a file or everything below a folder, but for what `skip` names.
    ///
    /// # Errors
    /// Something could not be read or written.
    pub fn copy(&self, from: &Path, name: &str, skip: &dyn Fn(&Path) -> bool) -> Result<()> {
        if skip(from) {
            return Ok(());
        }
        let cannot = || format!("cannot read {}", from.display());
        let found = fs::symlink_metadata(from).during(cannot)?;
        if found.is_symlink() {
            let target = fs::read_link(from).during(cannot)?;
            return self.link(name, &target.to_string_lossy());
        }
        if !found.is_dir() {
            // Only whether it can be executed counts, not the umask of whoever checked it out.
            let permissions = if found.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
            return self.write(name, permissions, &fs::read(from).during(cannot)?).map(|_| ());
        }
        for entry in fs::read_dir(from).during(cannot)? {
            let path = entry.during(cannot)?.path();
            let below = Path::new(name).join(path.file_name().unwrap_or_default());
            self.copy(&path, &below.to_string_lossy(), skip)?;
        }
        Ok(())
    }

    /// Adds the guest's end of the tests' command line, and the shell that it is written for.
    ///
    /// # Errors
    /// busybox is not installed, or something could not be written.
    pub fn test_console(&self) -> Result<()> {
        self.write("usr/lib/agentd-test/busybox", 0o755, &busybox()?)?;
        self.write("usr/lib/agentd-test/console", 0o755, GUEST_CONSOLE.as_bytes()).map(|_| ())
    }

    /// Packs the tree as a tar archive that owns everything as root. Its size is right for a raw disk.
    ///
    /// # Errors
    /// tar failed.
    pub fn pack(&self, archive: &Path) -> Result<()> {
        let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--mode=go-w"];
        let mut tar = command("tar", &owner);
        // Without a leading "./" entry: the guest's own "/" keeps its permissions.
        tar.arg("-C").arg(self.path()).arg("-cf").arg(archive).args(self.top()?);
        run(&mut tar)
    }

    fn top(&self) -> Result<Vec<PathBuf>> {
        let cannot = || format!("cannot read {}", self.path().display());
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path()).during(cannot)? {
            names.push(PathBuf::from(entry.during(cannot)?.file_name()));
        }
        names.sort();
        if names.is_empty() { Err(Error::new("there is nothing to put into the image")) } else { Ok(names) }
    }

    fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        let mut folder = self.path().to_path_buf();
        for part in Path::new(name).parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            if !folder.is_dir() {
                let cannot = || format!("cannot make {}", folder.display());
                fs::create_dir(&folder).during(cannot)?;
                fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).during(cannot)?;
            }
        }
        Ok(path)
    }
}
