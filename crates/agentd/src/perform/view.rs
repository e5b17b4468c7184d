//! What a unit sees of the file system: from its keys to places and what is mounted there, systemd.exec(5).

use std::fs;
use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_linux::spawn::MountFlags;
use agentd_unit::sections::{ProtectHome, ProtectProc, ProtectSystem, Sandbox};

use super::folders::Made;
use super::mounts::{Cover, Mounts, Need};

/// The homes, which `ProtectHome` governs and `ProtectSystem=strict` leaves alone.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

/// What the kernel shows and takes, which `ProtectKernelTunables` governs.
const TUNABLES: [&str; 13] = [
    "/proc/acpi",
    "/proc/apm",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/latency_stats",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/timer_stats",
    "/sys",
];

/// Below `/sys`, and mounts of their own, which `ProtectKernelTunables` leaves to others.
const NOT_TUNABLES: [&str; 1] = ["/sys/fs/cgroup"];

/// What the kernel shows that tells where its code lies.
const KERNEL_SECRETS: [&str; 2] = ["/proc/kallsyms", "/proc/kcore"];

/// What is read-only, and what cannot be seen.
///
/// # Errors
/// A path that has to be there is not.
pub fn protect(mounts: &mut Mounts<'_>, sandbox: &Sandbox, made: &[Made]) -> Result<(), SpawnFailure> {
    system(mounts, sandbox)?;
    home(mounts, sandbox)?;
    kernel(mounts, sandbox)?;
    for (key, paths, allowed) in
        [("NoExecPaths", &sandbox.no_exec, false), ("ExecPaths", &sandbox.exec, true)]
    {
        for path in paths {
            mounts.rule(key, &path.path, need(path.optional), allowed)?;
        }
    }
    for (key, paths, cover) in [
        ("ReadOnlyPaths", &sandbox.read_only, Cover::ReadOnly),
        ("ReadWritePaths", &sandbox.read_write, Cover::AsItIs),
        ("InaccessiblePaths", &sandbox.inaccessible, Cover::Inaccessible),
    ] {
        for path in paths {
            mounts.add(key, &path.path, need(path.optional), cover.clone())?;
        }
    }
    // Its own folders are for writing; its configuration is not.
    for (key, paths) in made.iter().filter(|(variable, _)| *variable != "CONFIGURATION_DIRECTORY") {
        paths.iter().try_for_each(|path| mounts.own(key, path))?;
    }
    Ok(())
}

const fn need(optional: bool) -> Need {
    if optional { Need::Optional } else { Need::Required }
}

fn system(mounts: &mut Mounts<'_>, sandbox: &Sandbox) -> Result<(), SpawnFailure> {
    const KEY: &str = "ProtectSystem";
    let read_only: &[&str] = match sandbox.protect_system {
        ProtectSystem::No => return Ok(()),
        ProtectSystem::Yes => &["/usr", "/boot", "/efi"],
        ProtectSystem::Full => &["/usr", "/boot", "/efi", "/etc"],
        ProtectSystem::Strict => &["/"],
    };
    for path in read_only {
        mounts.add(KEY, Path::new(path), Need::Optional, Cover::ReadOnly)?;
    }
    if sandbox.protect_system == ProtectSystem::Strict {
        for path in ["/proc", "/sys", "/dev"].iter().chain(&HOMES) {
            mounts.add(KEY, Path::new(path), Need::Optional, Cover::AsItIs)?;
        }
    }
    Ok(())
}

fn home(mounts: &mut Mounts<'_>, sandbox: &Sandbox) -> Result<(), SpawnFailure> {
    let cover = match sandbox.protect_home {
        ProtectHome::No => return Ok(()),
        ProtectHome::Yes => Cover::Inaccessible,
        ProtectHome::ReadOnly => Cover::ReadOnly,
        ProtectHome::Tmpfs => Cover::Temporary { options: "mode=0755".into(), read_only: true },
    };
    for path in HOMES {
        mounts.add("ProtectHome", Path::new(path), Need::Optional, cover.clone())?;
    }
    Ok(())
}

fn kernel(mounts: &mut Mounts<'_>, sandbox: &Sandbox) -> Result<(), SpawnFailure> {
    let mut all = |key, paths: &[&str], cover: &Cover| {
        paths.iter().try_for_each(|path| mounts.add(key, Path::new(path), Need::Optional, cover.clone()))
    };
    if sandbox.protect_kernel_tunables {
        all("ProtectKernelTunables", &TUNABLES, &Cover::ReadOnly)?;
        all("ProtectKernelTunables", &KERNEL_SECRETS, &Cover::Inaccessible)?;
        if !sandbox.protect_control_groups {
            all("ProtectKernelTunables", &NOT_TUNABLES, &Cover::AsItIs)?;
        }
    }
    if sandbox.protect_control_groups {
        all("ProtectControlGroups", &["/sys/fs/cgroup"], &Cover::ReadOnly)?;
    }
    if sandbox.protect_kernel_modules {
        all("ProtectKernelModules", &["/usr/lib/modules"], &Cover::Inaccessible)?;
    }
    if sandbox.protect_kernel_logs {
        all("ProtectKernelLogs", &["/proc/kmsg", "/dev/kmsg"], &Cover::Inaccessible)?;
    }
    Ok(())
}

/// What `TemporaryFileSystem` has if it does not say otherwise: the kernel would have it open to all, and as large as half
/// of the memory.
const TEMPORARY_OPTIONS: &str = "mode=0755,size=10%,nr_inodes=400k";

/// What stands in the place of something else.
///
/// # Errors
/// A path that has to be there is not, or a place for it cannot be made.
pub fn replace(
    mounts: &mut Mounts<'_>,
    sandbox: &Sandbox,
    private: Option<&[PathBuf; 2]>,
) -> Result<(), SpawnFailure> {
    proc(mounts, sandbox)?;
    if let Some([tmp, var_tmp]) = private {
        for (path, own) in [("/tmp", tmp), ("/var/tmp", var_tmp)] {
            let cover = Cover::Tree { source: own.clone(), recursive: false, flags: MountFlags::PLAIN };
            mounts.add("PrivateTmp", Path::new(path), Need::Optional, cover)?;
        }
    }
    if sandbox.private_devices {
        devices(mounts)?;
    }
    if sandbox.private_ipc || sandbox.ipc_path.is_some() {
        mounts.add("PrivateIPC", Path::new("/dev/mqueue"), Need::Optional, Cover::Queues)?;
    }
    for temporary in &sandbox.temporary {
        // Of two options of a name the last counts.
        let options = [TEMPORARY_OPTIONS, &temporary.options].join(",");
        let cover = Cover::Temporary { options, read_only: temporary.read_only };
        mounts.add("TemporaryFileSystem", &temporary.path, Need::Made, cover)?;
    }
    for bind in &sandbox.binds {
        let flags = if bind.read_only { MountFlags::READ_ONLY } else { MountFlags::default() };
        let key = if bind.read_only { "BindReadOnlyPaths" } else { "BindPaths" };
        let Some(source) = mounts.source(key, &bind.source, bind.optional)? else { continue };
        let cover = Cover::Tree { source, recursive: bind.recursive, flags };
        mounts.add(key, &bind.target, Need::Made, cover)?;
    }
    Ok(())
}

fn proc(mounts: &mut Mounts<'_>, sandbox: &Sandbox) -> Result<(), SpawnFailure> {
    let hide = match sandbox.protect_proc {
        ProtectProc::Default => None,
        ProtectProc::NoAccess => Some("hidepid=noaccess"),
        ProtectProc::Invisible => Some("hidepid=invisible"),
        ProtectProc::Ptraceable => Some("hidepid=ptraceable"),
    };
    let subset = sandbox.proc_of_processes.then_some("subset=pid");
    let options: Vec<&str> = hide.into_iter().chain(subset).collect();
    // One that is mounted by a process shows the processes of its namespace.
    let key = match (hide, subset) {
        (Some(_), _) => "ProtectProc",
        (None, Some(_)) => "ProcSubset",
        (None, None) if sandbox.private_pids => "PrivatePIDs",
        (None, None) => return Ok(()),
    };
    mounts.add(key, Path::new("/proc"), Need::Required, Cover::Processes { options: options.join(",") })
}

/// The devices that tell nothing and change nothing, and the folders of what programs make themselves.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_FOLDERS: [&str; 4] = ["shm", "mqueue", "hugepages", "pts"];
/// Links that every `/dev` has, and where they lead.
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
    ("log", "/run/systemd/journal/dev-log"),
];

/// A folder of the manager's with empty files and folders becomes `/dev`, and the devices are mounted on them.
fn devices(mounts: &mut Mounts<'_>) -> Result<(), SpawnFailure> {
    const KEY: &str = "PrivateDevices";
    let there = |name: &&&str| Path::new("/dev").join(name).exists();
    let folder = mounts.prepare(KEY, "dev", |folder| {
        for name in DEVICES.iter().filter(there) {
            fs::write(folder.join(name), "")?;
        }
        for name in DEVICE_FOLDERS.iter().filter(there) {
            fs::create_dir_all(folder.join(name))?;
        }
        for (name, target) in DEVICE_LINKS {
            let link = folder.join(name);
            if !link.is_symlink() {
                std::os::unix::fs::symlink(target, link)?;
            }
        }
        Ok(())
    })?;
    let flags = MountFlags::READ_ONLY.and(MountFlags::INERT);
    mounts.add(
        KEY,
        Path::new("/dev"),
        Need::Required,
        Cover::Tree { source: folder, recursive: false, flags },
    )?;
    for name in DEVICES.iter().chain(&DEVICE_FOLDERS).filter(there) {
        let source = Path::new("/dev").join(name);
        let cover = Cover::Tree { source: source.clone(), recursive: true, flags: MountFlags::default() };
        mounts.add(KEY, &source, Need::Covered, cover)?;
    }
    Ok(())
}
