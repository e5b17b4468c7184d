//! Signals to the manager, as systemd(1) "SIGNALS" has them.

use std::collections::VecDeque;

use agentd_engine::{Event, Request, ShutdownKind};
use agentd_linux::signal::{SignalFd, SignalInfo};
use agentd_unit::Signal;

use super::children;
use crate::config::Mode;
use crate::units::Errand;
use crate::world::World;

/// The signals that the manager reads; all others keep their default. Blocked from the first moment of main.
///
/// 37 to 39 are SIGRTMIN+3 to +5 of glibc's senders, whatever libc we are built with. The other real-time signals are read
/// to be told of and ignored: by default they would end a manager that is not the init.
pub const WATCHED: [i32; 38] = {
    let mut watched = [0; 38];
    let named = [SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGTERM, SIGCHLD, SIGPWR];
    let mut at = 0;
    while at < watched.len() {
        watched[at] = if at < named.len() { named[at] } else { FIRST_REAL_TIME + (at - named.len()) as i32 };
        at += 1;
    }
    watched
};

/// SIGRTMIN of glibc's senders; 64 is the last.
const FIRST_REAL_TIME: i32 = 34;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGUSR1: i32 = 10;
const SIGUSR2: i32 = 12;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
const SIGPWR: i32 = 30;
const HALT: i32 = 37;
const POWEROFF: i32 = 38;
const REBOOT: i32 = 39;

/// Reads all pending signals and does or queues what they ask for.
pub fn drain(signals: &SignalFd, world: &mut World, events: &mut VecDeque<Event>) {
    let mut children = world.children_left;
    loop {
        match signals.read() {
            Ok(Some(info)) if info.signal == SIGCHLD => children = true,
            Ok(Some(info)) => take(&info, world, events),
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "signals cannot be read");
                break;
            }
        }
    }
    if children {
        world.children_left = children::reap(world, events);
    }
}

fn take(info: &SignalInfo, world: &mut World, events: &mut VecDeque<Event>) {
    let name = Signal::from_number(info.signal).map_or_else(|| info.signal.to_string(), |s| s.to_string());
    tracing::info!(pid = info.pid, uid = info.uid, "received {name}");
    match (info.signal, world.config.mode) {
        (SIGHUP, _) => world.errands.push(Errand::Load(None)),
        (SIGUSR1, _) => world.reopen_control = true,
        (SIGUSR2, _) => world.dump = true,
        (SIGINT, Mode::Init) => shutdown(ShutdownKind::Reboot, world, events),
        (SIGTERM, Mode::Init) | (SIGPWR | POWEROFF, Mode::Init) => {
            shutdown(ShutdownKind::Poweroff, world, events)
        }
        (HALT, Mode::Init) => shutdown(ShutdownKind::Halt, world, events),
        (REBOOT, Mode::Init) => shutdown(ShutdownKind::Reboot, world, events),
        // A container, a subreaper and a user manager end themselves, whatever the word.
        (SIGINT | SIGTERM | SIGPWR | HALT | POWEROFF | REBOOT, _) => {
            shutdown(ShutdownKind::Exit(0), world, events);
        }
        _ => tracing::warn!("{name} is ignored: it means nothing to this manager"),
    }
}

fn shutdown(kind: ShutdownKind, world: &mut World, events: &mut VecDeque<Event>) {
    let id = world.replies.unattended();
    events.push_back(Event::Request { id, request: Request::Shutdown { kind } });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_real_time_signal_is_read_and_no_libc_keeps_one_of_them() {
        assert_eq!(WATCHED[..7], [1, 2, 10, 12, 15, 17, 30]);
        assert!(WATCHED[7..].iter().copied().eq(34..=64));
    }
}
