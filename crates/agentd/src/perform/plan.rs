//! From an effect to a process: everything resolved in the parent, for the child to walk without a look-up.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use agentd_engine::{Spawn, SpawnFailure, SpawnFailureKind};
use agentd_linux::spawn::{Identity, Program, SpawnPlan, Stdio, WorkingDirectory};
use agentd_linux::user::User;
use agentd_unit::sections::{AgentKind, ServiceSection};
use agentd_unit::{ExecCommand, ExecKind, Unit};

use super::environment::{self, Account, DEFAULT_PATH, Facts};
use super::runs::Process;
use super::trust::{Executable, Refusal};
use super::{python, start};
use crate::config::Mode;
use crate::world::World;

/// systemd's exit statuses for what fails before the birth, systemd.exec(5) "PROCESS EXIT CODES".
const EXIT_EXEC: u8 = 203;
const EXIT_GROUP: u8 = 216;
const EXIT_USER: u8 = 217;
const EXIT_STATE_DIRECTORY: u8 = 238;

/// Executes one command of a unit and enters its process; the pid, or why there is none.
///
/// # Errors
/// The step that failed, as the service will count it, with a sentence.
pub fn spawn(world: &mut World, spawn: &Spawn) -> Result<u32, SpawnFailure> {
    start::ensure_run(world, spawn)?;
    let result = execute(world, spawn);
    if let Err(failure) = &result {
        tracing::debug!(unit = %spawn.unit.name, "{}: {}", spawn.kind, failure.message);
    }
    result
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
}

fn execute(world: &mut World, spawn: &Spawn) -> Result<u32, SpawnFailure> {
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
    let output = run.output.as_ref().map_or(Stdio::Null, |fd| Stdio::Fd(fd.as_fd()));
    plan.stdio = [Stdio::Null, output, output];
    plan.fds = prepared.fds.iter().map(AsFd::as_fd).collect::<Vec<BorrowedFd<'_>>>();
    plan.working_directory = Some(working_directory(service, world.config.folders.home.as_deref())?);
    plan.identity = prepared.identity.clone();
    if !prepared.privileged {
        plan.bounding_set = service.capability_bounding_set;
        plan.ambient_set = service.ambient_capabilities;
        plan.no_new_privileges = service.no_new_privileges;
    }
    plan.rlimits.clone_from(&world.rlimits);
    plan.oom_score_adjust = world.oom_score_adjust;
    plan.cgroup = run.cgroup.as_ref().map(AsFd::as_fd);
    let child = world.spawner.spawn(&plan).map_err(|error| {
        // A step without a status failed before there was a process: the manager lacked something.
        let exit_status = error.step.exit_status();
        let kind = exit_status
            .map_or(SpawnFailureKind::Resources, |exit_status| SpawnFailureKind::Step { exit_status });
        SpawnFailure { kind, message: chain(&error) }
    })?;
    let pid = child.pid;
    world.runs.enter(spawn.run, spawn.id, Process { pid, pidfd: child.pidfd });
    Ok(pid)
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
    let user = account(world, service, &command)?;
    let identity = identity(world, service, &command, user.as_ref())?;
    let directories = state_directories(world, service, identity.as_ref())?;
    let env = env(world, spawn, user, &directories)?;
    let argv = if command.expand_environment {
        environment::expand(&command.argv, &env)
    } else {
        command.argv.clone()
    };
    let path = find(&command, env.get("PATH").map_or(DEFAULT_PATH, String::as_str))?;
    let (program, fds) = match agent {
        // The interpreter is the image's matter; the module is what was signed.
        Some(agent) => (Executable::Path(path), vec![python::module(world, unit, agent)?]),
        None => {
            let run = spawn.run.to_string();
            (world.trust.admit(unit, &path, &run).map_err(refused)?, Vec::new())
        }
    };
    let mut env = env;
    if !fds.is_empty() {
        env.insert("AGENTD_MODULE_FD".into(), "3".into());
    }
    let pid_variables =
        if spawn.environment.watchdog.is_some() { vec![c_string("WATCHDOG_PID")?] } else { Vec::new() };
    Ok(Prepared { program, argv, env, pid_variables, fds, identity, privileged })
}

fn service(unit: &Unit) -> Result<&ServiceSection, SpawnFailure> {
    let body = unit.as_service().ok_or_else(|| resources(format!("{} is no service", unit.name)))?;
    Ok(&body.service)
}

/// The account of `User`; none for commands with full privileges or without `User`.
fn account(
    world: &World,
    service: &ServiceSection,
    command: &ExecCommand,
) -> Result<Option<User>, SpawnFailure> {
    match &service.user {
        Some(name) if !command.full_privileges && !command.no_setuid => world
            .accounts
            .user(name)
            .map(Some)
            .map_err(|e| step(EXIT_USER, format!("User={name}: {}", chain(&e)))),
        _ => Ok(None),
    }
}

fn identity(
    world: &World,
    service: &ServiceSection,
    command: &ExecCommand,
    user: Option<&User>,
) -> Result<Option<Identity>, SpawnFailure> {
    if command.full_privileges || command.no_setuid {
        return Ok(None);
    }
    let failed = |e: agentd_linux::user::UserError| step(EXIT_GROUP, format!("Group: {}", chain(&e)));
    let gid = service.group.as_ref().map(|name| world.accounts.group(name)).transpose().map_err(failed)?;
    let Some(user) = user else {
        // Group alone: the manager's own user in another group.
        return Ok(gid.map(|gid| Identity { uid: world.owner.uid, gid, groups: Vec::new() }));
    };
    let primary = gid.unwrap_or(user.gid);
    let groups = world.accounts.supplementary(&user.name, primary).map_err(failed)?;
    Ok(Some(Identity { uid: user.uid, gid: primary, groups }))
}

fn env(
    world: &World,
    spawn: &Spawn,
    user: Option<User>,
    directories: &[PathBuf],
) -> Result<BTreeMap<String, String>, SpawnFailure> {
    let run = world.runs.get(spawn.run).ok_or_else(|| resources("the run has ended".into()))?;
    let account = match user {
        None if world.config.mode == Mode::User => own_account(world),
        user => user.map(|user| Account { name: user.name, home: user.home, shell: user.shell }),
    };
    Ok(environment::environment(&Facts {
        unit: &spawn.unit,
        run: spawn.run,
        kind: spawn.kind,
        engine: &spawn.environment,
        fencing_token: run.token,
        notify_socket: &world.config.folders.notify_socket(),
        account: account.as_ref(),
        state_directories: directories,
        journal_stream: run.journal_stream.as_deref(),
        user_manager: (world.config.mode == Mode::User).then(std::process::id),
        user_runtime: world.config.folders.user_runtime.as_deref(),
    }))
}

/// The account of a user manager: its own, in the home that it was started with.
fn own_account(world: &World) -> Option<Account> {
    let user = world.accounts.user(&world.owner.uid.to_string()).ok()?;
    let home = world.config.folders.home.as_ref().map_or(user.home, |home| home.display().to_string());
    Some(Account { name: user.name, home, shell: user.shell })
}

/// Makes the folders of `StateDirectory` and gives them to the unit's user.
fn state_directories(
    world: &World,
    service: &ServiceSection,
    identity: Option<&Identity>,
) -> Result<Vec<PathBuf>, SpawnFailure> {
    let base = &world.config.folders.units_state;
    let failed = |path: &Path, e: &io::Error| {
        step(EXIT_STATE_DIRECTORY, format!("StateDirectory: {} cannot be made: {e}", path.display()))
    };
    let mut made = Vec::new();
    for name in &service.state_directory {
        let path = base.join(name);
        let builder = || fs::DirBuilder::new().recursive(true).mode(0o755).create(&path);
        builder().map_err(|e| failed(&path, &e))?;
        if let Some(who) = identity {
            let owned = fs::symlink_metadata(&path).and_then(|meta| {
                if meta.is_dir() {
                    chown(&path, Some(who.uid), Some(who.gid))
                } else {
                    Err(io::Error::from(io::ErrorKind::NotADirectory))
                }
            });
            owned.map_err(|e| failed(&path, &e))?;
        }
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(|e| failed(&path, &e))?;
        made.push(path);
    }
    Ok(made)
}

/// The program's path: as it is if absolute, else the first executable file of that name along PATH.
fn find(command: &ExecCommand, path: &str) -> Result<PathBuf, SpawnFailure> {
    let program = Path::new(&command.program);
    if program.is_absolute() {
        return Ok(program.to_owned());
    }
    let executable = |candidate: &PathBuf| {
        fs::metadata(candidate).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
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

fn c_path(path: &Path) -> Result<CString, SpawnFailure> {
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
