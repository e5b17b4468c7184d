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

mod actions;
mod alarms;
mod checks;
pub mod clock;
mod collect;
mod connections;
mod definitions;
pub mod effect;
pub mod event;
mod freeze;
mod graph;
mod hooks;
pub mod ids;
mod job;
mod manager;
pub mod memo;
mod order;
mod out;
mod past;
mod path;
mod processes;
mod propagate;
mod queue;
mod random;
mod rate;
mod reload;
mod request;
mod restart;
mod service;
mod shutdown;
mod socket;
mod start;
pub mod state;
mod takeover;
mod timer;
mod timers;
mod transaction;
mod triggers;
mod unit;
pub mod view;
mod views;

pub use clock::{Boottime, Deadlines, Monotonic, Now};
pub use effect::{
    Effect, JobResult, KillTarget, Level, MainSource, Record, RequestError, Spawn, SpawnEnvironment, Trigger,
};
pub use event::{
    Checked, ClaimedMain, Connection, Event, ExitStatus, JobKind, JobMode, KillWhom, MainProcess,
    Notification, Request, Sender, ShutdownKind, SpawnFailure, SpawnFailureKind,
};
pub use ids::{AttachmentId, EffectId, InvocationId, JobId, RequestId};
pub use manager::{Config, Manager};
pub use memo::{Life, Memo};
pub use past::Past;
pub use state::{ActiveState, ServiceResult};
pub use view::{ExecStatusView, JobView, SocketView, TimerView, UnitView};
