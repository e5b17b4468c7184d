//! Arguments of the verbs that are about unit files.

use agentd_unit::UnitName;
use clap::Args;

use super::{listed_type, unit};

/// `enable`, `disable`, `mask`.
#[derive(Debug, Args)]
pub(crate) struct Mark {
    /// Unit names; a name without a type is a service
    #[arg(required = true, value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// Until the next boot only
    #[arg(long)]
    pub(crate) runtime: bool,
    /// Also start the units (enable) or stop them (disable, mask)
    #[arg(long)]
    pub(crate) now: bool,
}

/// `unmask`.
#[derive(Debug, Args)]
pub(crate) struct Unmask {
    /// Unit names; a name without a type is a service
    #[arg(required = true, value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// Only masks that last until the next boot
    #[arg(long)]
    pub(crate) runtime: bool,
}

/// `list-unit-files`.
#[derive(Debug, Args)]
pub(crate) struct ListUnitFiles {
    /// Names with the wildcards * ? [...]
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Only units of these types: service, timer, target ...
    #[arg(short, long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = listed_type)]
    pub(crate) types: Vec<String>,
    /// Only unit files in these states: enabled, disabled, masked, static ...
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    pub(crate) states: Vec<String>,
}

/// `set-property`.
#[derive(Debug, Args)]
pub(crate) struct SetProperty {
    /// Unit name; a name without a type is a service
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) unit: UnitName,
    /// Limits such as MemoryMax=1G; an empty value takes back what was set this way
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub(crate) properties: Vec<String>,
    /// Until the next boot only
    #[arg(long)]
    pub(crate) runtime: bool,
}

/// `top`.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// What is sorted by: cpu, memory, tasks, io, unit
    #[arg(long, value_name = "ORDER", value_enum, default_value = "cpu")]
    pub(crate) order: Order,
    /// How often to show; without it until interrupted, and once where no terminal shows it
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) iterations: Option<u32>,
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) delay: std::time::Duration,
    /// Print one table below the other, without clearing the screen
    #[arg(short, long)]
    pub(crate) batch: bool,
}

/// What `top` sorts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    Cpu,
    Memory,
    Tasks,
    Io,
    Unit,
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || "it is a number of seconds from 0.01 to 3600, as in 0.5".to_owned();
    let number: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.01..=3600.0).contains(&number) {
        return Err(wrong());
    }
    Ok(std::time::Duration::from_secs_f64(number))
}
