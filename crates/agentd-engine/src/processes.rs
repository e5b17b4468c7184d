//! What the world says of processes: matched to unit and run here, so that an old run's news changes nothing.

use agentd_unit::sections::OomPolicy;

use crate::effect::{Effect, Level};
use crate::event::{ExitStatus, MainProcess, Notification, Sender, SpawnFailure};
use crate::graph::UnitId;
use crate::ids::{EffectId, InvocationId};
use crate::manager::Manager;
use crate::out::{Out, message};
use crate::service::{Facts, Run, ServiceEvent, Who};

impl Manager {
    /// The facts of the unit whose present run this is.
    fn present(&mut self, run: InvocationId) -> Option<(UnitId, &mut Facts)> {
        let id = *self.runs.get(&run)?;
        let facts = &mut self.entry_mut(id)?.service_mut()?.facts;
        facts.run.as_ref().is_some_and(|present| present.id == run).then_some((id, facts))
    }

    fn process(&mut self, id: EffectId, run: InvocationId) -> Option<(UnitId, Who, &mut Facts)> {
        let (unit, facts) = self.present(run)?;
        let who = facts.run.as_deref().and_then(|run: &Run| run.who(id))?;
        Some((unit, who, facts))
    }

    pub(crate) fn spawned(
        &mut self,
        id: EffectId,
        run: InvocationId,
        result: Result<u32, SpawnFailure>,
        out: &mut Out<'_>,
    ) {
        let Some((unit, who, facts)) = self.process(id, run) else { return };
        let event = match result {
            Ok(pid) => {
                facts.up(who, pid, out);
                ServiceEvent::Up(who)
            }
            Err(failure) => ServiceEvent::Gone { who, outcome: facts.unspawned(who, &failure, out) },
        };
        self.drive(unit, event, out);
    }

    pub(crate) fn exited(&mut self, id: EffectId, run: InvocationId, status: ExitStatus, out: &mut Out<'_>) {
        let Some((unit, who, facts)) = self.process(id, run) else { return };
        let outcome = facts.exited(who, status, out);
        if who == Who::Main {
            self.touch(unit); // The unit may live on without it.
        }
        self.drive(unit, ServiceEvent::Gone { who, outcome }, out);
    }

    pub(crate) fn main_found(
        &mut self,
        id: EffectId,
        run: InvocationId,
        result: Result<MainProcess, String>,
        out: &mut Out<'_>,
    ) {
        let Some((unit, facts)) = self.present(run) else { return };
        let event = facts.main_found(id, result, out);
        self.touch(unit);
        if let Some(event) = event {
            self.drive(unit, event, out);
        }
    }

    pub(crate) fn pid_file_changed(&mut self, run: InvocationId, out: &mut Out<'_>) {
        if let Some((unit, _)) = self.present(run) {
            self.drive(unit, ServiceEvent::PidFile, out);
        }
    }

    pub(crate) fn reload_asked(
        &mut self,
        id: EffectId,
        run: InvocationId,
        result: Result<(), String>,
        out: &mut Out<'_>,
    ) {
        let Some((unit, facts)) = self.present(run) else { return };
        let asked =
            facts.run.as_mut().is_some_and(|run| run.reload.asked.take_if(|asked| *asked == id).is_some());
        let Err(reason) = result else { return };
        if asked {
            let name = self.name(unit);
            let text = format!("{name}: Cannot be asked to reload: {reason}");
            out.log(Level::Error, &name, Some(run), None, text);
            self.drive(unit, ServiceEvent::ReloadRefused, out);
        }
    }

    pub(crate) fn emptied(&mut self, id: EffectId, run: InvocationId, out: &mut Out<'_>) {
        let Some(unit) = self.runs.get(&run).copied() else { return };
        let Some(service) = self.entry_mut(unit).and_then(|entry| entry.service_mut()) else { return };
        let facts = &mut service.facts;
        if facts.leftover.is_some_and(|leftover| leftover.run == run && leftover.awaiting == id) {
            facts.leftover = None;
            self.runs.remove(&run);
            out.push(Effect::Release { run });
            self.touch(unit);
            self.drive(unit, ServiceEvent::Cleared, out);
            return;
        }
        let Some(present) = facts.run.as_mut().filter(|present| present.id == run) else { return };
        if present.awaiting == Some(id) {
            present.awaiting = None;
            present.emptied = true;
            self.drive(unit, ServiceEvent::Emptied, out);
        }
    }

    pub(crate) fn oom_killed(&mut self, run: InvocationId, out: &mut Out<'_>) {
        let Some((unit, facts)) = self.present(run) else { return };
        let policy = facts.section().map(|service| service.resources.oom_policy()).unwrap_or_default();
        let name = self.name(unit);
        let text = format!("{name}: A process of this unit has been killed by the OOM killer.");
        out.log(Level::Warning, &name, Some(run), Some(message::OUT_OF_MEMORY), text);
        if policy != OomPolicy::Continue {
            self.drive(unit, ServiceEvent::Oom, out);
        }
    }

    pub(crate) fn notified(
        &mut self,
        run: InvocationId,
        sender: Sender,
        notification: &Notification,
        out: &mut Out<'_>,
    ) {
        let Some((unit, facts)) = self.present(run) else { return drop_attachment(notification, out) };
        if !facts.may_notify(sender) {
            let level = if facts.tells_of_sender() { Level::Warning } else { Level::Debug };
            drop_attachment(notification, out);
            let name = self.name(unit);
            let who = match sender {
                Sender::Process(_) => "one of its commands".to_owned(),
                Sender::Other { pid } => format!("process {pid}"),
            };
            let text = format!("{name}: Ignored a notification of {who}: NotifyAccess does not allow it.");
            out.log(level, &name, Some(run), None, text);
            return;
        }
        facts.note(notification, out);
        facts.note_reload(notification.reloading, notification.ready);
        self.claim_main(unit, notification, out);
        let Some((unit, facts)) = self.present(run) else { return };
        if let (Some(id), Some(run)) = (notification.attachment, &facts.run) {
            out.push(Effect::TakeAttachment { id, unit: run.unit.name.clone() });
        }
        if let Some(span) = notification.extend_timeout {
            let least = out.now.monotonic + span;
            if let Some(service) = self.entry_mut(unit).and_then(|entry| entry.service_mut()) {
                service.state = service.state.extended(least);
            }
        }
        self.set_alarm(unit);
        if notification.outlasts_the_manager() {
            self.touch(unit);
        }
        for (said, event) in [
            (notification.reloading, ServiceEvent::Reloading(notification.monotonic)),
            (notification.ready, ServiceEvent::Ready),
            (notification.stopping, ServiceEvent::Stopping),
            (notification.trigger_watchdog, ServiceEvent::Hung),
        ] {
            if said {
                self.drive(unit, event, out);
            }
        }
    }
}

impl Manager {
    fn claim_main(&mut self, unit: UnitId, notification: &Notification, out: &mut Out<'_>) {
        let service = self.entry_mut(unit).and_then(|entry| entry.service_mut());
        if let (Some(claim), Some(service)) = (notification.main, service) {
            service.facts.claim_main(service.state, claim, out);
        }
    }
}

/// What came along with a notification that counts for nothing.
fn drop_attachment(notification: &Notification, out: &mut Out<'_>) {
    if let Some(id) = notification.attachment {
        out.push(Effect::DropAttachment { id });
    }
}
