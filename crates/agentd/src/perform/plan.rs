//! From an effect to a process: everything resolved in the parent, for the child to walk without a look-up.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agentd_engine::{EffectId, InvocationId, Spawn, SpawnFailure, SpawnFailureKind};
use agentd_linux::cgroup::Leaf;
use agentd_linux::spawn::{Child, Identity, Program, SpawnError, SpawnPlan, WorkingDirectory};
use agentd_linux::user::User;
use agentd_trust::Policy;
use agentd_unit::sections::{AgentKind, ServiceSection};
use agentd_unit::{ExecCommand, ExecKind, Unit, conditions};

use super::births::Begun;
use super::env_file;
use super::environment::{self, Account, DEFAULT_PATH, Facts};
use super::passed::Passed;
use super::rooted::Rooted;
use super::runs::Process;
use super::streams::Streams;
use super::trust::{Executable, Refusal};
use super::{
    credentials, folders, identity, landlock, process, python, sandbox, sockets, start, streams, terminal,
};
use crate::config::Mode;
use crate::world::World;

/// systemd's exit statuses for what fails before the birth, systemd.exec(5) "PROCESS EXIT CODES".
const EXIT_EXEC: u8 = 203;
const EXIT_CHROOT: u8 = 210;

/// Executes one command of a unit and enters its process: the pid, or none if its birth was begun and is under way.
///
/// # Errors
/// The step that failed, as the service will count it, with a sentence.
pub fn spawn(world: &mut World, spawn: &Spawn) -> Result<Option<u32>, SpawnFailure> {
    start::ensure_run(world, spawn)?;
    execute(world, spawn)
}

/// Enters a process that was born, or tells why there is none.
///
/// # Errors
/// As [`spawn`].
pub fn born(
    world: &mut World,
    run: InvocationId,
    id: EffectId,
    child: Result<Child, SpawnError>,
) -> Result<u32, SpawnFailure> {
    let child = child.map_err(|error| {
        // A step without a status failed before there was a process: the manager lacked something.
        let exit_status = error.step.exit_status();
        let kind = exit_status
            .map_or(SpawnFailureKind::Resources, |exit_status| SpawnFailureKind::Step { exit_status });
        SpawnFailure { kind, message: chain(&error) }
    })?;
    let pid = child.pid;
    world.runs.enter(run, id, Process { pid, pidfd: child.pidfd });
    Ok(pid)
}

/// What a command is made of, before it becomes a plan.
struct Prepared {
    program: Executable,
    argv: Vec<String>,
    env: BTreeMap<String, String>,
    /// Variables whose value is the child's own pid.
    pid_variables: Vec<CString>,
    fds: Vec<OwnedFd>,
    identity: Option<Identity>,
    privileged: bool,
    /// The home of `User`, or of the manager, for `WorkingDirectory=~`.
    home: Option<PathBuf>,
    made: Vec<folders::Made>,
    streams: Streams,
}

fn execute(world: &mut World, spawn: &Spawn) -> Result<Option<u32>, SpawnFailure> {
    let prepared = prepare(world, spawn)?;
    let service = service(&spawn.unit)?;
    let run = world.runs.get(spawn.run).ok_or_else(|| resources("the run has ended".into()))?;
    let program = match &prepared.program {
        Executable::Path(path) => Program::Path(c_path(path)?),
        Executable::Descriptor(fd) => {
            let name = c_string(prepared.argv.first().map_or("", String::as_str))?;
            Program::Descriptor { fd: fd.as_fd(), name, keep_open: false }
        }
    };
    let argv = prepared.argv.iter().map(|arg| c_string(arg)).collect::<Result<_, _>>()?;
    let mut plan = SpawnPlan::new(program, argv);
    plan.envp = variables(&prepared.env)?;
    plan.pid_variables = prepared.pid_variables.clone();
    process::describe(&mut plan, world, &spawn.unit.name, service)?;
    let root = service.root_of(Some(spawn.kind));
    plan.root_directory = root.map(c_path).transpose()?;
    plan.stdio = prepared.streams.stdio(run.output.as_ref().map(AsFd::as_fd));
    plan.terminal = prepared.streams.terminal;
    plan.fds = prepared.fds.iter().map(AsFd::as_fd).collect::<Vec<BorrowedFd<'_>>>();
    plan.working_directory = Some(working_directory(service, prepared.home.as_deref())?);
    plan.identity = prepared.identity.clone();
    if !prepared.privileged {
        plan.bounding_set = service.capability_bounding_set;
        plan.ambient_set = service.ambient_capabilities;
        plan.no_new_privileges = service.no_new_privileges;
        let own = own(world, spawn, &prepared.made)?;
        plan.joined = run.common.joined();
        sandbox::wall(&mut plan, service, &own)?;
        landlock::tell(service);
        plan.secure_bits = Some(service.execution.secure_bits).filter(|bits| *bits != 0);
    }
    plan.cgroup = run.cgroup.as_ref().map(AsFd::as_fd);
    plan.moves = run.cgroup.as_ref().is_some_and(Leaf::was_killed);
    let alongside = world.births.is_under_way() || world.busy && world.births.go_alongside();
    let child = match alongside {
        true => match world.births.begin(plan, Begun::of(spawn)) {
            Ok(()) => return Ok(None),
            Err(error) => Err(error),
        },
        false => world.births.spawn(&plan),
    };
    born(world, spawn.run, spawn.id, child).map(Some)
}

fn prepare(world: &mut World, spawn: &Spawn) -> Result<Prepared, SpawnFailure> {
    let unit = &spawn.unit;
    let service = service(unit)?;
    let python =
        unit.as_service().and_then(|body| body.agent.as_ref()).filter(|a| a.kind == AgentKind::Python);
    let agent = if spawn.kind == ExecKind::Start { python } else { None };
    let command = match agent {
        Some(agent) => python::command(world, agent),
        None => service.commands(spawn.kind).get(spawn.index).cloned(),
    };
    let command =
        command.ok_or_else(|| resources(format!("{} has no command {}", spawn.kind, spawn.index)))?;
    let privileged = command.full_privileges;
    let dynamic = world.runs.get(spawn.run).and_then(|run| run.dynamic_uid);
    let user = identity::account(world, &unit.name, service, dynamic)?;
    // What the unit's folders belong to, whoever the command runs as.
    let owner = identity::identity(world, service, user.as_ref())?;
    if let Some(run) = world.runs.get_mut(spawn.run) {
        run.belong_to(owner.as_ref().map(|owner| [owner.uid, owner.gid]))
            .map_err(|e| resources(format!("its output cannot be given to its user: {e}")))?;
    }
    let made = folders::make(world, &unit.name, service, owner.as_ref())?;
    keep_credentials(world, spawn, service, owner.as_ref())?;
    let mut listeners = sockets::of_command(world, spawn, service.life.non_blocking)
        .map_err(|e| resources(format!("the sockets of the service: {e}")))?;
    // As in systemd: what is standard input or output is not handed over a second time.
    let socket = if streams::uses_socket(&service.execution) {
        streams::only(&mut listeners, spawn.kind)?
    } else {
        None
    };
    let passed = Passed::collect(world, spawn, service, listeners)?;
    let streams = Streams::open(&service.execution, spawn.kind == ExecKind::Start, &passed, socket)?;
    let elevated = command.full_privileges || command.no_setuid;
    let (user, identity) = if elevated { (None, None) } else { (user, owner) };
    let home = home(world, service, user.as_ref());
    let env = env(world, spawn, user, &made)?;
    let argv = if command.expand_environment {
        environment::expand(&command.argv, &env)
    } else {
        command.argv.clone()
    };
    let root = service.root_of(Some(spawn.kind));
    let search_path = service.execution.search_path().or_else(|| env.get("PATH").cloned());
    let rooted = root.map(|root| rooted(world, spawn, &made, root, privileged)).transpose()?;
    let path = find(&command, search_path.as_deref().unwrap_or(DEFAULT_PATH), rooted.as_ref())?;
    let (program, module) = match agent {
        // The interpreter is the image's matter; the module is what was signed.
        Some(agent) => (Executable::Path(path), Some(python::module(world, unit, agent)?)),
        None => (admit(world, unit, &path, root.zip(rooted.as_ref()), spawn)?, None),
    };
    let mut env = env;
    if let Some((address, port)) = spawn.connection.and_then(|id| world.sockets.origin(id)?.remote()) {
        env.insert("REMOTE_ADDR".into(), address.to_string());
        env.insert("REMOTE_PORT".into(), port.to_string());
    }
    let listens = passed.describe(&mut env);
    let pid_variables = pid_variables(service, &env, listens, spawn.environment.watchdog.is_some())?;
    if module.is_some() {
        env.insert("AGENTD_MODULE_FD".into(), passed.next().to_string());
    }
    let fds = passed.into_fds(module);
    Ok(Prepared { program, argv, env, pid_variables, fds, identity, privileged, home, made, streams })
}

/// The variables that say which process is meant; what the unit itself says of one, or that it is not to be there, counts.
fn pid_variables(
    service: &ServiceSection,
    env: &BTreeMap<String, String>,
    listens: bool,
    watched: bool,
) -> Result<Vec<CString>, SpawnFailure> {
    let unset = &service.execution.unset_environment;
    let variables = [("SYSTEMD_EXEC_PID", true), ("LISTEN_PID", listens), ("WATCHDOG_PID", watched)];
    let told = variables
        .iter()
        .filter(|(name, told)| *told && !env.contains_key(*name) && unset.iter().all(|unset| unset != name));
    told.map(|(name, _)| c_string(name)).collect()
}

/// What a run has of its own.
fn own<'a>(
    world: &'a World,
    spawn: &'a Spawn,
    made: &'a [folders::Made],
) -> Result<sandbox::Own<'a>, SpawnFailure> {
    let run = world.runs.get(spawn.run).ok_or_else(|| resources("the run has ended".into()))?;
    Ok(sandbox::Own {
        made,
        private: run.private_tmp.as_ref(),
        credentials: run.credentials.as_deref(),
        runtime: &world.config.folders.runtime,
        root: service(&spawn.unit)?.root_of(Some(spawn.kind)),
        manager: world.births.ids(),
        is_main: spawn.kind == ExecKind::Start,
    })
}

/// What a command sees below `RootDirectory`, as far as programs may come from elsewhere.
fn rooted(
    world: &World,
    spawn: &Spawn,
    made: &[folders::Made],
    root: &Path,
    privileged: bool,
) -> Result<Rooted, SpawnFailure> {
    let service = service(&spawn.unit)?;
    let shown = match privileged || service.sandbox.binds.is_empty() || !root.is_dir() {
        true => Vec::new(),
        false => sandbox::mounts(service, &own(world, spawn, made)?)?.shown()?,
    };
    Ok(Rooted::new(root, shown))
}

/// What runs once the policy lets it; below `RootDirectory` it is looked at from outside, and run from within.
fn admit(
    world: &World,
    unit: &Unit,
    path: &Path,
    root: Option<(&Path, &Rooted)>,
    spawn: &Spawn,
) -> Result<Executable, SpawnFailure> {
    let run = &spawn.run.to_string();
    let Some((root, rooted)) = root else { return world.trust.admit(unit, path, path, run).map_err(refused) };
    let name = unit.program_file(Some(spawn.kind), &path.to_string_lossy());
    let [inside, outside] = rooted.find(path).map_err(|error| match root.is_dir() {
        true => step(EXIT_EXEC, format!("{} cannot be executed: {error}", name.display())),
        false => step(EXIT_CHROOT, format!("cannot take RootDirectory {} as /: {error}", root.display())),
    })?;
    let within = |path: &Path| Path::new("/").join(path.strip_prefix("/").unwrap_or(path));
    Ok(match world.trust.admit(unit, &name, &outside, run).map_err(refused)? {
        Executable::Path(path) if path == outside => Executable::Path(inside),
        Executable::Path(path) => Executable::Path(path.strip_prefix(root).map_or(path.clone(), within)),
        by_descriptor @ Executable::Descriptor(_) => by_descriptor,
    })
}

/// Where `WorkingDirectory=~` leads, and a user manager's processes begin.
fn home(world: &World, service: &ServiceSection, user: Option<&User>) -> Option<PathBuf> {
    if !service.execution.in_home {
        return world.config.folders.home.clone();
    }
    let own = || identity::own_account(world).map(|account| account.home.into());
    user.map(|user| PathBuf::from(&user.home)).or_else(own)
}

fn service(unit: &Unit) -> Result<&ServiceSection, SpawnFailure> {
    let body = unit.as_service().ok_or_else(|| resources(format!("{} is no service", unit.name)))?;
    Ok(&body.service)
}

fn env(
    world: &World,
    spawn: &Spawn,
    user: Option<User>,
    made: &[folders::Made],
) -> Result<BTreeMap<String, String>, SpawnFailure> {
    let run = world.runs.get(spawn.run).ok_or_else(|| resources("the run has ended".into()))?;
    let account = match user {
        None if world.config.mode == Mode::User => identity::own_account(world),
        user => user.map(|user| Account { name: user.name, home: user.home, shell: user.shell }),
    };
    let files = environment_files(world, &spawn.unit)?;
    Ok(environment::environment(&Facts {
        unit: &spawn.unit,
        run: spawn.run,
        kind: spawn.kind,
        engine: &spawn.environment,
        fencing_token: run.token,
        notify_socket: &world.config.folders.notify_socket(),
        account: account.as_ref(),
        folders: made,
        credentials: run.credentials.as_deref(),
        files: &files,
        passed,
        journal_stream: run.journal_stream.as_deref(),
        terminal: terminal::kind(&service(&spawn.unit)?.execution).as_deref(),
        user_manager: (world.config.mode == Mode::User).then(std::process::id),
        user_runtime: world.config.folders.user_runtime.as_deref(),
    }))
}

/// A variable of the manager's own. The kernel gives the first process of a machine a home that is nobody's, as systemd has it.
fn passed(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| (name, value.as_str()) != ("HOME", "/"))
}

/// Makes the folder of the run's secrets before its first command.
fn keep_credentials(
    world: &mut World,
    spawn: &Spawn,
    service: &ServiceSection,
    owner: Option<&Identity>,
) -> Result<(), SpawnFailure> {
    let runtime = &world.config.folders.runtime;
    if let Some(run) = world.runs.get_mut(spawn.run)
        && run.credentials.is_none()
        && !service.credentials.is_empty()
    {
        // Entered first, so that what was made goes with the run even if not all could be.
        run.credentials = Some(credentials::folder(runtime, &spawn.unit.name));
        let trust = &world.trust;
        let file = |path: &Path, secret: &[u8]| trust.admit_bytes(&spawn.unit, path, secret).map_err(refused);
        let folder = |path: &Path| trust.admit_tree(&spawn.unit, path).map_err(refused);
        let admit = credentials::Admit { file: &file, folder: &folder };
        credentials::make(runtime, &spawn.unit.name, &service.credentials, owner, &admit)?;
    }
    Ok(())
}

/// What the files of `EnvironmentFile` say, in order; one that may be missing and is says nothing.
fn environment_files(world: &World, unit: &Unit) -> Result<Vec<(String, String)>, SpawnFailure> {
    let mut found = Vec::new();
    for file in unit.as_service().iter().flat_map(|body| &body.service.execution.environment_files) {
        for path in files_of(world, &file.path, file.optional)? {
            match env_file::read(&path) {
                Ok(text) => {
                    world.trust.admit_bytes(unit, &path, &text).map_err(refused)?;
                    found.extend(env_file::parse(&text).map_err(|error| unreadable(&path, &error))?);
                }
                Err(error) if file.optional && error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, &error)),
            }
        }
    }
    Ok(found)
}

fn unreadable(path: &Path, error: &std::io::Error) -> SpawnFailure {
    resources(format!("EnvironmentFile: {} cannot be read: {error}", path.display()))
}

/// The file that a path names, or all that fit it if it is a pattern. A signature names the files that it covers, so
/// that what a pattern fits by now cannot be told from what was signed.
fn files_of(world: &World, path: &Path, optional: bool) -> Result<Vec<PathBuf>, SpawnFailure> {
    if !conditions::is_pattern(path) {
        return Ok(vec![path.to_owned()]);
    }
    if world.trust.policy == Policy::Enforce {
        let text = format!(
            "EnvironmentFile: {} is a pattern, whose files no signature covers: name each of them",
            path.display()
        );
        return Err(refused(Refusal::Trust(text)));
    }
    let files = conditions::all_of_glob(&path.to_string_lossy());
    if files.is_empty() && !optional {
        return Err(resources(format!("EnvironmentFile: no file fits {}", path.display())));
    }
    Ok(files)
}

/// The program's path: as it is if absolute, else the first executable file of that name along PATH, below the root
/// that its processes have.
fn find(command: &ExecCommand, path: &str, root: Option<&Rooted>) -> Result<PathBuf, SpawnFailure> {
    let program = Path::new(&command.program);
    if program.is_absolute() {
        return Ok(program.to_owned());
    }
    let executable = |candidate: &PathBuf| {
        let outside = root.map_or_else(|| Ok(candidate.clone()), |root| Ok(root.find(candidate)?[1].clone()));
        outside
            .and_then(fs::metadata)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let mut candidates =
        path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| Path::new(dir).join(program));
    candidates.find(executable).ok_or_else(|| {
        step(EXIT_EXEC, format!("{}: cannot be executed: it is not in {path}", command.program))
    })
}

/// `WorkingDirectory`, else the home of a user manager's user, else `/`.
fn working_directory(
    service: &ServiceSection,
    home: Option<&Path>,
) -> Result<WorkingDirectory, SpawnFailure> {
    let path = service.working_directory.as_deref().or(home).unwrap_or(Path::new("/"));
    Ok(WorkingDirectory { path: c_path(path)?, optional: service.working_directory_optional })
}

fn variables(env: &BTreeMap<String, String>) -> Result<Vec<CString>, SpawnFailure> {
    env.iter().map(|(key, value)| c_string(&format!("{key}={value}"))).collect()
}

/// A path as a call takes it.
///
/// # Errors
/// It has a NUL byte.
pub fn c_path(path: &Path) -> Result<CString, SpawnFailure> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| resources(format!("{} has a NUL byte in it", path.display())))
}

fn c_string(text: &str) -> Result<CString, SpawnFailure> {
    CString::new(text).map_err(|_| resources(format!("'{}' has a NUL byte in it", text.escape_default())))
}

/// A step that failed before the birth, with the status that a child that failed there would have had.
#[must_use]
pub fn step(exit_status: u8, message: String) -> SpawnFailure {
    SpawnFailure { kind: SpawnFailureKind::Step { exit_status }, message }
}

/// The manager could not get what the process needs.
#[must_use]
pub fn resources(message: String) -> SpawnFailure {
    SpawnFailure { kind: SpawnFailureKind::Resources, message }
}

/// A program or module that the policy refuses, or that cannot be read.
#[must_use]
pub fn refused(refusal: Refusal) -> SpawnFailure {
    match refusal {
        Refusal::Trust(message) => SpawnFailure { kind: SpawnFailureKind::Trust, message },
        Refusal::Io { .. } => step(EXIT_EXEC, refusal.to_string()),
    }
}

/// An error with its causes, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
