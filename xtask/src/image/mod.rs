//! The images: what a machine or a container boots from.

pub mod base;
pub mod cpio;
pub mod oci;
pub mod product;
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{During, Result};
use crate::run::{command, run};
use crate::tools;
use base::{Base, busybox};
use cpio::Archive;
use product::Product;
use tree::Tree;

/// What an image is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// agentd, agentctl and the Go agents as a file system in memory: no libc, no shell.
    Initramfs,
    /// Debian with Python, journald and everything of ours, on a disk.
    Disk,
    /// The same as a bundle for an OCI runtime.
    Oci,
}

impl Kind {
    /// The kinds by their names on the command line.
    pub const NAMES: [(&str, Self); 3] =
        [("initramfs", Self::Initramfs), ("disk", Self::Disk), ("oci", Self::Oci)];
}

/// `cargo xtask image`: writes the image of this kind into a folder and says how to boot it.
///
/// # Errors
/// Something does not build, or the folder cannot be written.
pub fn image(kind: Kind, out: &Path) -> Result<()> {
    tools::need(tools::IMAGE)?;
    let base = Base::get()?;
    let product = Product::build()?;
    fs::create_dir_all(out).during(|| format!("cannot make {}", out.display()))?;
    match kind {
        Kind::Initramfs => {
            let tree = product.tree()?;
            make_alone(&tree)?;
            product.sign_alone(&tree)?;
            write(&out.join("initramfs"), &initramfs(&tree)?)?;
            copy(&base.kernel(), &out.join("vmlinux"))?;
            println!("boot it with: {}", qemu(out, "initramfs", None));
        }
        Kind::Disk => {
            let tree = product.tree()?;
            product.sign_over(&tree, &base)?;
            disk(&tree, &base, out)?;
            println!("boot it with: {}", qemu(out, "initrd", Some("disk.img")));
        }
        Kind::Oci => {
            let tree = product.tree()?;
            product.sign_over(&tree, &base)?;
            oci::bundle(&tree, &base, out)?;
            println!("{0}: run it with: runc run --bundle {0} agentd", out.display());
        }
    }
    Ok(())
}

/// What a person types to boot the files of an image.
fn qemu(place: &Path, initrd: &str, disk: Option<&str>) -> String {
    let place = place.display();
    let disk =
        disk.map(|disk| format!(" -drive file={place}/{disk},if=virtio,format=raw")).unwrap_or_default();
    format!(
        "qemu-system-x86_64 -m 512 -nographic -kernel {place}/vmlinux -initrd {place}/{initrd}{disk} \
         -append \"console=ttyS0 quiet\"\n\
         (without quiet the kernel and agentd say more; with rescue there is a shell; Ctrl-A X ends QEMU)"
    )
}

/// Makes a tree the whole `/` of a machine without Debian: what needs Python or Debian's programs is left out.
///
/// # Errors
/// The tree could not be changed.
pub fn make_alone(tree: &Tree) -> Result<()> {
    tree.link("init", "usr/bin/agentd")?;
    tree.write("etc/passwd", 0o644, PASSWD)?;
    tree.write("etc/group", 0o644, GROUP)?;
    for folder in ["usr/lib/agentd/python", "usr/lib/agentd/go"] {
        let path = tree.path().join(folder);
        fs::remove_dir_all(&path).during(|| format!("cannot remove {}", path.display()))?;
    }
    for unit in product::units(tree)? {
        let path = tree.path().join(unit);
        let text = fs::read_to_string(&path).during(|| format!("cannot read {}", path.display()))?;
        if !stands_alone(&text, tree) {
            fs::remove_file(&path).during(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// The users and groups that units name, with Debian's numbers.
const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/sh\n\
    daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &[u8] = b"root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n";

/// Whether all programs that a unit starts are in the tree. Python is not.
fn stands_alone(unit: &str, tree: &Tree) -> bool {
    !unit.contains("Kind = \"python\"")
        && unit
            .lines()
            .filter_map(|line| line.split_once("Exec")?.1.split_once('"')?.1.split_once('"'))
            .all(|(program, _)| tree.path().join(program.trim_start_matches('/')).is_file())
}

/// A tree as an initramfs, with the device nodes that a kernel wants of it.
///
/// # Errors
/// The tree could not be read.
pub fn initramfs(tree: &Tree) -> Result<Vec<u8>> {
    let mut archive = Archive::new(Vec::new());
    // Without it `/` is a tmpfs's: everybody could write to it.
    archive.folder(".")?;
    archive.folder("dev")?;
    archive.device("dev/console", 0o600, (5, 1))?;
    archive.tree(tree.path(), Path::new(""))?;
    archive.finish()
}

/// Adds the shell that people and tests use in an initramfs: busybox under the names of all its programs.
///
/// # Errors
/// busybox is missing.
pub fn add_shell(tree: &Tree) -> Result<()> {
    tree.write("usr/bin/busybox", 0o755, &busybox()?)?;
    for name in crate::run::output(&mut command("busybox", &["--list"]))?.lines() {
        // Its own init is not wanted, and our names are taken.
        if !matches!(name, "init" | "linuxrc" | "busybox" | "poweroff" | "reboot" | "halt") {
            tree.link(&format!("usr/bin/{name}"), "busybox")?;
        }
    }
    tree.link("bin", "usr/bin")
}

fn disk(tree: &Tree, base: &Base, out: &Path) -> Result<()> {
    let merged = base.merged(tree)?;
    let file = out.join("disk.img");
    if file.exists() {
        fs::remove_file(&file).during(|| format!("cannot replace {}", file.display()))?;
    }
    let words = ["-q", "-t", "ext4", "-E", "root_owner=0:0", "-d"];
    run(command("mke2fs", &words).arg(merged.path()).arg(&file).arg("2G"))?;
    write(&out.join("initrd"), &base.disk_initrd()?)?;
    copy(&base.kernel(), &out.join("vmlinux"))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).during(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).during(|| format!("cannot copy {} to {}", from.display(), to.display())).map(|_| ())
}

/// The folder that an image goes to if none is named.
///
/// # Errors
/// Cargo does not say where its target folder is.
pub fn default_out(kind: Kind) -> Result<PathBuf> {
    let name = Kind::NAMES.iter().find(|(_, known)| *known == kind).map_or("image", |(name, _)| name);
    Ok(product::target_folder()?.join("images").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stands_alone_if_all_its_programs_are_in_the_tree() {
        let tree = Tree::new().unwrap();
        tree.write("usr/bin/there", 0o755, b"").unwrap();
        for (case, unit, alone) in [
            ("a target", "[Unit]\nDescription = \"x\"", true),
            ("a program that is there", "ExecStart = [\"/usr/bin/there\", \"/usr/bin/missing\"]", true),
            ("a program that is not", "ExecStart = [\"/usr/bin/missing\"]", false),
            (
                "one that is, one that is not",
                "ExecStartPre = \"/usr/bin/missing\"\nExecStart = \"/usr/bin/there\"",
                false,
            ),
            ("a Python agent", "[Agent]\nKind = \"python\"\nModule = \"/a.py\"", false),
        ] {
            assert_eq!(stands_alone(unit, &tree), alone, "{case}");
        }
    }
}
