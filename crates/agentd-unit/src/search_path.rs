//! Where unit files lie: the tiers of both managers, highest first.
//!
//! Environment variables come as a map, so that a manager that was started by another program decides which of them
//! it believes, and tests need no environment of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Whose units these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine's.
    System,
    /// One user's.
    User,
}

/// Who writes a tier, and so what its files may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierKind {
    /// Unit files of people and packages.
    Units,
    /// What the manager itself writes: masks, markers and drop-ins with limits; never a unit.
    Control,
}

/// One folder of the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// The folder.
    pub path: PathBuf,
    /// Who writes it.
    pub kind: TierKind,
}

/// The folders, highest first; the first file of a name wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPath {
    /// The tiers.
    pub tiers: Vec<Tier>,
}

/// A development switch was set where none may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is set, which production refuses: units come from the folders of the image; unset it")]
pub struct NotInProduction(pub &'static str);

/// The variable with folders for development, separated by colons.
pub const UNIT_PATH: &str = "AGENTD_UNIT_PATH";
/// The variable that keeps only those.
pub const UNIT_PATH_EXCLUSIVE: &str = "AGENTD_UNIT_PATH_EXCLUSIVE";

impl SearchPath {
    /// The tiers of a manager. `above` are the folders of `--unit-path`, above all others.
    ///
    /// # Errors
    /// A development variable in production.
    pub fn new(
        scope: Scope,
        above: &[PathBuf],
        environment: &BTreeMap<String, String>,
        production: bool,
    ) -> Result<Self, NotInProduction> {
        let variable =
            |name: &str| environment.get(name).map(String::as_str).filter(|value| !value.is_empty());
        for name in [UNIT_PATH, UNIT_PATH_EXCLUSIVE] {
            if production && variable(name).is_some() {
                return Err(NotInProduction(name));
            }
        }
        let mut path = Self::default();
        above.iter().for_each(|folder| path.push(folder, TierKind::Units));
        let development = variable(UNIT_PATH).unwrap_or_default();
        development
            .split(':')
            .filter(|part| !part.is_empty())
            .for_each(|part| path.push(part, TierKind::Units));
        let exclusive = variable(UNIT_PATH_EXCLUSIVE).is_some_and(truthy);
        if !exclusive {
            match scope {
                Scope::System => path.push_system(),
                Scope::User => path.push_user(environment),
            }
        }
        Ok(path)
    }

    fn push_system(&mut self) {
        self.push("/etc/agentd/control", TierKind::Control);
        self.push("/run/agentd/control", TierKind::Control);
        for folder in [
            "/run/agentd/transient",
            "/etc/agentd/units",
            "/run/agentd/units",
            "/usr/local/lib/agentd/units",
            "/usr/lib/agentd/units",
        ] {
            self.push(folder, TierKind::Units);
        }
    }

    /// A root that is not set drops its tiers; none is ever taken from `/`. Relative values count as not set (XDG
    /// base directories).
    fn push_user(&mut self, environment: &BTreeMap<String, String>) {
        let root = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below_home = |path: &str| root("HOME").map(|home| home.join(path));
        let config = root("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
        let data = root("XDG_DATA_HOME").or_else(|| below_home(".local/share"));
        let runtime = root("XDG_RUNTIME_DIR");
        for root in [&config, &runtime].into_iter().flatten() {
            self.push(root.join("agentd/control"), TierKind::Control);
        }
        let units = |root: &Option<PathBuf>| root.as_ref().map(|root| root.join("agentd/units"));
        let tiers = [
            units(&config),
            Some(PathBuf::from("/etc/agentd/user")),
            units(&runtime),
            units(&data),
            Some(PathBuf::from("/usr/lib/agentd/user")),
        ];
        tiers.into_iter().flatten().for_each(|folder| self.push(folder, TierKind::Units));
    }

    /// Whether the next boot takes away what a folder of the path has: those beside the second control folder, which
    /// is the one below `/run` or `$XDG_RUNTIME_DIR`.
    #[must_use]
    pub fn is_runtime(&self, folder: &Path) -> bool {
        let root = self.control(true).and_then(Path::parent);
        root.is_some_and(|root| folder.starts_with(root)) || folder.starts_with("/run/agentd")
    }

    /// The folder for what the manager itself writes: the lasting one, or the one that the next boot empties.
    #[must_use]
    pub fn control(&self, runtime: bool) -> Option<&Path> {
        let mut control = self.tiers.iter().filter(|tier| tier.kind == TierKind::Control);
        control.nth(usize::from(runtime)).map(|tier| tier.path.as_path())
    }

    /// Puts a folder below the others, unless it is there already.
    pub fn push(&mut self, path: impl AsRef<Path>, kind: TierKind) {
        let path = path.as_ref().to_owned();
        if !self.tiers.iter().any(|tier| tier.path == path) {
            self.tiers.push(Tier { path, kind });
        }
    }
}

/// `1`, `true`, `yes` or `on`, in any case.
fn truthy(value: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|word| word.eq_ignore_ascii_case(value))
}
