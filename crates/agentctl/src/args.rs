//! The command line as typed values.

pub(crate) mod analyze;
pub(crate) mod definitions;
pub(crate) mod files;
pub(crate) mod quick;

use std::path::PathBuf;

use agentd_protocol::{JobMode, KillWhom};
use agentd_unit::{Signal, UnitName, UnitType};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Control agentd, the init system for AI agents.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Flags that stand before or after the verb.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Talk to the manager of the calling user instead of the system's
    #[arg(long, global = true)]
    pub(crate) user: bool,
    /// Talk to the manager whose control socket is DIR/control.sock
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// How to print
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,
    /// Do not wait until the job has ended
    #[arg(long, global = true)]
    pub(crate) no_block: bool,
    /// Print errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print lists without headers and sums
    #[arg(long, global = true)]
    pub(crate) no_legend: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // For people.
    #[value(alias = "tree")]
    Text,
    // For programs; docs/agentctl.md says what is printed.
    Json,
    // For dot of graphviz; list-dependencies alone.
    Dot,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start units
    Start(Starts),
    /// Stop units
    Stop(Jobs),
    /// Stop units and start them again; start those that are not active
    Restart(Starts),
    /// Restart those of the units that are active
    TryRestart(Jobs),
    /// Have units read their configuration again
    Reload(Jobs),
    /// Reload units, or restart those that cannot reload
    ReloadOrRestart(Jobs),
    /// Start a unit and stop all that it does not need
    Isolate(OneUnit),
    /// Isolate default.target
    Default,
    /// Isolate rescue.target
    Rescue,
    /// Isolate emergency.target
    Emergency,
    /// Send a signal to the processes of units
    Kill(Kill),
    /// Show how units, or the manager, are doing
    Status(Status),
    /// List units
    #[command(alias = "list-units")]
    List(List),
    /// List timers, the next to fire first
    ListTimers,
    /// List what sockets listen on, and what they start
    ListSockets,
    /// List what path units wait for, and what they start
    ListPaths,
    /// List jobs that have not ended
    ListJobs,
    /// Cancel jobs; all of them if none is named
    Cancel(Cancel),
    /// List unit files and whether they are part of what boots
    ListUnitFiles(files::ListUnitFiles),
    /// Make units part of what boots
    Enable(files::Mark),
    /// Take units out of what boots
    Disable(files::Mark),
    /// Keep units from ever starting
    Mask(files::Mark),
    /// Let masked units start again
    Unmask(files::Unmask),
    /// Set limits of a unit, at once and for later starts
    SetProperty(files::SetProperty),
    /// Show what units use of the machine, again and again
    Top(files::Top),
    /// Succeed if one of the units is part of what boots
    IsEnabled(Units),
    /// Stop the processes of units where they stand
    Freeze(Units),
    /// Let the processes of frozen units go on
    Thaw(Units),
    /// Show the properties of units, or of the manager
    Show(Show),
    /// Show the files that define units
    Cat(Units),
    /// Show how the files of units differ from the definitions that they live by
    Diff(Units),
    /// Change a unit by a drop-in, or by a copy of its file
    Edit(definitions::Edit),
    /// Take back what edit and mask have done to units
    Revert(Units),
    /// Load all unit files again, then start, restart or stop exactly what changed
    Apply(definitions::Apply),
    /// Write a unit and a working agent
    New(definitions::New),
    /// Turn unit files in systemd's syntax into TOML
    Import(definitions::Import),
    /// List what units need, who needs them, or how they are ordered
    ListDependencies(analyze::ListDependencies),
    /// Look at unit files, calendars and spans without a manager
    Analyze(analyze::Analyze),
    /// Print what unit files may say as JSON Schema
    Schema(Schema),
    /// Show the log of units
    Logs(Logs),
    /// Read all unit files again
    DaemonReload,
    /// Execute the manager's program again, under running agents
    DaemonReexec,
    /// Succeed if one of the units is active
    IsActive(Units),
    /// Succeed if one of the units has failed
    IsFailed(Units),
    /// Succeed if the manager is up and no unit has failed
    IsSystemRunning,
    /// Forget failures and start limits; of all units if none is named
    ResetFailed(OptionalUnits),
    /// Stop everything and switch the machine off
    Poweroff,
    /// Stop everything and restart the machine
    Reboot,
    /// Stop everything and halt the machine
    Halt,
    /// Stop everything and end the manager
    Exit(ExitVerb),
    /// Show the versions of agentctl and of the manager
    Version,
    /// Make and list signing keys
    Key(Key),
    /// Sign unit files with everything that they run
    Sign(Sign),
    /// Check the signatures of unit files
    Verify(Verify),
}

/// A name without a type is a service.
fn unit(text: &str) -> Result<UnitName, String> {
    UnitName::parse_lenient(text).map_err(|error| error.to_string())
}

/// systemd's types, also those of which agentd has no unit: a script may ask for all that there could be.
fn listed_type(text: &str) -> Result<String, String> {
    const OTHERS: [&str; 5] = ["mount", "automount", "swap", "device", "scope"];
    let known = OTHERS.contains(&text) || UnitType::ALL.iter().any(|known| known.as_str() == text);
    if known {
        Ok(text.to_owned())
    } else {
        Err(format!("'{text}' is no type of units, such as service or timer"))
    }
}

fn signal(text: &str) -> Result<Signal, String> {
    text.parse().map_err(|error: agentd_unit::signal::SignalError| error.to_string())
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is no number of lines, such as 20"))
}

fn word<T: std::str::FromStr<Err = agentd_protocol::words::WordError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Units to act on.
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Unit names; a name without a type is a service
    #[arg(required = true, value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// What happens to jobs in the way: replace, fail, isolate, replace-irreversibly, ignore-dependencies,
    /// ignore-requirements
    #[arg(long, value_name = "MODE", default_value = "replace", value_parser = word::<JobMode>)]
    pub(crate) job_mode: JobMode,
}

/// Units to start.
#[derive(Debug, Args)]
pub(crate) struct Starts {
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Wait until the units have ended again, and fail if one of them has failed
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Units to look at.
#[derive(Debug, Args)]
pub(crate) struct Units {
    /// Unit names; a name without a type is a service
    #[arg(required = true, value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
}

/// A unit to act on.
#[derive(Debug, Args)]
pub(crate) struct OneUnit {
    /// Unit name; a name without a type is a target
    #[arg(value_name = "UNIT", value_parser = target)]
    pub(crate) unit: UnitName,
}

/// A name without a type is a target, as systemctl has it for what is isolated.
fn target(text: &str) -> Result<UnitName, String> {
    let name = if text.contains('.') { text.to_owned() } else { format!("{text}.target") };
    UnitName::parse(&name).map_err(|error| error.to_string())
}

/// Units, or all.
#[derive(Debug, Args)]
pub(crate) struct OptionalUnits {
    /// Unit names; a name without a type is a service
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
}

/// `kill`.
#[derive(Debug, Args)]
pub(crate) struct Kill {
    /// Unit names; a name without a type is a service
    #[arg(required = true, value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// A name such as SIGHUP or a number from 1 to 64
    #[arg(short, long, value_name = "SIGNAL", default_value = "SIGTERM", value_parser = signal)]
    pub(crate) signal: Signal,
    /// Which processes: all, main, control
    #[arg(long, value_name = "WHOM", default_value = "all", value_parser = word::<KillWhom>)]
    pub(crate) kill_whom: KillWhom,
}

/// `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Unit names; the manager as a whole if none is named
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// How many lines of the log to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = count)]
    pub(crate) lines: u32,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Names with the wildcards * ? [...]
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Show inactive units too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only units of these types: service, timer, target ...
    #[arg(short, long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = listed_type)]
    pub(crate) types: Vec<String>,
    /// Only units in these load, active or sub states
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    pub(crate) states: Vec<String>,
    /// Only units that have failed: the same as --state=failed
    #[arg(long)]
    pub(crate) failed: bool,
}

/// `cancel`.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Job numbers, as list-jobs shows them
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<u32>,
}

/// `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Unit names; the manager as a whole if none is named
    #[arg(value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// Only these properties
    #[arg(short, long = "property", value_name = "NAME", value_delimiter = ',')]
    pub(crate) properties: Vec<String>,
    /// Print values without their names
    #[arg(long)]
    pub(crate) value: bool,
    /// Only the values of these properties: the same as --value --property=NAME
    #[arg(short = 'P', value_name = "NAME", value_delimiter = ',')]
    pub(crate) values: Vec<String>,
}

/// `schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Only for units of this type: service, timer, target ...
    #[arg(value_name = "TYPE", value_parser = unit_type)]
    pub(crate) unit_type: Option<UnitType>,
}

fn unit_type(text: &str) -> Result<UnitType, String> {
    let known = || UnitType::ALL.map(UnitType::as_str).join(", ");
    let found = UnitType::ALL.into_iter().find(|one| one.as_str() == text);
    found.ok_or_else(|| format!("it is one of {}", known()))
}

/// `logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Unit names; a name without a type is a service
    #[arg(required = true, value_name = "UNIT", value_parser = unit)]
    pub(crate) units: Vec<UnitName>,
    /// Go on with what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last N lines (with --follow: 10 if not given)
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub(crate) lines: Option<u32>,
}

/// `exit`.
#[derive(Debug, Args)]
pub(crate) struct ExitVerb {
    /// The manager's exit code
    #[arg(value_name = "CODE", default_value_t = 0)]
    pub(crate) code: u8,
}

/// `key`.
#[derive(Debug, Args)]
pub(crate) struct Key {
    #[command(subcommand)]
    pub(crate) verb: KeyVerb,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyVerb {
    /// Make a key pair: NAME.key to sign with, NAME.pub to verify with
    Generate(KeyGenerate),
    /// List the keys that signatures are verified with
    List(KeyFolders),
}

/// `key generate`.
#[derive(Debug, Args)]
pub(crate) struct KeyGenerate {
    /// The stem of both files
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The folder that they are written to
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Where public keys are.
#[derive(Debug, Args)]
pub(crate) struct KeyFolders {
    /// Folders of public keys, instead of /etc/agentd/keys and /usr/lib/agentd/keys
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: Vec<PathBuf>,
}

/// `sign`.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// Unit files; UNIT-FILE.sig is written beside each
    #[arg(required = true, value_name = "UNIT-FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The private key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The tree that will be / where the units run
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}

/// `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Unit files
    #[arg(required = true, value_name = "UNIT-FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) folders: KeyFolders,
    /// The tree that will be / where the units run
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "args_manual.rs"]
mod manual;
