//! Arguments of the verbs that change definitions: `edit`, `revert`, `apply`, `import`, `new`.

use std::path::PathBuf;

use agentd_unit::UnitName;
use clap::{Args, ValueEnum};

use super::unit;

/// `apply`.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `edit`.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// Unit name; a name without a type is a service
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) unit: UnitName,
    /// Edit a copy of the whole unit file instead of a drop-in
    #[arg(long, conflicts_with = "drop_in")]
    pub(crate) full: bool,
    /// The drop-in's name
    #[arg(long, value_name = "NAME", default_value = "override")]
    pub(crate) drop_in: String,
    /// Read the new text from standard input instead of starting an editor
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Until the next boot only
    #[arg(long)]
    pub(crate) runtime: bool,
}

/// `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Unit files in systemd's syntax
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write NAME.toml into this folder instead of printing the text
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// What an agent is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    // A module for the Python kit.
    Python,
    // A module for the Go kit.
    Go,
    // A shell script.
    Exec,
}

/// `new`.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The agent's name, without a type
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it is written in
    #[arg(long, value_enum, value_name = "KIND", default_value = "python")]
    pub(crate) kind: Kind,
    /// Start it by the clock, every minute
    #[arg(long)]
    pub(crate) timer: bool,
    /// Start it when somebody connects to its socket, and answer
    #[arg(long, conflicts_with = "timer")]
    pub(crate) socket: bool,
    /// The folder for the unit file; the units' folder of the manager if none is named
    #[arg(long, value_name = "DIR")]
    pub(crate) units: Option<PathBuf>,
    /// The folder for the agent; agents/NAME beside the units' folder if none is named
    #[arg(long, value_name = "DIR")]
    pub(crate) agents: Option<PathBuf>,
    /// The folder of the kit for Go, if it is not /usr/lib/agentd/go
    #[arg(long, value_name = "DIR")]
    pub(crate) kit: Option<PathBuf>,
}
