//! The unit language: names, files, drop-ins, templates, typed settings, diagnostics with source spans.
//!
//! A unit file is read into [`Unit`], a set of them into [`UnitSet`]; both are plain data that the engine takes
//! by value. Nothing here runs a unit, asks a clock or talks to the kernel beyond reading files.
#![forbid(unsafe_code)]

mod assignment;
mod bytes;
pub mod calendar;
mod check;
pub mod conditions;
pub mod cron;
pub mod diagnostic;
pub mod digest;
mod draft;
pub mod edges;
pub mod effective;
pub mod escape;
pub mod exec;
mod hash;
pub mod import;
mod ini_front;
pub mod loader;
mod manager;
mod moment;
pub mod name;
mod names;
mod parse;
pub mod pattern;
mod rare;
pub mod roff;
pub mod schema;
pub mod search_path;
pub mod sections;
pub mod set;
pub mod signal;
mod slices;
mod source;
pub mod specifier;
pub mod strict;
pub mod time;
mod toml_fast;
mod toml_front;
pub mod unit;
pub mod values;
pub mod words;
mod zone;

pub use diagnostic::{Diagnostic, Severity};
pub use exec::{ExecCommand, ExecKind};
pub use loader::{
    Admission, FileState, Gate, LoadReport, Loader, LoaderConfig, NamedFile, OpenGate, Problem, Remembered,
    Trusted, UnitFile, UnitFiles,
};
pub use manager::ManagerSettings;
pub use name::{UnitName, UnitNameError, UnitType};
pub use names::UnitNames;
pub use parse::{ParseContext, Parsed, parse_unit};
pub use rare::{Rare, Unset};
pub use search_path::{Scope, SearchPath};
pub use sections::{
    AgentKind, AgentSandbox, AgentSection, ControlAccess, InstallSection, KillMode, NotifyAccess, Restart,
    ServiceSection, ServiceType, TimerSection, TimerTrigger, UnitSection,
};
pub use set::UnitSet;
pub use signal::Signal;
pub use source::{Origin, SourceFile, Syntax};
pub use specifier::{Release, SpecifierContext};
pub use time::Realtime;
pub use unit::{Body, LoadState, Unit};
pub use zone::LocalZone;
