//! The last steps of a manager: what is left is killed, file systems are written out and unmounted, the machine ends.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use agentd_engine::ShutdownKind;
use agentd_linux::cgroup::CgroupRoot;
use agentd_linux::{machine, mount, reap};

use crate::config::Mode;
use crate::journal::Journal;
use crate::world::World;

/// How long processes outside of all units have between SIGTERM and SIGKILL, and how long we wait for the last of
/// them: systemd's DefaultTimeoutStopSec is far longer, but units had their time already.
const STRAGGLERS: Duration = Duration::from_secs(5);

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGCONT: i32 = 18;

/// How long the logs may take to be written out.
const FLUSH: Duration = Duration::from_secs(3);

/// Begins what the end would wait for in the kernel, while units still stop: the manager goes back to the cgroup that it
/// was started in. Nothing is born from now on but into cgroups of units.
pub fn prepare(world: &mut World) {
    let Some(way) = world.cgroups.as_ref().and_then(CgroupRoot::way_back) else { return };
    match thread::Builder::new().name("way-back".into()).spawn(move || way.go()) {
        Ok(thread) => world.way_back = Some(thread),
        Err(error) => tracing::debug!(%error, "the manager leaves its cgroup last"),
    }
}

/// Ends as asked. Returns for managers that are no init of a machine, and where the kernel refuses.
pub fn end(kind: ShutdownKind, mut world: World, journal: &Journal) -> ExitCode {
    let mode = world.config.mode;
    if mode.is_pid1() {
        kill_stragglers();
    }
    let (log, mut cgroups) = (world.log.take(), world.cgroups.take());
    let watches = std::mem::take(&mut world.watches);
    let way_back = world.way_back.take();
    let leave = || {
        let is_back = way_back.is_some_and(|thread| thread.join().unwrap_or(false));
        cgroups.take().map(|cgroups| if is_back { cgroups.remove() } else { cgroups.leave() })
    };
    thread::scope(|scope| {
        // The kernel waits for a while before it takes watches away and moves the manager; the log can use that to write
        // its files.
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, || drop(watches)) {
            tracing::debug!(%error, "there is no thread that closes the watches");
        }
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, leave) {
            tracing::warn!(%error, "the manager's cgroups are left over");
        }
        if log.is_some_and(|log| !log.stop(FLUSH)) {
            tracing::warn!("the log of the agents' output could not be written out in time");
        }
    });
    remove_sockets(&world);
    let argument = world.reboot_argument.take().filter(|_| kind == ShutdownKind::Reboot);
    // Stamps on their way are written before the state is closed.
    drop(world);
    let code = match kind {
        ShutdownKind::Exit(code) => ExitCode::from(code),
        ShutdownKind::Poweroff | ShutdownKind::Reboot | ShutdownKind::Halt => ExitCode::SUCCESS,
    };
    if mode != Mode::Init {
        journal.flush(FLUSH);
        return code;
    }
    let end = match kind {
        ShutdownKind::Reboot => machine::End::Reboot,
        ShutdownKind::Halt => machine::End::Halt,
        // An init of a machine that exits would be a kernel panic.
        ShutdownKind::Poweroff | ShutdownKind::Exit(_) => machine::End::Poweroff,
    };
    match &argument {
        Some(argument) => tracing::info!("Rebooting with argument '{argument}'."),
        None => tracing::info!("{}", farewell(end)),
    }
    journal.flush(FLUSH);
    for (device, error) in mount::swap_off() {
        tracing::warn!(%error, "swap on {} is still in use", device.display());
    }
    machine::sync();
    for (point, error) in mount::unmount_all() {
        tracing::warn!(%error, "{} is still mounted", point.display());
    }
    machine::sync();
    if let Some(argument) = argument {
        let error = machine::reboot_with(&argument);
        tracing::error!(%error, "the machine cannot be rebooted with the argument '{argument}'; rebooting without");
    }
    let error = machine::end(end);
    tracing::error!(%error, "the machine cannot be ended; exiting instead");
    journal.flush(FLUSH);
    code
}

const fn farewell(end: machine::End) -> &'static str {
    match end {
        machine::End::Poweroff => "Powering off.",
        machine::End::Reboot => "Rebooting.",
        machine::End::Halt => "Halting.",
    }
}

/// Ends every process that is left, politely first.
fn kill_stragglers() {
    for signals in [[SIGTERM, SIGCONT].as_slice(), &[SIGKILL]] {
        for signal in signals {
            if let Err(error) = reap::signal_everyone(*signal) {
                tracing::warn!(%error, "the last processes cannot be signalled");
            }
        }
        match reap::reap_all_within(STRAGGLERS) {
            Ok(true) => return,
            Ok(false) => tracing::warn!("processes are left that do not end"),
            Err(error) => tracing::warn!(%error, "the last processes cannot be waited for"),
        }
    }
}

/// Our sockets lead nowhere now.
fn remove_sockets(world: &World) {
    for path in [world.config.folders.control_socket(), world.config.folders.notify_socket()] {
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::debug!(%error, "{} cannot be removed", path.display());
        }
    }
}
