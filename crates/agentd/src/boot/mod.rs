//! From the first instruction to the main loop, and from its end to the last one.

pub mod cmdline;
pub mod ending;
pub mod ground;
pub mod machine;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use agentd_engine::Manager;
use agentd_linux::rlimit::{self, Resource};
use agentd_linux::signal::{self, SignalFd};
use agentd_linux::timer::Clocks;
use agentd_linux::user::Accounts;
use agentd_linux::{notify::NotifySocket, reap};
use agentd_trust::Policy;
use agentd_unit::{UnitName, UnitSet};
use tokio::sync::mpsc;

use crate::config::{Config, Mode, UserEnvironment, WatchUnits, folders};
use crate::control::access::Owner;
use crate::control::peers;
use crate::control::server::Server;
use crate::daemon::Daemon;
use crate::journal::{self, Journal, JournalConfig, LogLevel};
use crate::log::{LogConfig, LogStore};
use crate::manager_file::{self, ManagerFile, ManagerFileError};
use crate::options::Options;
use crate::perform::plan::chain;
use crate::perform::runs::Runs;
use crate::perform::sockets::Sockets;
use crate::perform::stamps::Stamps;
use crate::perform::store::Stores;
use crate::perform::sweeper::Sweeper;
use crate::perform::trust::Trust;
use crate::perform::{Births, Spawner, executes_descriptors};
use crate::takeover::Kept;
use crate::takeover::handover::Handover;
use crate::takeover::reexec::Inherited;
use crate::units::Loading;
use crate::watch::groups::Watches;
use crate::watch::{Sources, Told, signals};
use crate::world::{self, World};

/// How many requests wait for the main loop before clients wait for each other.
const REQUESTS: usize = 256;

/// The first thing in main: signals that would end us wait until they are read.
///
/// # Errors
/// None that valid numbers can have.
pub fn hold_signals() -> io::Result<()> {
    signal::reset_inherited(&signals::WATCHED)
}

/// Supervises until a shutdown has stopped everything; the code to exit with.
#[must_use]
pub fn run(options: Options, pid1: bool, mut inherited: Inherited) -> ExitCode {
    let mut report = machine::Report::default();
    if pid1 {
        // Asked before /proc is ours: a machine's first process finds no /proc, a container's has one or says so.
        machine::mount_all(&mut report, agentd_linux::machine::container().is_some());
    }
    let mode = mode(&options, pid1);
    let cmdline = if mode == Mode::Init { kernel_command_line() } else { cmdline::CommandLine::default() };
    let (config, unread) = match config(mode, &options, &cmdline) {
        Ok(read) => read,
        Err(error) => {
            eprintln!("agentd: {error}");
            return ExitCode::from(2);
        }
    };
    let started_with = machine::raise_descriptors(&mut report, mode == Mode::Init);
    inherited.held.nofile = inherited.held.nofile.or(started_with);
    let journal = match start_journal(&config) {
        Ok(journal) => journal,
        Err(error) => {
            eprintln!("agentd: logging cannot be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    if pid1 {
        machine::set_up(&mut report, mode == Mode::Container);
    }
    tell(&config, &report, &cmdline);
    if let Some(error) = unread {
        tracing::error!("{error}; until then the defaults hold");
    }
    let journal = Arc::new(journal);
    match supervise(config, Arc::clone(&journal), inherited) {
        Ok((kind, world)) => ending::end(kind, world, &journal),
        Err(error) => {
            tracing::error!("agentd cannot start: {}", chain(error.as_ref()));
            journal.flush(std::time::Duration::from_secs(1));
            ExitCode::FAILURE
        }
    }
}

fn mode(options: &Options, pid1: bool) -> Mode {
    match (options.user, pid1) {
        (true, false) => Mode::User,
        (_, true) if agentd_linux::machine::container().is_some() => Mode::Container,
        (_, true) => Mode::Init,
        (false, false) => Mode::Subreaper,
    }
}

fn kernel_command_line() -> cmdline::CommandLine {
    match std::fs::read_to_string("/proc/cmdline") {
        Ok(text) => cmdline::CommandLine::parse(&text),
        Err(error) => cmdline::CommandLine {
            problems: vec![format!("/proc/cmdline cannot be read: {error}")],
            ..cmdline::CommandLine::default()
        },
    }
}

/// What the files, the kernel and the command line say, the later winning; and why the manager's own file does not count. An
/// init that cannot use it goes on by its defaults, of which the trust policy is the strictest: a machine that does not come
/// up can correct no file.
fn config(
    mode: Mode,
    options: &Options,
    cmdline: &cmdline::CommandLine,
) -> Result<(Config, Option<ManagerFileError>), Boxed> {
    let folders = folders(mode, options, &UserEnvironment::read())?;
    let read = manager_file::read(mode, &std::env::vars().collect(), agentd_trust::key_file::own_uid()?);
    let (file, unread) = match read {
        Err(error) if mode.is_pid1() => (ManagerFile::default(), Some(error)),
        read => (read?, None),
    };
    let default_trust = if mode.is_pid1() || options.production { Policy::Enforce } else { Policy::Warn };
    let mut keys = options.keys.clone();
    keys.extend(["/etc/agentd/keys".into(), "/usr/lib/agentd/keys".into()]);
    let mut unit_path = options.unit_path.clone();
    unit_path.extend(cmdline.unit_path.iter().cloned());
    let config = Config {
        mode,
        folders,
        trust: options.trust.or(cmdline.trust).or(file.trust).unwrap_or(default_trust),
        production: options.production,
        watch_units: file.watch_units.unwrap_or_default(),
        keys,
        unit_path,
        unit: match options.unit.clone().or_else(|| cmdline.unit.clone()) {
            Some(unit) => unit,
            None => UnitName::parse("default.target")?,
        },
        log_level: options.log_level.or(cmdline.log_level).or(file.log_level).unwrap_or_default(),
        quiet: cmdline.quiet,
        journal_streams: mode != Mode::User,
    };
    Ok((config, unread))
}

/// An init speaks on the console and into the kernel's log; others on standard error. All speak to journald when it
/// is there.
fn start_journal(config: &Config) -> io::Result<Journal> {
    let mut outlets = JournalConfig {
        level: config.log_level,
        user: config.mode == Mode::User,
        journald: Some(journal::JOURNALD_SOCKET.into()),
        journald_may_come: config.mode.is_pid1(),
        ..JournalConfig::default()
    };
    if config.mode == Mode::Init {
        let least = if config.quiet { LogLevel::Warning } else { LogLevel::Info };
        outlets.console = console().map(|console| (least, console));
        outlets.kmsg = agentd_linux::kmsg::Kmsg::open("/dev/kmsg".as_ref()).ok();
        outlets.kernel_shows = console_loglevel();
    } else {
        outlets.stderr = Some(Box::new(io::stderr()));
    }
    journal::init(outlets)
}

/// The console, without making it the terminal that we can be interrupted from.
fn console() -> Option<Box<dyn io::Write + Send>> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    let file = options.write(true).custom_flags(agentd_linux::open::NOCTTY).open("/dev/console").ok()?;
    Some(Box::new(file))
}

/// Below which priority the kernel puts a line of its log on the console; `None` where it does not say.
fn console_loglevel() -> Option<u8> {
    let levels = std::fs::read_to_string("/proc/sys/kernel/printk").ok()?;
    levels.split_ascii_whitespace().next()?.parse().ok()
}

fn tell(config: &Config, report: &machine::Report, cmdline: &cmdline::CommandLine) {
    tracing::info!(
        "agentd {} starts as {} (trust policy {})",
        env!("CARGO_PKG_VERSION"),
        config.mode.as_str(),
        config.trust
    );
    for line in &report.done {
        tracing::debug!("{line}");
    }
    for line in &report.skipped {
        tracing::warn!("{line}");
    }
    for problem in &cmdline.problems {
        tracing::warn!("kernel command line: {problem}");
    }
}

type Boxed = Box<dyn std::error::Error>;

/// Builds the world, runs the main loop on this thread, and hands the world back when all is stopped.
fn supervise(
    config: Config,
    journal: Arc<Journal>,
    inherited: Inherited,
) -> Result<(agentd_engine::ShutdownKind, World), Boxed> {
    // First, for the sake of the descriptors that it takes.
    let spawner = Spawner::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let signals = SignalFd::new(&signals::WATCHED)?;
        let uid = agentd_trust::key_file::own_uid()?;
        ground::runtime_folder(&config.folders.runtime, uid)?;
        let lock = match inherited.lock {
            Some(lock) => lock,
            None => ground::lock(&config.folders.lock())?,
        };
        if !config.mode.is_pid1() {
            reap::become_subreaper()?;
        }
        let notify = match inherited.notify {
            Some(notify) => notify,
            None => NotifySocket::bind(&config.folders.notify_socket())?,
        };
        let world = build_world(config, uid, lock, journal, spawner, inherited.held)?;
        let told = Told {
            groups: world.watches.descriptor()?,
            mains: world.mains.descriptor()?,
            loaded: world.loading.descriptor()?,
            stored: world.stores.descriptor()?,
            traffic: world.sockets.descriptor()?,
        };
        let folder = crate::watch::folder::watch(&world.config.folders)?;
        let mut sources = Sources::new(signals, notify, told, folder)?;
        if world.config.watch_units != WatchUnits::Off {
            sources.watch_unit_files(world.unit_path())?;
        }
        let (to_loop, requests) = mpsc::channel(REQUESTS);
        let mut control =
            Server::new(world.config.folders.control_socket(), Rc::new(peers::identify), to_loop);
        control.listen(inherited.control)?;
        let seed = seed()?;
        let engine = agentd_engine::Config {
            seed,
            stamps: world::stamps(&world.state),
            shutdown_timeout: Some(SHUTDOWN_TIMEOUT),
            quietest: quietest(world.config.log_level),
        };
        let manager = Manager::new(engine, world.now);
        let daemon = Daemon::new(manager, world, sources, requests, control);
        Ok(daemon.run(inherited.is_successor).await)
    })
}

/// What a whole shutdown may take before what is left is killed: systemd's default for its own (DefaultTimeoutStopSec
/// twice), as each unit has its own bound below it.
const SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(180);

/// What the engine says. Of the shell's own levels only the quietest is left out: some of what is information also tells the
/// shell that something has happened.
fn quietest(level: LogLevel) -> agentd_engine::Level {
    if level < LogLevel::Debug { agentd_engine::Level::Info } else { agentd_engine::Level::Debug }
}

/// Randomness for invocation ids, random(4).
fn seed() -> io::Result<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map(u128::to_be_bytes).map_err(io::Error::other)
}

fn build_world(
    config: Config,
    uid: u32,
    lock: File,
    journal: Arc<Journal>,
    spawner: Spawner,
    mut held: Handover<OwnedFd>,
) -> Result<World, Boxed> {
    let (state, problems) = ground::state(&config)?;
    for problem in problems {
        tracing::warn!("{problem}");
    }
    let state = Arc::new(state);
    let descriptors = rlimit::get(Resource::Nofile)?.soft;
    let now = world::now(&Clocks::now()?);
    let kept = Kept::open(&config.folders.runtime, now.boottime, std::mem::take(&mut held.records));
    let leavers = std::mem::take(&mut held.leavers).into_iter().collect();
    let (mut sockets, mut stores) = (Sockets::new()?, Stores::new()?);
    sockets.inherit(&mut held);
    stores.inherit(&mut held);
    let accounts = Accounts::default();
    let loading = Loading::new(&config, uid, &accounts)?;
    // The kernel takes its time over the move into the cgroup (a grace period of RCU). Where files are watched, that comes
    // before they are read.
    let is_watched = config.watch_units != WatchUnits::Off;
    let loaded_ahead = if is_watched { None } else { loading.ahead(&config, kept.instances()) };
    let (cgroups, missing) = ground::cgroups(&config, &|unit| kept.has_process(unit));
    for line in &missing {
        tracing::warn!("{line}");
    }
    let owners = if uid == 0 { vec![0] } else { vec![0, uid] };
    let trust = Trust {
        policy: config.trust,
        ring: ground::keys(&config, uid),
        owners,
        copies: config.folders.runtime.join("exec"),
        by_descriptor: executes_descriptors(),
        copied: RefCell::default(),
        digests: RefCell::default(),
    };
    let (machine_memory, machine_tasks) = ground::machine_size();
    let watches = if cgroups.is_some() { Watches::new()? } else { Watches::default() };
    Ok(World {
        bounded: BTreeMap::new(),
        stopped_slices: std::collections::BTreeSet::new(),
        now,
        started: now.realtime,
        scratch: Vec::new(),
        runs: Runs::default(),
        replies: crate::control::replies::Replies::default(),
        ends: crate::control::ends::Ends::default(),
        trust,
        journal,
        log: Some(
            LogStore::start(LogConfig::new(&config.folders.log).with_descriptors(descriptors))?.held_back(),
        ),
        followers: Vec::new(),
        stamps: Stamps::start(Arc::clone(&state)),
        state,
        journal_streams: agentd_linux::journal::Connector::default(),
        sockets,
        paths: crate::perform::paths::Paths::default(),
        births: Births::new(spawner),
        busy: false,
        cgroups,
        sweeper: Sweeper::default(),
        watches,
        mains: crate::watch::mains::Mains::new()?,
        owner: Owner { uid, group: accounts.group("agentd").ok() },
        descriptors,
        rlimits: held.nofile.take().into_iter().collect(),
        loading,
        loaded_ahead,
        errands: Vec::new(),
        looked_up: Vec::new(),
        is_ending: false,
        way_back: None,
        ending: None,
        reboot_argument: None,
        first_request: None,
        booted: false,
        orphans: 0,
        lost_notifications: 0,
        tidy: false,
        children_left: false,
        reopen_control: false,
        folder_changed: false,
        dump: false,
        problems: Vec::new(),
        unit_files: Vec::new(),
        loaded: UnitSet::new(),
        edges: Arc::default(),
        found_units: false,
        plans: Vec::new(),
        missing,
        machine_memory,
        machine_tasks,
        oom_score_adjust: None,
        kit_written: false,
        stores,
        held,
        kept,
        reexec: Vec::new(),
        kept_folders: BTreeMap::new(),
        reach: crate::perform::reach::Reach::probe(),
        leavers,
        accounts,
        lock,
        config,
    })
}
