//! The programs that the verbs use, and the Debian packages that bring them.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::run;

/// A program and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Name of the program.
    pub program: &'static str,
    /// The Debian 12 package that has it.
    pub package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// What unit tests hold our formats against.
pub const UNIT: &[Tool] = &[tool("busybox", "busybox-static")];

/// What it takes to build agents and run their tests.
pub const AGENTS: &[Tool] = &[tool("go", "golang-go"), tool("python3", "python3")];

/// What it takes to build what agentd is measured with.
pub const BENCH: &[Tool] = &[tool("cc", "gcc"), tool("mkfifo", "coreutils")];

/// What it takes to read the unit files of Debian packages.
pub const CORPUS: &[Tool] = &[tool("apt-get", "apt"), tool("dpkg-deb", "dpkg")];

/// What it takes to build the images.
pub const IMAGE: &[Tool] = &[
    tool("go", "golang-go"),
    tool("strip", "binutils"),
    tool("mmdebstrap", "mmdebstrap"),
    tool("busybox", "busybox-static"),
    tool("lz4", "lz4"),
    tool("depmod", "kmod"),
    tool("mke2fs", "e2fsprogs"),
    tool("python3", "python3"),
    tool("flock", "util-linux"),
];

/// What it takes to boot them.
pub const VM: &[Tool] =
    &[tool("qemu-system-x86_64", "qemu-system-x86"), tool("setpriv", "util-linux"), tool("tar", "tar")];

/// What the namespace tests drive: real journald, oracles, a container runtime.
pub const NAMESPACE: &[Tool] = &[
    tool("unshare", "util-linux"),
    tool("ip", "iproute2"),
    tool("systemd-analyze", "systemd"),
    tool("runc", "runc"),
];

/// Administrators' folders are searched too: Debian leaves them out of a user's PATH.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where a program stands, if it is installed.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Makes sure that all programs are there: installs the packages of those that are not.
///
/// # Errors
/// Something is missing and we are not root on a Debian system, or apt-get failed.
pub fn need(tools: &[Tool]) -> Result<()> {
    let mut packages: Vec<&str> =
        tools.iter().filter(|tool| !is_usable(tool)).map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if !is_root()? || find("apt-get").is_none() {
        return Err(Error::new(format!("programs are missing; as root on Debian run: {by_hand}")));
    }
    println!("installing {}", packages.join(" "));
    apt(&["update", "-qq"])?;
    apt(&[&["install", "-y", "-qq", "--no-install-recommends"], &packages[..]].concat())?;
    match tools.iter().find(|tool| !is_usable(tool)) {
        None => Ok(()),
        Some(tool) => Err(Error::new(format!("{} is still missing after: {by_hand}", tool.program))),
    }
}

/// Whether we run as root.
///
/// # Errors
/// The `id` program failed.
pub fn is_root() -> Result<bool> {
    Ok(run::output(&mut run::command("id", &["-u"]))?.trim() == "0")
}

fn apt(args: &[&str]) -> Result<()> {
    run::run(run::command("apt-get", args).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// There, and of the kind we need: an initramfs has no libc, so its busybox must be the static one.
fn is_usable(tool: &Tool) -> bool {
    match find(tool.program) {
        Some(path) if tool.package == "busybox-static" => is_static(&path),
        found => found.is_some(),
    }
}

/// A dynamic program names its loader; a static one has no reason to.
fn is_static(program: &Path) -> bool {
    const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2";
    std::fs::read(program).is_ok_and(|bytes| !bytes.windows(LOADER.len()).any(|window| window == LOADER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_administrators_folders_too() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }

    #[test]
    fn a_dynamic_program_is_told_from_a_static_one() {
        assert!(!is_static(&find("bash").unwrap()));
        assert!(!is_static(Path::new("/no/such/file")));
    }
}
