//! Arguments of the verbs that are about unit files.

use agentd_unit::UnitName;
use clap::Args;

use super::unit;

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
    #[arg(short, long = "type", value_name = "TYPE", value_delimiter = ',')]
    pub(crate) types: Vec<String>,
    /// Only unit files in these states: enabled, disabled, masked, static ...
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    pub(crate) states: Vec<String>,
}
