//! The ground that every image stands on: a kernel, Debian's programs, an initramfs that finds the disk.
//!
//! It takes a minute to build and does not change with the project's code, so it is kept in a cache outside of the
//! repository, under the hash of what it is made by.

use std::fs;
use std::path::{Path, PathBuf};

use super::cpio::Archive;
use super::tree::Tree;
use crate::error::{During, Error, Result};
use crate::run::{command, run};
use crate::scratch::Scratch;
use crate::tools;

const RECIPE: &str = include_str!("recipe.sh");
const DISK_INIT: &str = include_str!("disk-init.sh");

/// The built ground. Its files are not to be changed: virtual machines write to a throw-away layer.
#[derive(Debug, Clone)]
pub struct Base {
    folder: PathBuf,
}

impl Base {
    /// The ground for this state of the recipe; built if it is not in the cache.
    ///
    /// # Errors
    /// A program is missing, there is no root, or Debian's archive could not be reached.
    pub fn get() -> Result<Self> {
        let cache = cache_folder()?;
        let folder = cache.join(format!("{:016x}", fingerprint(&[RECIPE, DISK_INIT])));
        let base = Self { folder };
        if !base.folder.is_dir() {
            tools::need(tools::IMAGE)?;
            println!("building {} once; later runs find it there", base.folder.display());
            base.build(&cache)?;
        }
        Ok(base)
    }

    /// Two builds at once wait for each other, and the second finds the first one's work.
    fn build(&self, cache: &Path) -> Result<()> {
        fs::create_dir_all(cache).during(|| format!("cannot make {}", cache.display()))?;
        let recipe = self.folder.with_extension("sh");
        fs::write(&recipe, RECIPE).during(|| format!("cannot write {}", recipe.display()))?;
        let words = [cache.join("lock"), PathBuf::from("bash"), recipe, self.folder.clone()];
        run(command("flock", &[]).args(words))
    }

    /// The unpacked kernel.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    /// Debian as a file system, ext4, without anything of ours.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.folder.join("root.img")
    }

    /// The same as a folder.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// The folder with `tree` laid over it, as a folder of its own. Its files are links into the cache: read them, or
    /// replace them, but do not write into them.
    ///
    /// # Errors
    /// The links could not be made.
    pub fn merged(&self, tree: &Tree) -> Result<Scratch> {
        // Beside the cache, since links do not cross file systems.
        let merged = Scratch::within(&self.folder.with_file_name(""), "merged")?;
        run(command("cp", &["-al", "--no-target-directory"]).arg(self.root()).arg(merged.path()))?;
        let words = ["-a", "--no-target-directory", "--remove-destination"];
        run(command("cp", &words).arg(tree.path()).arg(merged.path()))?;
        Ok(merged)
    }

    /// The bytes of the initramfs that goes with [`Self::disk`].
    ///
    /// # Errors
    /// The kernel modules or busybox could not be read.
    pub fn disk_initrd(&self) -> Result<Vec<u8>> {
        let mut archive = Archive::new(Vec::new());
        for folder in ["bin", "dev", "modules", "new", "proc"] {
            archive.folder(folder)?;
        }
        archive.device("dev/console", 0o600, (5, 1))?;
        archive.file("bin/busybox", 0o755, &busybox()?)?;
        archive.file("init", 0o755, DISK_INIT.as_bytes())?;
        archive.tree(&self.folder.join("modules"), Path::new("modules"))?;
        archive.finish()
    }
}

/// The static busybox of this machine.
///
/// # Errors
/// It is not installed or cannot be read.
pub fn busybox() -> Result<Vec<u8>> {
    let path = tools::find("busybox").ok_or_else(|| Error::new("busybox is not installed"))?;
    fs::read(&path).during(|| format!("cannot read {}", path.display()))
}

/// `$XDG_CACHE_HOME/agentd-xtask`, or the one below `$HOME/.cache`.
///
/// # Errors
/// Neither variable is set.
pub fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    match cache {
        Some(folder) => Ok(folder.join("agentd-xtask")),
        None => Err(Error::new("neither XDG_CACHE_HOME nor HOME is set; set one to a folder for the images")),
    }
}

/// FNV-1a with 64 bits: names a folder of a cache, guards nothing.
fn fingerprint(parts: &[&str]) -> u64 {
    parts
        .iter()
        .flat_map(|part| part.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_that_of_fnv_and_tells_parts_apart() {
        // The published value for an empty input, then one NUL byte fewer than the parts have.
        assert_eq!(fingerprint(&[]), 0xcbf2_9ce4_8422_2325);
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }
}
