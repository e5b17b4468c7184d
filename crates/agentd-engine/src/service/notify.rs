//! What a service says of itself: whose word counts, its texts, its signs of life.

use std::time::Duration;

use agentd_unit::NotifyAccess;

use super::{Facts, Who};
use crate::clock::Monotonic;
use crate::event::{Notification, Sender};
use crate::out::Out;

/// The longest silence of a service that must show signs of life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watchdog {
    span: Duration,
    pub(crate) due: Monotonic,
    /// The manager itself was late once since the last sign of life.
    forgiven: bool,
}

impl Watchdog {
    /// The longest silence.
    pub(crate) const fn span(self) -> Duration {
        self.span
    }
}

impl Facts {
    /// What a notification says of state, once its sender is known to be one that may.
    pub(crate) fn may_notify(&self, sender: Sender) -> bool {
        let (Some(run), Some(service)) = (&self.run, self.section()) else { return false };
        let who = match sender {
            Sender::Process(id) => run.who(id),
            Sender::Other { .. } => None,
        };
        match run.notify_access.unwrap_or(service.notify_access) {
            NotifyAccess::None => false,
            NotifyAccess::Main => who == Some(Who::Main),
            NotifyAccess::Exec => who.is_some(),
            NotifyAccess::All => true,
        }
    }

    /// Whether a notification of one who may not notify is to be told of: the first of a run.
    pub(crate) fn tells_of_sender(&mut self) -> bool {
        self.run.as_mut().is_some_and(|run| !std::mem::replace(&mut run.told_of_sender, true))
    }

    /// Takes from a notification what changes no state: texts and signs of life.
    pub(crate) fn note(&mut self, notification: &Notification, out: &Out<'_>) {
        if let Some(text) = &notification.status {
            self.status_text = Some(text.clone());
        }
        if let Some(errno) = notification.errno {
            self.status_errno = Some(errno);
        }
        if let Some(error) = &notification.bus_error {
            self.status_bus_error = Some(error.clone());
        }
        if let (Some(access), Some(run)) = (notification.access, &mut self.run) {
            run.notify_access = Some(access);
        }
        if let Some(span) = notification.watchdog {
            self.set_watchdog(Some(span), out);
        } else if notification.alive {
            self.renew_watchdog(out);
        }
    }

    /// Begins to expect signs of life, from now, at the span of the unit or the one that the service has asked for.
    pub(crate) fn arm_watchdog(&mut self, out: &Out<'_>) {
        let asked = self.run.as_ref().and_then(|run| run.watchdog).map(|watchdog| watchdog.span);
        self.set_watchdog(asked.or_else(|| self.section().and_then(|service| service.watchdog)), out);
    }

    pub(crate) fn set_watchdog(&mut self, span: Option<Duration>, out: &Out<'_>) {
        if let Some(run) = &mut self.run {
            run.watchdog = span.filter(|span| !span.is_zero()).map(|span| Watchdog {
                span,
                due: out.now.monotonic + span,
                forgiven: false,
            });
        }
    }

    pub(super) fn renew_watchdog(&mut self, out: &Out<'_>) {
        if let Some(watchdog) = self.run.as_mut().and_then(|run| run.watchdog.as_mut()) {
            watchdog.due = out.now.monotonic + watchdog.span;
            watchdog.forgiven = false;
        }
    }

    /// Whether the service was silent for too long. A manager that comes late itself may have missed the signs: it
    /// waits one more span, once.
    pub(crate) fn is_hung(&mut self, out: &Out<'_>) -> bool {
        let now = out.now.monotonic;
        let Some(watchdog) = self.run.as_mut().and_then(|run| run.watchdog.as_mut()) else { return false };
        if now < watchdog.due {
            return false;
        }
        if !watchdog.forgiven && now >= watchdog.due + watchdog.span / 2 {
            watchdog.forgiven = true;
            watchdog.due = now + watchdog.span;
            return false;
        }
        true
    }
}
