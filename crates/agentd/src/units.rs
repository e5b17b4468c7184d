//! Reading the units, at first and again: on a thread of its own, through the trust gate, into one whole set.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use agentd_engine::EffectId;
use agentd_linux::door::KernelDoor;
use agentd_linux::epoll::Waker;
use agentd_linux::user::Accounts;
use agentd_protocol::CallError;
use agentd_protocol::manager::{Empty, Problem};
use agentd_trust::{Decision, KeyRing, Policy, Sha256Digest, decide, judge};
use agentd_unit::edges::Edges;
use agentd_unit::{
    Admission, Gate, LoadReport, LoadState, Loader, LoaderConfig, LocalZone, NamedFile, OpenGate, Release,
    Remembered, Scope, SearchPath, SpecifierContext, Trusted, UnitFiles, UnitName, UnitSet, UnitType,
};

use crate::config::{Config, Mode, WatchUnits};
use crate::control::{Answer, Inbound};
use crate::perform::env_file;
use crate::perform::properties::{self, Properties};
use crate::perform::trust::signed_name;
use crate::perform::unit_files::{self, Change, Done, Wish};

/// What came of one loading.
#[derive(Debug)]
pub struct Loaded {
    /// All units, the bad ones too.
    pub set: UnitSet,
    /// What each name is for the boot.
    pub files: Vec<NamedFile>,
    /// What they are to each other.
    pub edges: Arc<Edges>,
    /// What is wrong and belongs to no unit, and what is wrong with units.
    pub problems: Vec<Problem>,
    /// The keys as they are now.
    pub ring: KeyRing,
    /// What it is for.
    pub outcome: Outcome,
}

/// What a loading is for, and who waits for it.
#[derive(Debug)]
pub enum Outcome {
    /// To be swapped in.
    Swap(Option<Answer>),
    /// To be swapped in, after markers or masks were changed.
    Changed(Wish, Done, Answer),
    /// To be swapped in, after limits of a unit were set.
    Set(Done, Answer),
    /// Only to be looked at.
    Plan(Answer),
    /// To be swapped in, because files have changed.
    Watched(WatchUnits),
}

/// What is to be done on the thread that loads.
#[derive(Debug)]
pub enum Errand {
    /// Load.
    Load(Option<Answer>),
    /// Change markers or masks, then load.
    Change(Change, Answer),
    /// Set limits of a unit, then load.
    Set(Properties, Answer),
    /// Load, to see what would change.
    Plan(Answer),
    /// Load, because files have changed.
    Watched(WatchUnits),
    /// Show the files of one unit as they are now; the flag: whether several replies are welcome.
    Files(UnitName, bool, Answer),
}

/// A connection that was taken and waits for its instance.
#[derive(Debug)]
pub struct Taken {
    /// The effect that took it, and its name.
    pub id: EffectId,
    /// The socket that it came in at.
    pub socket: UnitName,
    /// The instance that it is for.
    pub instance: UnitName,
    /// Where it comes from.
    pub source: Option<String>,
}

/// What a thread that reads units comes back with.
#[derive(Debug)]
pub enum Read {
    /// Everything was read.
    All(Box<Loaded>),
    /// One name was looked up because somebody asked for it.
    Named {
        /// What was found: the unit, and what it can cause to start.
        set: UnitSet,
        /// The request that waits for it.
        inbound: Box<Inbound>,
    },
    /// The instance for a connection was looked up.
    Instance {
        /// What was found: the instance, and what it can cause to start.
        set: UnitSet,
        /// The connection.
        taken: Box<Taken>,
    },
}

/// Reads units, one loading at a time; a request that comes meanwhile is a loading of its own, later.
#[derive(Debug)]
pub struct Loading {
    loader: Loader,
    /// Held from the first look at the folders until the result is sent: what was seen later arrives later.
    turn: Arc<Mutex<()>>,
    waker: Arc<Waker>,
    sender: Sender<Read>,
    receiver: Receiver<Read>,
    policy: Policy,
    uid: u32,
}

impl Loading {
    /// A loading that has read nothing yet.
    ///
    /// # Errors
    /// The search path is not allowed, or no descriptor is left.
    pub fn new(config: &Config, uid: u32, accounts: &Accounts) -> Result<Self, Box<dyn std::error::Error>> {
        let environment: BTreeMap<String, String> = std::env::vars().collect();
        let scope = if config.mode == Mode::User { Scope::User } else { Scope::System };
        let search = SearchPath::new(scope, &config.unit_path, &environment, config.production)?;
        let loader = Loader::new(LoaderConfig {
            search,
            scope,
            trusted: Trusted(if uid == 0 { vec![0] } else { vec![0, uid] }),
            specifiers: specifiers(config, uid, accounts),
            zone: LocalZone::of_machine(Path::new("/etc/localtime")),
        })
        .through(&KernelDoor);
        let (sender, receiver) = mpsc::channel();
        let (turn, waker, policy) = (Arc::default(), Arc::new(Waker::new()?), config.trust);
        Ok(Self { loader, turn, waker, sender, receiver, policy, uid })
    }

    /// The descriptor that becomes readable when a loading is done.
    ///
    /// # Errors
    /// No descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.waker.as_fd().try_clone_to_owned()
    }

    /// The folders, and who writes them.
    #[must_use]
    pub fn search(&self) -> &SearchPath {
        &self.loader.config().search
    }

    /// The folders that are searched, highest first.
    #[must_use]
    pub fn search_path(&self) -> Vec<PathBuf> {
        self.loader.config().search.tiers.iter().map(|tier| tier.path.clone()).collect()
    }

    /// Reads everything now, with the instances that live without being named by a unit: for the start, when there is
    /// nothing else to do.
    #[must_use]
    pub fn load(&self, config: &Config, instances: &[UnitName]) -> Loaded {
        load(&self.loader, config, instances, self.policy, self.uid)
    }

    /// The same on a thread of its own, for who has other things to prepare meanwhile. None: there is no thread for it.
    #[must_use]
    pub fn ahead(&self, config: &Config, instances: Vec<UnitName>) -> Option<JoinHandle<Loaded>> {
        let (loader, config) = (self.loader.clone(), config.clone());
        let (policy, uid) = (self.policy, self.uid);
        let work = move || load(&loader, &config, &instances, policy, uid);
        thread::Builder::new().name("load-units".into()).spawn(work).ok()
    }

    /// The set with the definitions that units of a manager before live by, where they are others. None: there are no others.
    /// Sockets and path units take up the lines of their files at once.
    #[must_use]
    pub fn lived_by(&self, config: &Config, definitions: Vec<Remembered>, set: &UnitSet) -> Option<UnitSet> {
        let goes_by_newest = |of: &Remembered| {
            let newest =
                set.get(&of.unit).filter(|unit| unit.name == of.unit && unit.load == LoadState::Loaded);
            let takes_up = matches!(of.unit.unit_type(), UnitType::Socket | UnitType::Path);
            newest.is_some_and(|newest| takes_up || newest.digest == of.digest)
        };
        let mut others = definitions.into_iter().filter(|of| !goes_by_newest(of)).peekable();
        others.peek()?;
        let ring = crate::boot::ground::keys(config, self.uid);
        let gate = TrustGate { policy: self.policy, ring: &ring };
        let mut before = set.clone();
        for of in others {
            let unit = self.loader.remember(of, &gate);
            match &unit.load {
                LoadState::Loaded => before.insert(unit),
                load => tracing::warn!(
                    unit = %unit.name,
                    "{}: what it lived by under the manager before is {load}: {}",
                    unit.name,
                    load.reason().unwrap_or("no reason")
                ),
            }
        }
        Some(before)
    }

    /// Does an errand on a thread of its own, with the instances that live without being named by a unit; the main loop
    /// goes on.
    pub fn begin(&self, config: &Config, instances: Vec<UnitName>, errand: Errand) {
        let (loader, config) = (self.loader.clone(), config.clone());
        let (policy, uid) = (self.policy, self.uid);
        self.on_a_thread(move || {
            let outcome = prepare(errand, &loader, &config, policy, uid)?;
            let loaded = load(&loader, &config, &instances, policy, uid);
            Some(Read::All(Box::new(Loaded { outcome, ..loaded })))
        });
    }

    /// Looks up a name that is not among the known ones on a thread of its own; the request goes on when that is done.
    pub fn find(&self, config: &Config, name: UnitName, known: BTreeSet<UnitName>, inbound: Inbound) {
        let (loader, config) = (self.loader.clone(), config.clone());
        let (policy, uid) = (self.policy, self.uid);
        self.on_a_thread(move || {
            let ring = crate::boot::ground::keys(&config, uid);
            let set = loader.find(&name, &|name| known.contains(name), &TrustGate { policy, ring: &ring });
            Some(Read::Named { set, inbound: Box::new(inbound) })
        });
    }

    /// Loads the instance for a connection on a thread of its own, with what it needs and is not known.
    pub fn find_instance(&self, config: &Config, known: UnitSet, taken: Taken) {
        let (loader, config) = (self.loader.clone(), config.clone());
        let (policy, uid) = (self.policy, self.uid);
        self.on_a_thread(move || {
            let ring = crate::boot::ground::keys(&config, uid);
            let is_known = |name: &UnitName| known.get(name).is_some();
            let set = loader.find(&taken.instance, &is_known, &TrustGate { policy, ring: &ring });
            Some(Read::Instance { set, taken: Box::new(taken) })
        });
    }

    fn on_a_thread(&self, read: impl FnOnce() -> Option<Read> + Send + 'static) {
        let (sender, waker, turn) = (self.sender.clone(), Arc::clone(&self.waker), Arc::clone(&self.turn));
        let work = move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(read) = read() {
                // A receiver that is gone is a manager that has ended.
                let _ended = sender.send(read);
                waker.wake();
            }
        };
        if let Err(error) = thread::Builder::new().name("load-units".into()).spawn(work) {
            tracing::error!(%error, "the units cannot be read: no thread could be made");
        }
    }

    /// Whether something is being read.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        // Each thread that reads, or waits for its turn to, has one of its own.
        Arc::strong_count(&self.turn) > 1
    }

    /// What was read since, in the order of their ends.
    pub fn done(&self) -> Vec<Read> {
        self.waker.clear();
        self.receiver.try_iter().collect()
    }
}

/// What comes before the loading; `None`: there is nothing to load, and the answer is out.
fn prepare(errand: Errand, loader: &Loader, config: &Config, policy: Policy, uid: u32) -> Option<Outcome> {
    let ring = crate::boot::ground::keys(config, uid);
    let gate = TrustGate { policy, ring: &ring };
    let search = &loader.config().search;
    let (change, answer) = match errand {
        Errand::Load(answer) => return Some(Outcome::Swap(answer)),
        Errand::Plan(answer) => return Some(Outcome::Plan(answer)),
        Errand::Watched(watch) => return Some(Outcome::Watched(watch)),
        Errand::Change(change, answer) => (change, answer),
        Errand::Files(name, more, answer) => {
            // To look at a file is no use of it: no gate.
            crate::control::files::send(&loader.load_unit(&name, &OpenGate), more, &answer);
            return None;
        }
        Errand::Set(wanted, answer) => {
            return match properties::carry_out(&wanted, search, |name| loader.load_unit(name, &gate)) {
                Ok(done) => Some(Outcome::Set(done, answer)),
                Err(error) => {
                    answer.result::<Empty>(Err(error));
                    None
                }
            };
        }
    };
    match unit_files::carry_out(&change, search, |name| loader.load_unit(name, &gate)) {
        Ok(done) => Some(Outcome::Changed(change.wish, done, answer)),
        Err(error) => {
            // Some of the files may have been written before one could not be.
            let written = matches!(error, CallError::Failed { .. });
            answer.result::<Empty>(Err(error));
            written.then_some(Outcome::Swap(None))
        }
    }
}

fn load(loader: &Loader, config: &Config, instances: &[UnitName], policy: Policy, uid: u32) -> Loaded {
    let ring = crate::boot::ground::keys(config, uid);
    let report = loader.load_with(instances, &TrustGate { policy, ring: &ring });
    let problems = problems(&report);
    let edges = Arc::new(Edges::of(&report.set));
    Loaded { set: report.set, files: report.files, edges, problems, ring, outcome: Outcome::Swap(None) }
}

/// What a person should see of a loading.
fn problems(report: &LoadReport) -> Vec<Problem> {
    let of_paths = report.problems.iter().map(|problem| Problem {
        unit: None,
        path: Some(problem.path.display().to_string()),
        message: problem.message.clone(),
    });
    let of_units = report.set.iter().filter_map(|unit| {
        Some(Problem {
            unit: Some(unit.name.to_string()),
            path: unit.fragment.as_ref().map(|path| path.display().to_string()),
            message: unit.load.reason()?.to_owned(),
        })
    });
    of_paths.chain(of_units).collect()
}

/// Verifies the bytes of a unit's files before they are parsed.
struct TrustGate<'a> {
    policy: Policy,
    ring: &'a KeyRing,
}

impl Gate for TrustGate<'_> {
    fn admit(&self, files: &UnitFiles<'_>) -> Admission {
        let digests: BTreeMap<String, Sha256Digest> =
            files.files.iter().map(|file| (file.name.to_owned(), Sha256Digest::of(file.bytes))).collect();
        let signature = files.signature.map(|bytes| &bytes[..]);
        let verdict = judge(signature, self.ring, |manifest| {
            manifest.check_unit(&signed_name(files.unit))?;
            manifest.check_unit_files(&digests)
        });
        match decide(self.policy, &verdict) {
            Decision::Allowed => Admission::Admitted,
            Decision::AllowedWithWarning(line) => Admission::Warned(format!("trust: {line}")),
            Decision::Refused(line) => Admission::Refused(format!("trust: {line}")),
        }
    }
}

/// What the machine and the manager are, for specifiers.
fn specifiers(config: &Config, uid: u32, accounts: &Accounts) -> SpecifierContext {
    let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let user = accounts.user(&uid.to_string()).ok();
    let mut context = SpecifierContext {
        credentials_dir: config.folders.runtime.join("credentials").display().to_string(),
        uid: uid.to_string(),
        gid: user.as_ref().map_or(0, |user| user.gid).to_string(),
        host_name: agentd_linux::machine::hostname(),
        machine_id: line("/etc/machine-id"),
        boot_id: line("/proc/sys/kernel/random/boot_id").replace('-', ""),
        kernel_release: line("/proc/sys/kernel/osrelease"),
        architecture: architecture().to_owned(),
        pretty_host_name: pretty_host_name(),
        release: release(),
        ..SpecifierContext::system()
    };
    if let (Some(user), Mode::User) = (user, config.mode) {
        let home = |variable: &str, default: &str| {
            std::env::var(variable)
                .ok()
                .filter(|v| v.starts_with('/'))
                .unwrap_or(format!("{}/{default}", user.home))
        };
        context.runtime_dir = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default();
        context.state_dir = config.folders.units_state.display().to_string();
        context.cache_dir = home("XDG_CACHE_HOME", ".cache");
        context.configuration_dir = home("XDG_CONFIG_HOME", ".config");
        context.logs_dir = config.folders.log.display().to_string();
        context.home = user.home;
        context.user = user.name;
        context.group = String::new();
        context.shell =
            std::env::var("SHELL").ok().filter(|shell| shell.starts_with('/')).unwrap_or(user.shell);
    }
    context
}

/// The variables of a file; none where it is not there, or is no such file.
fn variables(path: &str) -> Option<Vec<(String, String)>> {
    env_file::read(Path::new(path)).and_then(|text| env_file::parse(&text)).ok()
}

/// os-release(5): the machine's own file, else the distribution's.
fn release() -> Option<Release> {
    let said = ["/etc/os-release", "/usr/lib/os-release"].into_iter().find_map(variables)?;
    Some(Release::of(&said))
}

/// machine-info(5); a host without one has its name up to the first dot.
fn pretty_host_name() -> String {
    let said = variables("/etc/machine-info").unwrap_or_default();
    let pretty = said.into_iter().rev().find(|(name, value)| name == "PRETTY_HOSTNAME" && !value.is_empty());
    let own = || agentd_linux::machine::hostname().split('.').next().unwrap_or_default().to_owned();
    pretty.map_or_else(own, |(_, value)| value)
}

/// systemd's word for the architecture, systemd.unit(5) `%a`.
const fn architecture() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        "x86-64"
    } else if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        std::env::consts::ARCH
    }
}
