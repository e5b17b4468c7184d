//! sd_notify(3) datagrams: which run they come from, by the sender's process and cgroup, and what they say.

use std::collections::VecDeque;

use agentd_engine::{Event, Notification};
use agentd_linux::notify::{Datagram, NotifySocket, Received};
use agentd_protocol::NotifyMessage;
use agentd_protocol::notify::WatchdogSign;

use crate::world::World;

/// How many datagrams are read in one turn, so that a flood delays nobody.
const TURN: usize = 1024;

/// Reads pending datagrams. Returns whether there may be more.
pub fn drain(socket: &mut NotifySocket, world: &mut World, events: &mut VecDeque<Event>) -> bool {
    for _ in 0..TURN {
        match socket.receive() {
            Ok(Some(Received::Datagram(datagram))) => take(datagram, world, events),
            Ok(Some(Received::Refused { sender })) => {
                tracing::warn!(?sender, "a notification was longer than any may be, or had no sender");
            }
            Ok(None) => return false,
            Err(error) => {
                tracing::error!(%error, "notifications cannot be read");
                return false;
            }
        }
    }
    true
}

fn take(datagram: Datagram, world: &mut World, events: &mut VecDeque<Event>) {
    let pid = datagram.sender.pid;
    let Some((run, sender)) = world.run_of_process(pid) else {
        tracing::debug!(pid, uid = datagram.sender.uid, "a notification came from no unit's process");
        return;
    };
    // A barrier is answered by closing its descriptor once all before it were read: dropping the datagram does that.
    match NotifyMessage::parse(&datagram.bytes) {
        Ok(message) => {
            for problem in &message.problems {
                tracing::warn!(pid, "a notification has a line that means nothing: {problem}");
            }
            let notification = notification(message);
            if notification != Notification::default() {
                events.push_back(Event::Notified { run, sender, notification });
            }
        }
        Err(error) => tracing::warn!(pid, %error, "a notification is not valid"),
    }
}

/// The fields that decide unit state.
fn notification(message: NotifyMessage) -> Notification {
    Notification {
        ready: message.ready,
        reloading: message.reloading,
        stopping: message.stopping,
        status: message.status,
        errno: message.errno,
        alive: message.watchdog == Some(WatchdogSign::Alive),
        trigger_watchdog: message.watchdog == Some(WatchdogSign::Trigger),
        watchdog: message.watchdog_span,
        extend_timeout: message.extend_timeout,
    }
}
