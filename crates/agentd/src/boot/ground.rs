//! The ground that every manager stands on: its folders, the lock against a second manager, cgroups, keys, sockets.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agentd_linux::cgroup::{CgroupRoot, Controller, Enforceable, Place};
use agentd_state::{Problem, StateDir, StateError};
use agentd_trust::KeyRing;

use crate::config::Config;
use crate::perform::plan::chain;

/// Why a manager cannot start.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// A folder cannot be used.
    #[error("{} cannot be {step}{}", path.display(), advice(source))]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The state cannot be kept.
    #[error("the state folder cannot be used; --state-dir names another one")]
    State(#[source] StateError),
    /// Somebody else could put things there.
    #[error("{} belongs to user {owner} or can be written by others; remove it or name another folder", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// There is a manager already.
    #[error("another agentd (pid {pid}) uses {}; stop it with 'agentctl exit', or use another --runtime-dir", path.display())]
    Running {
        /// The lock.
        path: PathBuf,
        /// Who holds it.
        pid: String,
    },
}

/// What to do about a folder that cannot be used.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; as another user than root run 'agentd --user', or name another folder"
        }
        _ => "",
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GroundError {
    let path = path.to_owned();
    move |source| GroundError::Folder { path, step, source }
}

/// Makes the runtime folder, 0755, and checks that nobody else can write there.
///
/// # Errors
/// It cannot be made, or is not ours alone.
pub fn runtime_folder(path: &Path, uid: u32) -> Result<(), GroundError> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed("made", path))?;
    let meta = fs::symlink_metadata(path).map_err(failed("looked at", path))?;
    let ours = meta.uid() == uid || meta.uid() == 0;
    if !meta.is_dir() || !ours || meta.permissions().mode() & 0o022 != 0 {
        return Err(GroundError::Unsafe { path: path.to_owned(), owner: meta.uid() });
    }
    Ok(())
}

/// Takes the lock of the runtime folder, for as long as the file is held.
///
/// # Errors
/// Another manager holds it; its pid stands in the error.
pub fn lock(path: &Path) -> Result<File, GroundError> {
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed("opened", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            file.read_to_string(&mut pid).map_err(failed("read", path))?;
            return Err(GroundError::Running { path: path.to_owned(), pid: pid.trim().to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(failed("locked", path)(error)),
    }
    file.set_len(0).map_err(failed("written", path))?;
    writeln!(file, "{}", std::process::id()).map_err(failed("written", path))?;
    Ok(file)
}

/// The durable state. An init whose disk takes none goes on with one that lasts until the next boot: without it the machine
/// would not come up at all.
///
/// # Errors
/// There is none, and this manager is no init.
pub fn state(config: &Config) -> Result<(StateDir, Vec<Problem>), GroundError> {
    match StateDir::open(&config.folders.state) {
        Err(error) if config.mode.is_pid1() => {
            let instead = config.folders.runtime.join("state");
            tracing::error!(
                "{}; stamps of timers and fencing tokens are kept in {} until the next boot",
                chain(&error),
                instead.display()
            );
            StateDir::open(&instead)
        }
        found => found,
    }
    .map_err(GroundError::State)
}

/// Our part of the cgroup tree, or the sentences that say what cannot be done without it. Of what an earlier manager left
/// there only the units stay that `keep` says yes to.
pub fn cgroups(config: &Config, keep: &dyn Fn(&str) -> bool) -> (Option<CgroupRoot>, Vec<String>) {
    let folder = cgroup_folder(&config.folders.runtime);
    let place = if config.mode.is_pid1() { Place::Whole } else { Place::Folder(&folder) };
    match CgroupRoot::set_up(place) {
        Ok(root) => {
            sweep(&root, keep);
            let problems = root.problems().iter().map(|problem| crate::perform::plan::chain(problem));
            let missing = problems.chain(without_controllers(root.enforceable())).collect();
            (Some(root), missing)
        }
        Err(error) => {
            let why = format!(
                "no cgroups for units, so no limits and no accounting: {}",
                crate::perform::plan::chain(&error)
            );
            (None, vec![why])
        }
    }
}

/// What is said where the cgroups of units lack what the common limits need: a container runtime, another manager or a
/// kernel with the controllers in version 1 hierarchies has kept it. cgroups(7).
fn without_controllers(has: Enforceable) -> Option<String> {
    let missing: Vec<&str> = [Controller::Cpu, Controller::Memory, Controller::Pids]
        .into_iter()
        .filter(|controller| !has.has(*controller))
        .map(Controller::name)
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "limits that need the cgroup v2 controllers {} are not enforced: agentd's cgroup has not got them; delegate \
             them to it, or boot with cgroup_no_v1=all where version 1 hierarchies hold them",
            missing.join(", ")
        )
    })
}

/// How long processes that an earlier manager left may take to die: SIGKILL works at once but for those in the kernel.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(5);

/// Ends what an earlier manager has left running and nobody goes on with, so that no agent runs twice.
fn sweep(root: &CgroupRoot, keep: &dyn Fn(&str) -> bool) {
    match root.sweep(SWEEP, keep) {
        Ok((0, _)) => {}
        Ok((units, left)) if left.is_empty() => {
            tracing::warn!(
                units,
                "an earlier manager was killed; agents that were on their way up or down are ended"
            );
        }
        Ok((_, left)) => {
            tracing::error!("agents of an earlier manager cannot be ended: {}", left.join(", "));
        }
        Err(error) => tracing::warn!("{}", crate::perform::plan::chain(&error)),
    }
}

/// The folder of a manager beside other software: `agentd`, and for one with a runtime folder of its own a name that
/// no other manager has, so that their units do not meet.
fn cgroup_folder(runtime: &Path) -> String {
    if runtime == Path::new("/run/agentd") {
        return "agentd".to_owned();
    }
    // FNV-1a: the same path must always give the same name, so that the next manager finds what this one left.
    let hash = runtime.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("agentd-{hash:016x}")
}

/// The keys of the folders; what is wrong with one is told and hides no other.
#[must_use]
pub fn keys(config: &Config, uid: u32) -> KeyRing {
    let owners = if uid == 0 { vec![0] } else { vec![0, uid] };
    let (ring, problems) = KeyRing::load(&config.keys, &owners);
    for problem in problems {
        tracing::warn!("a key is not used: {}", crate::perform::plan::chain(&problem));
    }
    ring
}

/// Physical memory in bytes and the largest number of tasks, for limits in percent. 0 where the kernel does not say.
#[must_use]
pub fn machine_size() -> (u64, u64) {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = kilobytes.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let tasks = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min();
    (kilobytes.unwrap_or(0).saturating_mul(1024), tasks.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("agentd-ground-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn controllers_that_are_missing_are_named_with_what_to_do() {
        let none = without_controllers(Enforceable::default()).unwrap();
        assert!(
            none.contains("controllers cpu, memory, pids are not enforced")
                && none.contains("cgroup_no_v1=all")
        );
        let some = Enforceable { cpu: true, pids: true, ..Enforceable::default() };
        assert!(without_controllers(some).unwrap().contains("controllers memory are"));
        assert_eq!(without_controllers(Enforceable { memory: true, ..some }), None);
    }

    #[test]
    fn a_second_manager_is_told_of_the_first() {
        let path = scratch("lock").join("lock");
        let held = lock(&path).unwrap();
        let error = lock(&path).unwrap_err();
        assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
        drop(held);
        assert!(lock(&path).is_ok(), "a lock that nobody holds does not block");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let path = scratch("open");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let uid = fs::metadata(&path).unwrap().uid();
        assert!(matches!(runtime_folder(&path, uid), Err(GroundError::Unsafe { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(runtime_folder(&path, uid).is_ok());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn managers_with_folders_of_their_own_do_not_share_cgroups() {
        assert_eq!(cgroup_folder(Path::new("/run/agentd")), "agentd");
        assert_ne!(cgroup_folder(Path::new("/tmp/a")), cgroup_folder(Path::new("/tmp/b")));
        assert_eq!(cgroup_folder(Path::new("/tmp/a")), cgroup_folder(Path::new("/tmp/a")));
    }

    #[test]
    fn the_machine_has_a_size() {
        let (memory, tasks) = machine_size();
        assert!(memory > 1 << 20 && tasks > 100);
    }
}
