//! How this manager runs: folders, policy and defaults, put together from the command line, the kernel's and
//! `agentd.toml`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use agentd_trust::Policy;
use agentd_unit::UnitName;

use crate::journal::LogLevel;
use crate::options::Options;

/// What kind of manager this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// PID 1 of a machine.
    Init,
    /// PID 1 of a container.
    Container,
    /// An ordinary process of root's that adopts its orphans.
    Subreaper,
    /// The manager of one user.
    User,
}

impl Mode {
    /// Whether it is PID 1.
    #[must_use]
    pub const fn is_pid1(self) -> bool {
        matches!(self, Self::Init | Self::Container)
    }

    /// The word for messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Container => "container init",
            Self::Subreaper => "subreaper",
            Self::User => "user",
        }
    }
}

/// What happens to unit files that change on disk while the manager runs: `WatchUnits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchUnits {
    /// Nothing, until somebody asks.
    #[default]
    Off,
    /// They are loaded, as by `agentctl daemon-reload`.
    Load,
    /// What changed is started, restarted or stopped too, as by `agentctl apply`.
    Apply,
}

impl FromStr for WatchUnits {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "off" => Ok(Self::Off),
            "load" => Ok(Self::Load),
            "apply" => Ok(Self::Apply),
            _ => Err(format!("'{word}' is none of off, load and apply")),
        }
    }
}

/// The folders that a manager works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Sockets and state that a reboot forgets: `/run/agentd`.
    pub runtime: PathBuf,
    /// State that survives a reboot: `/var/lib/agentd`.
    pub state: PathBuf,
    /// Output of agents: `/var/log/agentd`.
    pub log: PathBuf,
    /// The home of a user manager's user, where its agents begin.
    pub home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR` of a user manager.
    pub user_runtime: Option<PathBuf>,
    /// Above units' `StateDirectory`: `/var/lib`, or the user's state home.
    pub units_state: PathBuf,
    /// Above the other folders that units name.
    pub units: UnitFolders,
}

/// Where `RuntimeDirectory` and the like lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFolders {
    /// `RuntimeDirectory`: `/run`, or `XDG_RUNTIME_DIR`.
    pub runtime: PathBuf,
    /// `CacheDirectory`: `/var/cache`, or the user's cache home.
    pub cache: PathBuf,
    /// `LogsDirectory`: `/var/log`, or `log` below the user's state home.
    pub logs: PathBuf,
    /// `ConfigurationDirectory`: `/etc`, or the user's configuration home.
    pub configuration: PathBuf,
}

impl Folders {
    /// The socket that agentctl speaks to.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.runtime.join("control.sock")
    }

    /// The socket for sd_notify(3).
    #[must_use]
    pub fn notify_socket(&self) -> PathBuf {
        self.runtime.join("notify")
    }

    /// The lock that tells a second manager of the first.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.runtime.join("lock")
    }
}

/// Why there is no usable set of folders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A user manager without a place for its sockets.
    #[error("XDG_RUNTIME_DIR is not set; name a folder with --runtime-dir")]
    NoRuntimeDir,
    /// A user manager without a home.
    #[error("neither HOME nor XDG_STATE_HOME is set; name folders with --state-dir and --log-dir")]
    NoHome,
    /// Something that production does not allow.
    #[error("{0} is for development and is refused in production")]
    Development(&'static str),
}

/// Everything that is fixed for the life of the manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What kind of manager.
    pub mode: Mode,
    /// Where it works.
    pub folders: Folders,
    /// What may run.
    pub trust: Policy,
    /// Whether development switches are refused.
    pub production: bool,
    /// Folders of public keys, highest first.
    pub keys: Vec<PathBuf>,
    /// Folders above all tiers, highest first.
    pub unit_path: Vec<PathBuf>,
    /// What happens to unit files that change on disk.
    pub watch_units: WatchUnits,
    /// The unit that is started first.
    pub unit: UnitName,
    /// How much is logged.
    pub log_level: LogLevel,
    /// Whether the console gets warnings only.
    pub quiet: bool,
    /// Whether output of agents goes to journald where it is there; a user manager's goes to the embedded log.
    pub journal_streams: bool,
}

/// The environment variables that a user manager's folders come from.
#[derive(Debug, Clone, Default)]
pub struct UserEnvironment {
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub cache: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub configuration: Option<PathBuf>,
}

impl UserEnvironment {
    /// Reads them from the process's environment; empty and relative values count as unset (XDG base directories).
    #[must_use]
    pub fn read() -> Self {
        let read = |key| std::env::var_os(key).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
        Self {
            home: read("HOME"),
            runtime: read("XDG_RUNTIME_DIR"),
            state: read("XDG_STATE_HOME"),
            cache: read("XDG_CACHE_HOME"),
            configuration: read("XDG_CONFIG_HOME"),
        }
    }
}

/// The folders of a mode, with what the command line names instead.
///
/// # Errors
/// A user manager whose environment names none.
pub fn folders(mode: Mode, options: &Options, env: &UserEnvironment) -> Result<Folders, ConfigError> {
    if mode == Mode::User {
        let state_home =
            env.state.clone().or_else(|| env.home.as_ref().map(|home| home.join(".local/state")));
        let runtime = match (&options.runtime_dir, &env.runtime) {
            (Some(dir), _) => dir.clone(),
            (None, Some(dir)) => dir.join("agentd"),
            (None, None) => return Err(ConfigError::NoRuntimeDir),
        };
        let below = |name: &str| state_home.as_ref().map(|home| home.join(name)).ok_or(ConfigError::NoHome);
        let state = options.state_dir.clone().map_or_else(|| below("agentd"), Ok)?;
        let log = options.log_dir.clone().map_or_else(|| below("agentd/log"), Ok)?;
        let units_state = state_home.unwrap_or_else(|| state.join("units"));
        let (home, user_runtime) = (env.home.clone(), env.runtime.clone());
        let below_home = |given: &Option<PathBuf>, default: &str| {
            given.clone().or_else(|| env.home.as_ref().map(|home| home.join(default)))
        };
        let units = UnitFolders {
            runtime: env.runtime.clone().unwrap_or_else(|| runtime.join("units")),
            cache: below_home(&env.cache, ".cache").unwrap_or_else(|| state.join("cache")),
            logs: units_state.join("log"),
            configuration: below_home(&env.configuration, ".config").unwrap_or_else(|| state.join("config")),
        };
        return Ok(Folders { runtime, state, log, home, user_runtime, units_state, units });
    }
    let or =
        |given: &Option<PathBuf>, default: &str| given.clone().unwrap_or_else(|| Path::new(default).into());
    Ok(Folders {
        runtime: or(&options.runtime_dir, "/run/agentd"),
        state: or(&options.state_dir, "/var/lib/agentd"),
        log: or(&options.log_dir, "/var/log/agentd"),
        home: None,
        user_runtime: None,
        units_state: "/var/lib".into(),
        units: UnitFolders {
            runtime: "/run".into(),
            cache: "/var/cache".into(),
            logs: "/var/log".into(),
            configuration: "/etc".into(),
        },
    })
}
