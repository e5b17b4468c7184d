//! What the end of a unit, or a job that takes too long, does to the whole system: `FailureAction` and its kin,
//! systemd.unit(5).

use agentd_unit::Unit;
use agentd_unit::sections::Action;

use crate::effect::Level;
use crate::event::{ExitStatus, ShutdownKind};
use crate::graph::UnitId;
use crate::manager::Manager;
use crate::out::Out;
use crate::state::{ActiveState, ServiceResult};

/// An end of everything that follows from one unit.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// The setting that asks for it.
    key: &'static str,
    action: Action,
    /// What the manager exits with, if that is how it ends.
    code: u8,
    /// What a reboot hands to reboot(2).
    argument: Option<String>,
}

/// How much is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Haste {
    /// All units stop in their order.
    Clean,
    /// Everything is killed.
    Force,
    /// Nothing.
    Immediate,
}

/// What an action comes to. `None`: nothing happens.
const fn meaning(action: Action, code: u8) -> Option<(ShutdownKind, Haste)> {
    use Haste as H;
    use ShutdownKind as K;
    Some(match action {
        Action::None => return None,
        Action::Reboot => (K::Reboot, H::Clean),
        Action::RebootForce => (K::Reboot, H::Force),
        Action::RebootImmediate => (K::Reboot, H::Immediate),
        Action::Poweroff => (K::Poweroff, H::Clean),
        Action::PoweroffForce => (K::Poweroff, H::Force),
        Action::PoweroffImmediate => (K::Poweroff, H::Immediate),
        Action::Exit => (K::Exit(code), H::Clean),
        Action::ExitForce => (K::Exit(code), H::Force),
    })
}

/// What the manager exits with when a unit asks for it and names no code: how its main process ended, in one byte.
fn own_code(last: Option<ExitStatus>) -> u8 {
    last.map_or(0, ExitStatus::to_byte)
}

impl Manager {
    /// What the step of a unit from one state to another does to the system, by the definition that it has lived by.
    pub(crate) fn ending_of(&self, unit: UnitId, old: ActiveState, new: ActiveState) -> Option<Ending> {
        let entry = self.entry(unit)?;
        let system = &entry.unit.unit.system;
        let was_at_rest = matches!(old, ActiveState::Inactive | ActiveState::Failed);
        let last = entry.service().and_then(|service| service.facts.last_status);
        let ending = |key, action, code: Option<u8>| Ending {
            key,
            action,
            code: code.unwrap_or_else(|| own_code(last)),
            argument: system.reboot_argument.clone(),
        };
        let is_success = entry.result() == ServiceResult::Success;
        let ending = match new {
            ActiveState::Failed if old == new => return None,
            ActiveState::Failed if entry.is_given_up() && system.start_limit_action != Action::None => {
                start_limit(&entry.unit)
            }
            ActiveState::Failed => ending("FailureAction", system.failure_action, system.failure_exit_status),
            ActiveState::Inactive if !was_at_rest && is_success => {
                ending("SuccessAction", system.success_action, system.success_exit_status)
            }
            _ => return None,
        };
        (ending.action != Action::None).then_some(ending)
    }

    /// A unit that had failed already was started too often: no step from one state to another tells of it.
    pub(crate) fn end_of_patience(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let failed = |entry: &&crate::unit::Entry| entry.active() == ActiveState::Failed;
        let Some(ending) = self.entry(unit).filter(failed).map(|entry| start_limit(&entry.unit)) else {
            return;
        };
        self.end_system(unit, ending, out);
    }

    /// A job of this unit took too long.
    pub(crate) fn end_of_job(&mut self, unit: UnitId, out: &mut Out<'_>) {
        let Some(entry) = self.entry(unit) else { return };
        let system = &entry.unit.unit.system;
        let (action, argument) = (system.job_timeout_action, system.job_timeout_reboot_argument.clone());
        self.end_system(unit, Ending { key: "JobTimeoutAction", action, code: 0, argument }, out);
    }

    /// Ends everything, unless everything ends already.
    pub(crate) fn end_system(&mut self, unit: UnitId, ending: Ending, out: &mut Out<'_>) {
        let Some((kind, haste)) = meaning(ending.action, ending.code) else { return };
        if self.shutdown.is_some() {
            return;
        }
        let (name, key) = (self.name(unit), ending.key);
        let text = format!("{name}: Everything ends now, as {key} of this unit says.");
        out.log(Level::Warning, &name, None, None, text);
        self.begin_shutdown(kind, out);
        if let Some(shutdown) = self.shutdown.as_mut().filter(|_| kind == ShutdownKind::Reboot) {
            shutdown.argument = ending.argument;
        }
        match haste {
            Haste::Clean => {}
            Haste::Force => self.force(out),
            Haste::Immediate => self.end(out),
        }
    }
}

fn start_limit(unit: &Unit) -> Ending {
    let system = &unit.unit.system;
    let (action, argument) = (system.start_limit_action, system.reboot_argument.clone());
    Ending { key: "StartLimitAction", action, code: 0, argument }
}
