//! The unit language: names, files, drop-ins, templates, typed settings, diagnostics with source spans.
//!
//! A unit file is read into [`Unit`], a set of them into [`UnitSet`]; both are plain data that the engine takes
//! by value. Nothing here runs a unit, asks a clock or talks to the kernel beyond reading files.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod cron;
pub mod exec;
pub mod name;
pub mod sections;
pub mod set;
pub mod signal;
pub mod time;
pub mod unit;

pub use exec::{ExecCommand, ExecKind};
pub use name::{UnitName, UnitNameError, UnitType};
pub use sections::{
    AgentKind, AgentSection, InstallSection, KillMode, NotifyAccess, Restart, ServiceSection, ServiceType,
    TimerSection, TimerTrigger, UnitSection,
};
pub use set::UnitSet;
pub use signal::Signal;
pub use time::Realtime;
pub use unit::{Body, LoadState, Unit};
