//! An init's first steps: file systems, name, id, loopback, Ctrl-Alt-Del. Each is tried alone; what a container forbids
//! is skipped with a reason. What an initramfs or a container runtime has done already is left as it is.

use std::fs;
use std::path::Path;

use agentd_linux::rlimit::{self, Rlimit};
use agentd_linux::{descriptor, machine, mount};

/// What came of the first steps: sentences for the log, and those that went wrong.
#[derive(Debug, Default)]
pub struct Report {
    /// What was done.
    pub done: Vec<String>,
    /// What could not be done, with the reason.
    pub skipped: Vec<String>,
}

impl Report {
    fn note<T, E: std::fmt::Display>(&mut self, what: &str, result: Result<T, E>) {
        match result {
            Ok(_) => self.done.push(what.to_owned()),
            Err(error) => self.skipped.push(format!("{what}: {error}")),
        }
    }
}

/// Mounts what an init mounts and makes the links in /dev. A container's /tmp is its maker's.
pub fn mount_all(report: &mut Report, container: bool) {
    for point in mount::table() {
        if container && point.target == "/tmp" {
            continue;
        }
        match mount::ensure(&point) {
            mount::Outcome::Refused(error) => {
                report.skipped.push(format!("{} is not mounted: {error}", point.target));
            }
            outcome => report.done.push(format!("{} {outcome}", point.target)),
        }
    }
    for (link, error) in mount::ensure_dev_links() {
        report.skipped.push(format!("{link} cannot be made: {error}"));
    }
}

/// How many descriptors the init of a machine may have, as in systemd: nobody has chosen the 4,096 that the kernel starts it
/// with, and a service takes four, for its process, its cgroup and its two pipes.
const INIT_DESCRIPTORS: u64 = 512 << 10;

/// For how many descriptors there is room from the start: for 2,000 services, in 64 KiB of the kernel's memory.
const ROOM: usize = 8_192;

/// Raises the limit of descriptors as far as it is the manager's to raise, and gives the one there was. Before the second
/// thread.
pub fn raise_descriptors(report: &mut Report, is_init: bool) -> Option<Rlimit> {
    let original = match rlimit::raise_nofile() {
        Ok(original) => Some(original),
        Err(error) => {
            report.skipped.push(format!("the limit of descriptors cannot be raised: {error}"));
            None
        }
    };
    if is_init {
        report.note("more descriptors than the kernel gives", rlimit::raise_hard_nofile(INIT_DESCRIPTORS));
    }
    if let Err(error) = descriptor::make_room(ROOM) {
        report.skipped.push(format!("the table of descriptors grows as it fills: {error}"));
    }
    original
}

/// The rest, once /proc is there. `container`: its machine is not ours.
pub fn set_up(report: &mut Report, container: bool) {
    if mount::is_read_only(Path::new("/")).unwrap_or(false) && !container {
        report.note("root file system made writable", mount::remount_root_writable());
    }
    if !container {
        match machine::set_hostname_from(Path::new("/etc/hostname")) {
            Ok(Some(name)) => report.done.push(format!("hostname is {name}")),
            Ok(None) => report.skipped.push("hostname: there is no /etc/hostname".to_owned()),
            Err(error) => report.skipped.push(format!("hostname: {error}")),
        }
        report.note("Ctrl-Alt-Del reaches us", machine::catch_ctrl_alt_del());
    }
    report.note("loopback is up", machine::loopback_up());
    match machine::machine_id(Path::new("/etc/machine-id")) {
        Ok(id) => {
            if let machine::MachineId::Transient(id) = &id {
                // Readers look at /etc only; for this boot the file is put over it.
                report.note("machine id for this boot", transient_id(id));
            }
            report.done.push(format!("machine id is {}", id.as_str()));
        }
        Err(error) => report.skipped.push(format!("machine id: {error}")),
    }
}

fn transient_id(id: &str) -> std::io::Result<()> {
    let copy = Path::new("/run/machine-id");
    fs::write(copy, format!("{id}\n"))?;
    mount::bind_file(copy, Path::new("/etc/machine-id"))
}
