//! The command line of agentd: what scripts rely on, and nothing that is not read.

use std::ffi::OsString;
use std::path::PathBuf;

use agentd_trust::Policy;
use agentd_unit::UnitName;

use crate::journal::LogLevel;

/// What `agentd --help` prints.
pub const USAGE: &str = "\
agentd, the init system for AI agents

Usage: agentd [OPTION…]

As PID 1 it is the machine's or the container's init, with no option at all.
Otherwise it supervises as a subreaper until it gets SIGTERM or SIGINT.

  --user               Supervise the agents of the calling user
  --unit-path DIRS     Look for units here first (folders separated by ':')
  --runtime-dir DIR    Sockets and runtime state (default /run/agentd)
  --state-dir DIR      Durable state (default /var/lib/agentd)
  --log-dir DIR        Output of agents (default /var/log/agentd)
  --keys DIR           One more folder of public keys
  --trust POLICY       enforce, warn or off (default: enforce as PID 1, else warn)
  --production         Refuse what is for development; --trust defaults to enforce
  --unit NAME          Start this unit (default default.target)
  --log-level LEVEL    debug, info, notice, warning or err (default info)
  --version            Print the version and exit
  --help               Print this text and exit
";

/// Why a command line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// There is no such option.
    #[error("unknown option '{0}'; 'agentd --help' lists them")]
    Unknown(String),
    /// The option stands without its value.
    #[error("option {0} needs a value; 'agentd --help' says which")]
    NoValue(&'static str),
    /// The value is not one that the option takes.
    #[error("option {option}: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
}

/// What to do, as read from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Supervise.
    Run(Box<Options>),
    /// Print the version.
    Version,
    /// Print the usage.
    Help,
}

/// The options of a run; `None` where the default of the mode applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// `--user`.
    pub user: bool,
    /// `--unit-path`, highest first.
    pub unit_path: Vec<PathBuf>,
    /// `--runtime-dir`.
    pub runtime_dir: Option<PathBuf>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--log-dir`.
    pub log_dir: Option<PathBuf>,
    /// `--keys`, in order.
    pub keys: Vec<PathBuf>,
    /// `--trust`.
    pub trust: Option<Policy>,
    /// `--production`.
    pub production: bool,
    /// `--unit`.
    pub unit: Option<UnitName>,
    /// `--log-level`.
    pub log_level: Option<LogLevel>,
}

/// Reads the arguments after the program's name.
///
/// As PID 1 the kernel hands on words of its command line that it does not know (`quiet`, `single`): there, words
/// that are no option are left to [`crate::boot::cmdline`].
///
/// # Errors
/// The first argument that is no option or has no fitting value.
pub fn parse(args: impl Iterator<Item = OsString>, pid1: bool) -> Result<Invocation, OptionError> {
    let mut options = Options::default();
    let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        let mut value = |option: &'static str| {
            inline
                .clone()
                .or_else(|| args.next())
                .filter(|v| !v.is_empty())
                .ok_or(OptionError::NoValue(option))
        };
        match name {
            "--user" => options.user = true,
            "--production" => options.production = true,
            "--version" => return Ok(Invocation::Version),
            "--help" | "-h" => return Ok(Invocation::Help),
            "--unit-path" => options.unit_path.extend(folders(&value("--unit-path")?)),
            "--runtime-dir" => {
                options.runtime_dir = Some(absolute("--runtime-dir", &value("--runtime-dir")?)?)
            }
            "--state-dir" => options.state_dir = Some(absolute("--state-dir", &value("--state-dir")?)?),
            "--log-dir" => options.log_dir = Some(absolute("--log-dir", &value("--log-dir")?)?),
            "--keys" => options.keys.push(absolute("--keys", &value("--keys")?)?),
            "--trust" => options.trust = Some(parsed("--trust", &value("--trust")?)?),
            "--log-level" => options.log_level = Some(parsed("--log-level", &value("--log-level")?)?),
            "--unit" => {
                let text = value("--unit")?;
                let refused = |e| OptionError::Value { option: "--unit", reason: format!("{e}") };
                options.unit = Some(UnitName::parse_lenient(&text).map_err(refused)?);
            }
            _ if pid1 && !name.starts_with("--") => {}
            _ => return Err(OptionError::Unknown(arg)),
        }
    }
    Ok(Invocation::Run(Box::new(options)))
}

/// The folders of a list separated by colons; empty items are dropped, relative ones made absolute.
fn folders(list: &str) -> impl Iterator<Item = PathBuf> + '_ {
    list.split(':').filter(|item| !item.is_empty()).map(|item| {
        let path = PathBuf::from(item);
        std::path::absolute(&path).unwrap_or(path)
    })
}

fn absolute(option: &'static str, text: &str) -> Result<PathBuf, OptionError> {
    std::path::absolute(text)
        .map_err(|e| OptionError::Value { option, reason: format!("'{text}' is no usable path: {e}") })
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    option: &'static str,
    text: &str,
) -> Result<T, OptionError> {
    text.parse().map_err(|e: T::Err| OptionError::Value { option, reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str], pid1: bool) -> Result<Invocation, OptionError> {
        parse(args.iter().map(OsString::from), pid1)
    }

    fn options(args: &[&str]) -> Options {
        match run(args, false) {
            Ok(Invocation::Run(options)) => *options,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    #[test]
    fn each_option_is_read() {
        assert!(options(&["--user"]).user);
        assert!(options(&["--production"]).production);
        assert_eq!(options(&["--unit-path", "/a::/b"]).unit_path, [PathBuf::from("/a"), "/b".into()]);
        assert_eq!(options(&["--runtime-dir=/r"]).runtime_dir, Some("/r".into()));
        assert_eq!(options(&["--state-dir", "/s"]).state_dir, Some("/s".into()));
        assert_eq!(options(&["--log-dir", "/l"]).log_dir, Some("/l".into()));
        assert_eq!(options(&["--keys", "/k", "--keys", "/m"]).keys, [PathBuf::from("/k"), "/m".into()]);
        assert_eq!(options(&["--trust", "off"]).trust, Some(Policy::Off));
        assert_eq!(options(&["--unit", "web"]).unit.unwrap().as_str(), "web.service");
        assert!(options(&["--log-level", "debug"]).log_level.is_some());
        assert_eq!(run(&["--version"], false), Ok(Invocation::Version));
        assert_eq!(run(&["--help"], false), Ok(Invocation::Help));
    }

    #[test]
    fn the_manual_has_the_options_of_the_help() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/agentd.8");
        let page = manual();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page, "docs/man/agentd.8 is stale; run: UPDATE=1 cargo test -p agentd --lib manual");
        assert!(page.contains("\\fB\\-\\-runtime\\-dir\\~DIR\\fR\n"), "{page}");
    }

    fn manual() -> String {
        let mut page = agentd_unit::roff::Page::new("agentd", 8, "the init system for AI agents");
        page.heading("SYNOPSIS");
        page.paragraph("`agentd` [OPTION...]");
        page.heading("DESCRIPTION");
        page.paragraph(
            "`agentd` starts, watches, limits and restarts services as their units say, and ends what is left of them. \
             As the first process it is the init of a machine or a container and needs no option; otherwise it \
             supervises as a subreaper, and with `--user` for one user, until SIGTERM or SIGINT. agentctl(1) speaks to it.",
        );
        page.heading("OPTIONS");
        for line in USAGE.lines().filter_map(|line| line.strip_prefix("  --")) {
            if let Some((option, text)) = line.split_once("  ") {
                page.item(&format!("`--{option}`"), &format!("{}.", text.trim()));
            }
        }
        page.heading("SIGNALS");
        page.paragraph(
            "SIGTERM and SIGINT end a manager that is not the first process. SIGUSR1 makes the control socket anew, and \
             SIGUSR2 logs where every unit stands.",
        );
        page.heading("FILES");
        page.item("`/etc/agentd/agentd.toml`", "Settings, see agentd.toml(5).");
        page.item("`/etc/agentd/units`", "Units, see agentd.unit(5).");
        page.item("`/etc/agentd/keys`", "Public keys of those whose units may run.");
        page.item("`/run/agentd/control.sock`", "What agentctl(1) speaks to.");
        page.heading("SEE ALSO");
        page.paragraph("agentctl(1), agentd.unit(5), agentd.agent(5), agentd.toml(5)");
        page.finish()
    }

    #[test]
    fn what_is_no_option_is_refused_and_named() {
        for (case, args) in [
            ("a word", vec!["start"]),
            ("a misspelt option", vec!["--runtimedir", "/r"]),
            ("a missing value", vec!["--unit"]),
            ("an empty value", vec!["--state-dir="]),
            ("no policy", vec!["--trust", "maybe"]),
            ("no level", vec!["--log-level", "loud"]),
            ("no unit", vec!["--unit", "a/b.service"]),
        ] {
            assert!(run(&args, false).is_err(), "{case}");
        }
    }

    #[test]
    fn pid_1_leaves_the_kernels_own_words_alone() {
        assert!(matches!(run(&["quiet", "single"], true), Ok(Invocation::Run(_))));
    }
}
