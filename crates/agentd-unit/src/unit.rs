//! One unit as loaded: its name, where it comes from and its typed sections.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::exec::ExecKind;
use crate::name::{UnitName, UnitType};
use crate::sections::{
    AgentSection, InstallSection, PathSection, RolloutSection, ServiceSection, SliceSection, SnapshotSection,
    SocketSection, TimerSection, UnitSection,
};
use crate::source::{Origin, SourceFile};

/// What came of reading a unit's files, as `LoadState` in systemd's D-Bus interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LoadState {
    /// The definition is whole.
    #[default]
    Loaded,
    /// Something names the unit, but no search path has a file for it.
    NotFound,
    /// A file was found but is not valid; the text is the first error, with file, line and column.
    BadSetting(String),
    /// A file was found but could not be read or may not be trusted; the text says why.
    Error(String),
    /// Linked to /dev/null or empty: it must not start.
    Masked,
}

impl LoadState {
    /// systemd's word: `loaded`, `not-found`, `bad-setting`, `error`, `masked`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::NotFound => "not-found",
            Self::BadSetting(_) => "bad-setting",
            Self::Error(_) => "error",
            Self::Masked => "masked",
        }
    }

    /// Why the unit cannot start, if the state has a reason of its own.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::BadSetting(reason) | Self::Error(reason) => Some(reason),
            Self::Loaded | Self::NotFound | Self::Masked => None,
        }
    }
}

impl fmt::Display for LoadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a unit is, with the section of its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Runs processes.
    Service(Box<ServiceBody>),
    /// Starts another unit by the clock.
    Timer(Box<TimerSection>),
    /// Listens, and starts a service when something comes.
    Socket(Box<SocketSection>),
    /// Watches paths, and starts another unit when something happens there.
    Path(Box<PathSection>),
    /// A point that others gather round.
    Target,
    /// A branch of the cgroup tree.
    Slice(Box<SliceSection>),
}

/// The sections that only a service has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceBody {
    /// `[Service]`.
    pub service: ServiceSection,
    /// `[Agent]`, if the file has one.
    pub agent: Option<Box<AgentSection>>,
    /// `[Snapshot]`, if the file has one.
    pub snapshot: Option<Box<SnapshotSection>>,
    /// `[Rollout]`, if the file has one.
    pub rollout: Option<Box<RolloutSection>>,
}

/// One version of one unit, complete and unchanging: a reload makes a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The id: the file's name without its syntax ending.
    pub name: UnitName,
    /// Other names of the same unit.
    pub aliases: Vec<UnitName>,
    /// What came of loading it.
    pub load: LoadState,
    /// The main file, if there is one.
    pub fragment: Option<Arc<Path>>,
    /// Drop-in files, in the order they were applied.
    pub drop_ins: Vec<Arc<Path>>,
    /// The texts that it was read from: the main file, then the drop-ins.
    pub sources: Vec<Arc<SourceFile>>,
    /// `[Unit]`.
    pub unit: UnitSection,
    /// `[Install]`.
    pub install: InstallSection,
    /// The section of its type.
    pub body: Body,
    /// Whether `[Install]`, its markers and its links make it part of what boots.
    pub enabled: bool,
    /// Whether hard and soft edges also order (units in TOML; systemd's own syntax: no).
    pub implicit_order: bool,
    /// Warnings of loading, each with file, line and column; shown in `status`.
    pub warnings: Vec<String>,
    /// A hash of the definition's bytes (see [`crate::digest`]), to see whether a reload changed it.
    pub digest: [u8; 32],
    /// The bytes of the detached signature beside the main file, if there is one.
    pub signature: Option<Arc<[u8]>>,
}

impl Unit {
    /// Whether another definition of this unit differs at most in what the manager itself has written below `control/`:
    /// limits, which a running unit can take up as it is.
    #[must_use]
    pub fn differs_in_limits_alone(&self, other: &Self) -> bool {
        let signed = |unit: &Self| -> Vec<Arc<SourceFile>> {
            unit.sources.iter().filter(|source| source.origin() != Origin::Control).cloned().collect()
        };
        // A definition that no file tells of can differ in anything.
        let loaded = |unit: &Self| unit.load == LoadState::Loaded && !unit.sources.is_empty();
        loaded(self)
            && loaded(other)
            && self.name == other.name
            && self.fragment == other.fragment
            && signed(self) == signed(other)
    }

    /// A unit that is named by others but has no file.
    #[must_use]
    pub fn not_found(name: UnitName) -> Self {
        let body = match name.unit_type() {
            UnitType::Service => Body::Service(Box::default()),
            UnitType::Timer => Body::Timer(Box::default()),
            UnitType::Slice => Body::Slice(Box::default()),
            UnitType::Socket => Body::Socket(Box::default()),
            UnitType::Path => Body::Path(Box::default()),
            UnitType::Target => Body::Target,
        };
        Self::with_body(name, body)
    }

    /// A unit of which nothing but its body is known.
    pub(crate) fn with_body(name: UnitName, body: Body) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            load: LoadState::NotFound,
            fragment: None,
            drop_ins: Vec::new(),
            sources: Vec::new(),
            unit: UnitSection::default(),
            install: InstallSection::default(),
            body,
            enabled: false,
            implicit_order: true,
            warnings: Vec::new(),
            digest: [0; 32],
            signature: None,
        }
    }

    /// `Description`, or the name where there is none.
    #[must_use]
    pub fn description(&self) -> &str {
        self.unit.description.as_deref().unwrap_or(self.name.as_str())
    }

    /// The unit that a timer, a socket or a path unit starts. A socket with `Accept` starts many, and names none.
    #[must_use]
    pub fn triggered(&self) -> Option<UnitName> {
        let named = match &self.body {
            Body::Timer(timer) => &timer.unit,
            Body::Socket(socket) if !socket.accept => &socket.service,
            Body::Path(path) => &path.unit,
            Body::Socket(_) | Body::Service(_) | Body::Target | Body::Slice(_) => return None,
        };
        Some(named.clone().unwrap_or_else(|| self.name.with_type(UnitType::Service)))
    }

    /// The service sections, if it is a service.
    #[must_use]
    pub fn as_service(&self) -> Option<&ServiceBody> {
        match &self.body {
            Body::Service(body) => Some(body),
            Body::Timer(_) | Body::Socket(_) | Body::Path(_) | Body::Target | Body::Slice(_) => None,
        }
    }

    /// The `[Socket]` section, if it is a socket.
    #[must_use]
    pub fn as_socket(&self) -> Option<&SocketSection> {
        match &self.body {
            Body::Socket(section) => Some(section),
            Body::Service(_) | Body::Timer(_) | Body::Path(_) | Body::Target | Body::Slice(_) => None,
        }
    }

    /// The `[Path]` section, if it is a path unit.
    #[must_use]
    pub fn as_path(&self) -> Option<&PathSection> {
        match &self.body {
            Body::Path(section) => Some(section),
            Body::Service(_) | Body::Timer(_) | Body::Socket(_) | Body::Target | Body::Slice(_) => None,
        }
    }

    /// The files that running this unit runs, for its signature: each program, a Python agent's module or package,
    /// and the files it pins; sorted, each once. A program without a slash is given as written: it is looked up
    /// along the service's PATH. The interpreter of a Python agent belongs to the image and is not among them.
    #[must_use]
    pub fn signed_files(&self) -> Vec<PathBuf> {
        let Some(body) = self.as_service() else { return Vec::new() };
        let commands = ExecKind::ALL
            .into_iter()
            .flat_map(|kind| body.service.commands(kind).iter().map(move |command| (Some(kind), command)));
        let further = body.agent.iter().flat_map(|agent| &agent.life.exec_health_check);
        let of_snapshot = body
            .snapshot
            .iter()
            .flat_map(|snapshot| snapshot.exec_snapshot.iter().chain(&snapshot.exec_restore));
        let commands = commands.chain(further.chain(of_snapshot).map(|command| (None, command)));
        let mut files: Vec<PathBuf> =
            commands.map(|(kind, command)| self.program_file(kind, &command.program)).collect();
        if let Some(agent) = &body.agent {
            files.extend(agent.pin.iter().cloned());
            files.extend(agent.module.as_deref().map(|module| body.module_file(module)));
        }
        let environment = body.service.execution.environment_files.iter();
        files.extend(environment.filter(|file| !file.optional).map(|file| file.path.clone()));
        files.extend(body.service.credential_files(false));
        files.sort();
        files.dedup();
        files
    }

    /// Where a program of its commands is on the machine: below `RootDirectory`, if commands of this kind have one, or in what
    /// is bound there. One without a slash in front stays as it is written.
    #[must_use]
    pub fn program_file(&self, kind: Option<ExecKind>, program: &str) -> PathBuf {
        match self.as_service() {
            Some(body) if program.starts_with('/') => body.service.outside(kind, program.as_ref()),
            _ => PathBuf::from(program),
        }
    }

    /// Files that it reads if they are there: a signature covers those that are.
    #[must_use]
    pub fn optional_signed_files(&self) -> Vec<PathBuf> {
        let environment = self.as_service().map(|body| &body.service.execution.environment_files);
        let optional = environment.into_iter().flatten().filter(|file| file.optional);
        let secrets = self.as_service().into_iter().flat_map(|body| body.service.credential_files(true));
        optional.map(|file| file.path.clone()).chain(secrets).collect()
    }
}

impl ServiceBody {
    /// Where a Python module lies: the `.py` file itself, or for a dotted name the package (`package.module`: the
    /// folder `package`) or the file (`module`: `module.py`) below the first folder of `PYTHONPATH`, else below
    /// `WorkingDirectory`, else below `/`.
    pub fn module_file(&self, module: &str) -> PathBuf {
        if module.starts_with('/') {
            return PathBuf::from(module);
        }
        let python_path = self.service.environment.iter().find(|(name, _)| name == "PYTHONPATH");
        let first =
            python_path.and_then(|(_, folders)| folders.split(':').find(|folder| folder.starts_with('/')));
        let folder = first.map(PathBuf::from).or_else(|| self.service.working_directory.clone());
        let below = match module.split_once('.') {
            Some((package, _)) => package.to_owned(),
            None => format!("{module}.py"),
        };
        folder.unwrap_or_else(|| PathBuf::from("/")).join(below)
    }
}
