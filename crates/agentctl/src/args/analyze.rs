//! Arguments of the verbs that look at definitions: `analyze`, `list-dependencies`, `schema`.

use std::path::PathBuf;

use agentd_unit::UnitName;
use clap::{Args, Subcommand};

use super::unit;

/// `analyze`.
#[derive(Debug, Args)]
pub(crate) struct Analyze {
    #[command(subcommand)]
    pub(crate) verb: AnalyzeVerb,
}

/// What to analyze. None of them needs a manager.
#[derive(Debug, Subcommand)]
pub(crate) enum AnalyzeVerb {
    /// Find what is wrong with unit files
    Verify(AnalyzeVerify),
    /// List the folders where units are looked for, highest first
    UnitPaths,
    /// Show what calendar expressions mean and when they match next
    Calendar(Calendar),
    /// Show what spans of time mean
    Timespan(Timespan),
    /// Tell how much of the machine services could reach, key by key, from 0.0 to 10.0
    Security(Security),
    /// Tell whether conditions and asserts hold here and now
    Condition(AnalyzeCondition),
    /// Draw the dependencies between units for dot of graphviz
    Dot(Dot),
}

/// `analyze verify`.
#[derive(Debug, Args)]
pub(crate) struct AnalyzeVerify {
    /// Unit files; the units of the search path are what they may depend on
    #[arg(value_name = "FILE", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) files: Vec<PathBuf>,
    /// All units of the search path
    #[arg(long)]
    pub(crate) all: bool,
}

/// `analyze calendar`.
#[derive(Debug, Args)]
pub(crate) struct Calendar {
    /// Expressions such as 'Mon..Fri *-*-* 08:00' or daily
    #[arg(required = true, value_name = "EXPRESSION")]
    pub(crate) expressions: Vec<String>,
    /// How many matches to show
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) iterations: u32,
    /// Reckon from this time: 'now', '@SECONDS', or '2026-11-29 10:00' in the zone of the system
    #[arg(long, value_name = "TIME", default_value = "now")]
    pub(crate) base_time: String,
}

/// `analyze timespan`.
#[derive(Debug, Args)]
pub(crate) struct Timespan {
    /// Spans such as '1min 30s' or 90
    #[arg(required = true, value_name = "SPAN")]
    pub(crate) spans: Vec<String>,
}

/// `analyze security`.
#[derive(Debug, Args)]
pub(crate) struct Security {
    /// Services by name, or unit files; all services of the search path if none is named
    #[arg(value_name = "UNIT|FILE")]
    pub(crate) units: Vec<String>,
    /// Exit with 1 if one is more exposed than this, in tenths: 50 is 5.0
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub(crate) threshold: u64,
}

/// `analyze condition`.
#[derive(Debug, Args)]
pub(crate) struct AnalyzeCondition {
    /// Lines of [Unit] such as 'ConditionPathExists=/etc/fstab' or 'AssertMemory=>=1G'
    #[arg(value_name = "CONDITION", required_unless_present = "unit", conflicts_with = "unit")]
    pub(crate) conditions: Vec<String>,
    /// Those of this unit
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub(crate) unit: Option<UnitName>,
}

/// `analyze dot`.
#[derive(Debug, Args)]
pub(crate) struct Dot {
    /// Only edges that touch one of these units
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// Only orders
    #[arg(long, conflicts_with = "require")]
    pub(crate) order: bool,
    /// Only requirements
    #[arg(long)]
    pub(crate) require: bool,
}

/// `list-dependencies`.
#[derive(Debug, Args)]
pub(crate) struct ListDependencies {
    /// Unit names; default.target if none is named
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// Who needs it instead
    #[arg(long, conflicts_with_all = ["before", "after"])]
    pub(crate) reverse: bool,
    /// What is ordered after it
    #[arg(long, conflicts_with = "after")]
    pub(crate) before: bool,
    /// What it is ordered after
    #[arg(long)]
    pub(crate) after: bool,
    /// Follow the dependencies of all units and not of targets alone
    #[arg(short, long)]
    pub(crate) all: bool,
}
