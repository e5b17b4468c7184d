//! The pure engine: Manager, Unit, Job, Transaction and the state machines. No clock, no I/O.
//!
//! `Event in → new state, Effects out`: [`Manager::handle`] takes what happened and the time, and pushes what the
//! world must do. It never waits, never fails and does the same for the same input, byte for byte.
//!
//! # Rules
//! 1. An effect that can fail carries an [`EffectId`]; exactly one event closes it.
//! 2. Time is an argument; [`Manager::deadlines`] says when the next [`Event::Tick`] is due; a spurious one is harmless.
//! 3. Every process event names its [`InvocationId`]; events of another run change nothing.
//! 4. Reads bypass events: `&Manager` → views.
//! 5. Only what decides unit state enters.
//! 6. Commit, then perform: `handle` returns before any effect runs.
//! 7. Validate a whole, then swap: [`Event::UnitsLoaded`].
#![forbid(unsafe_code)]

pub mod clock;
pub mod effect;
pub mod event;
pub mod ids;
pub mod state;
pub mod view;

pub use clock::{Boottime, Deadlines, Monotonic, Now};
pub use effect::{Effect, JobResult, KillTarget, Level, Record, RequestError, Spawn, SpawnEnvironment};
pub use event::{
    Event, ExitStatus, JobKind, JobMode, KillWhom, Notification, Request, Sender, ShutdownKind, SpawnFailure,
    SpawnFailureKind,
};
pub use ids::{EffectId, InvocationId, JobId, RequestId};
pub use state::{ActiveState, ServiceResult};
pub use view::{ExecStatusView, JobView, TimerView, UnitView};

use std::collections::BTreeMap;

use agentd_unit::{Realtime, UnitName};

/// What the manager is told at birth.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Entropy for invocation ids; the same seed gives the same run.
    pub seed: [u8; 16],
    /// When persistent timers last fired, from earlier boots.
    pub stamps: BTreeMap<UnitName, Realtime>,
    /// The bound on a whole shutdown; what is left then is killed. `None`: no bound of its own.
    pub shutdown_timeout: Option<std::time::Duration>,
}

/// The one owner of all unit state.
pub struct Manager {
    config: Config,
}

impl Manager {
    /// A manager that knows no units yet.
    #[must_use]
    pub fn new(config: Config, now: Now) -> Self {
        let _ = now;
        Self { config }
    }

    /// Takes one event and pushes what follows from it, in order.
    pub fn handle(&mut self, event: Event, now: Now, effects: &mut Vec<Effect>) {
        let _ = (event, now, effects, &self.config);
    }

    /// When the next [`Event::Tick`] is due.
    #[must_use]
    pub fn deadlines(&self) -> Deadlines {
        Deadlines::default()
    }

    /// One unit, by id or alias. Also units that are named but have no file.
    #[must_use]
    pub fn unit(&self, name: &UnitName) -> Option<UnitView> {
        let _ = name;
        None
    }

    /// All units, in the order of their names.
    pub fn units(&self) -> impl Iterator<Item = UnitView> + '_ {
        std::iter::empty()
    }

    /// All jobs, in the order of their numbers.
    pub fn jobs(&self) -> impl Iterator<Item = JobView> + '_ {
        std::iter::empty()
    }

    /// The unit that a run belongs to, while it lasts.
    #[must_use]
    pub fn unit_of_run(&self, run: InvocationId) -> Option<&UnitName> {
        let _ = run;
        None
    }

    /// Whether a shutdown is under way.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        false
    }
}
