//! One request: read and answered at once, or made an event whose answer comes later.

use std::collections::{HashMap, VecDeque};

use agentd_engine::{
    Event, JobId, JobKind, JobMode, JobView, KillWhom, Manager, Request as EngineRequest, RequestError,
    ShutdownKind, UnitView,
};
use agentd_protocol::introspect::InfoReply;
use agentd_protocol::manager::{
    Empty, FreezeRequest, JobRequest, KillRequest, ListJobsReply, ListPathsReply, ListSocketsReply,
    ListTimersReply, ListUnitsReply, ListUnitsRequest, ShutdownRequest, UnitSummary,
};
use agentd_protocol::unit::{GetReply, UnitRequest};
use agentd_protocol::unit_files::UnitFilesRequest;
use agentd_protocol::{CallError, Request};
use agentd_unit::sections::{Credential, CredentialSource};
use agentd_unit::{LoadState, Signal, Unit, UnitName};

use super::{Answer, Inbound, access, pages, view};
use crate::perform::properties;
use crate::perform::unit_files::Wish;
use crate::units::Errand;
use crate::world::World;

/// Answers a request, or queues what will lead to its answer.
pub fn handle(inbound: Inbound, manager: &Manager, world: &mut World, events: &mut VecDeque<Event>) {
    let unit = if inbound.request.is_read() { None } else { world.access_of(inbound.peer.pid) };
    if let Err(error) = access::check(&inbound.peer, unit.as_ref(), world.owner, &inbound.request) {
        tracing::warn!(
            pid = inbound.peer.pid,
            uid = inbound.peer.uid,
            "{} denied: {error}",
            inbound.request.method()
        );
        inbound.answer.result::<Empty>(Err(error));
        return;
    }
    match to_be_looked_up(&inbound, manager, world) {
        Some(name) => {
            let known = manager.units().filter(|unit| unit.unit.load != LoadState::NotFound);
            let known = known.map(|unit| unit.unit.name.clone()).collect();
            world.loading.find(&world.config, name, known, inbound);
        }
        None => answer(inbound, manager, world, events),
    }
}

/// Answers a request about units as they are known now, or queues what will lead to its answer.
pub fn answer(inbound: Inbound, manager: &Manager, world: &mut World, events: &mut VecDeque<Event>) {
    if inbound.request.is_read() {
        read(inbound, manager, world);
    } else {
        act(inbound, world, events);
    }
}

/// The unit of a request that no loading has found so far: its file may have come since, or it is an instance that
/// nobody has named yet. Reading files is for those who may act here; others get what is known.
fn to_be_looked_up(inbound: &Inbound, manager: &Manager, world: &World) -> Option<UnitName> {
    if !access::is_owner(&inbound.peer, world.owner) {
        return None;
    }
    let name = UnitName::parse_lenient(inbound.request.unit()?).ok().filter(|name| !name.is_template())?;
    let known = manager.unit(&name).is_some_and(|unit| unit.unit.load != LoadState::NotFound);
    (!known).then_some(name)
}

fn read(inbound: Inbound, manager: &Manager, world: &mut World) {
    let answer = &inbound.answer;
    match &inbound.request {
        Request::GetInfo(_) => answer.result(Ok(InfoReply::of_this_version())),
        Request::GetInterfaceDescription(request) => answer.result(request.answer()),
        Request::ListUnits(request) => match list(manager, world, request) {
            Ok(units) => pages::send(units, inbound.more, answer, |units| ListUnitsReply { units }),
            Err(error) => answer.result::<Empty>(Err(error)),
        },
        Request::ListTimers(_) => {
            let boot = world.boot_time();
            let timers = manager.units().filter_map(|unit| view::timer(&unit, boot)).collect();
            answer.result(Ok(ListTimersReply { timers }))
        }
        Request::ListSockets(_) => {
            answer.result(Ok(ListSocketsReply { sockets: super::triggers::sockets(manager.units()) }))
        }
        Request::ListPaths(_) => {
            answer.result(Ok(ListPathsReply { paths: super::triggers::paths(manager.units()) }))
        }
        Request::ListJobs(_) => {
            answer.result(Ok(ListJobsReply { jobs: manager.jobs().map(|job| view::job(&job)).collect() }))
        }
        Request::ListUnitFiles(request) => {
            super::unit_files::list(&world.unit_files, request, inbound.more, answer)
        }
        Request::GetUnitFileState(request) => {
            answer.result(super::unit_files::get(&world.unit_files, &request.unit))
        }
        Request::AwaitEnds(request) => match world.ends.expect(request, answer) {
            Ok(()) => true,
            Err(error) => answer.result::<Empty>(Err(error)),
        },
        Request::GetStatus(_) => answer.result(Ok(super::status::status(manager, world))),
        Request::Get(request) => {
            super::edges::complete(manager, world, &request.unit);
            answer.result(get(manager, world, request))
        }
        Request::GetProcesses(request) => {
            answer.result(find(manager, &request.unit).map(|unit| super::status::processes(&unit, world)))
        }
        Request::GetFiles(request) => match find(manager, &request.unit) {
            // Reading files is for those who may act here; others get what was read.
            Ok(unit) if !request.running && access::is_owner(&inbound.peer, world.owner) => {
                world.errands.push(Errand::Files(unit.unit.name.clone(), inbound.more, answer.clone()));
                true
            }
            Ok(unit) if has_secret(&unit.unit) && !access::is_owner(&inbound.peer, world.owner) => {
                let message = "its file holds a secret (SetCredential), which only root and the group 'agentd' may read";
                answer.result::<Empty>(Err(CallError::NotPermitted { message: message.into() }))
            }
            Ok(unit) => super::files::send(&unit.unit, inbound.more, answer),
            Err(error) => answer.result::<Empty>(Err(error)),
        },
        Request::GetLogs(request) => match find(manager, &request.unit) {
            Ok(unit) => super::logs::send(&unit, request, inbound.more, answer, world),
            Err(error) => answer.result::<Empty>(Err(error)),
        },
        // The rest acts: `is_read` says so.
        _ => {
            answer.result::<Empty>(Err(CallError::MethodNotFound { method: inbound.request.method().into() }))
        }
    };
}

/// The unit of a name as a person types it.
///
/// # Errors
/// [`CallError::NoSuchUnit`] if it is no name, or nothing of that name is known.
fn find(manager: &Manager, text: &str) -> Result<UnitView, CallError> {
    let unknown = |message: String| CallError::NoSuchUnit { unit: text.to_owned(), message };
    let name = UnitName::parse_lenient(text).map_err(|e| unknown(e.to_string()))?;
    manager.unit(&name).ok_or_else(|| match name.is_template() {
        true => unknown(RequestError::NotFound(name).to_string()),
        false => unknown(format!("Unit {name} could not be found.")),
    })
}

fn get(manager: &Manager, world: &World, request: &UnitRequest) -> Result<GetReply, CallError> {
    let unit = find(manager, &request.unit)?;
    let job = unit.job.and_then(|id| manager.jobs().find(|job| job.id == id));
    let extras = world.extras(&unit);
    let mut properties = view::properties(&unit, job.as_ref(), extras);
    properties.next_restart_timestamp = world.realtime_of(unit.restart_at);
    Ok(GetReply { properties: Box::new(properties) })
}

fn list(manager: &Manager, world: &World, request: &ListUnitsRequest) -> Result<Vec<UnitSummary>, CallError> {
    if !request.properties.iter().all(|name| UnitSummary::PROPERTIES.contains(&name.as_str())) {
        return Err(CallError::InvalidParameter { parameter: "properties".to_owned() });
    }
    let jobs: HashMap<JobId, JobView> = manager.jobs().map(|job| (job.id, job)).collect();
    let wants_memory = request.wants("MemoryCurrent");
    let line = |unit: UnitView| {
        let job = unit.job.and_then(|id| jobs.get(&id));
        let (group, memory) = world.group_and_memory(&unit, wants_memory);
        view::summary(&unit, job, group, memory, world.file_state(&unit.unit.name))
    };
    Ok(manager.units().filter(|unit| wanted(unit, request)).map(line).collect())
}

/// Whether `list` shows a unit: by default what is up, failed, has a job or is not as it should be.
fn wanted(unit: &UnitView, request: &ListUnitsRequest) -> bool {
    let states = [unit.active.as_str(), unit.sub, unit.unit.load.as_str()];
    let in_state = if request.states.is_empty() {
        request.all || unit.active != agentd_engine::ActiveState::Inactive || unit.job.is_some()
    } else {
        request.states.iter().any(|word| states.contains(&word.as_str()))
    };
    in_state && pages::is_named(&unit.unit.name, &request.types, &request.patterns)
}

fn act(inbound: Inbound, world: &mut World, events: &mut VecDeque<Event>) {
    let answer = inbound.answer;
    let peer = &inbound.peer;
    tracing::debug!(pid = peer.pid, uid = peer.uid, "{}", inbound.request.method());
    let mut request = |wait: bool, request: Result<EngineRequest, CallError>, world: &mut World| match request
    {
        Ok(request) => {
            let id = world.replies.expect(answer.clone(), wait);
            events.push_back(Event::Request { id, request });
        }
        Err(error) => {
            answer.result::<Empty>(Err(error));
        }
    };
    match &inbound.request {
        Request::StartUnit(r) => request(r.wait, job(JobKind::Start, r), world),
        Request::StopUnit(r) => request(r.wait, job(JobKind::Stop, r), world),
        Request::RestartUnit(r) => request(r.wait, job(JobKind::Restart, r), world),
        Request::TryRestartUnit(r) => request(r.wait, job(JobKind::TryRestart, r), world),
        Request::ReloadUnit(r) => request(r.wait, job(JobKind::Reload, r), world),
        Request::ReloadOrRestartUnit(r) => request(r.wait, job(JobKind::ReloadOrRestart, r), world),
        Request::KillUnit(r) => request(true, kill(r), world),
        Request::FreezeUnit(r) => request(true, freeze(r, true, world), world),
        Request::ThawUnit(r) => request(true, freeze(r, false, world), world),
        Request::ResetFailed(r) => {
            let unit = r.unit.as_deref().map(name).transpose();
            request(true, unit.map(|unit| EngineRequest::ResetFailed { unit }), world);
        }
        Request::CancelJob(r) => request(true, Ok(EngineRequest::Cancel { job: JobId(r.job) }), world),
        Request::Shutdown(r) => {
            if let Err(error) = shutdown(r, world) {
                answer.result::<Empty>(Err(error));
                return;
            }
            let kind = shutdown_kind(r);
            let id = world.replies.unattended();
            events.push_back(Event::Request { id, request: EngineRequest::Shutdown { kind } });
            answer.result(Ok(Empty {}));
        }
        Request::Reload(_) => world.errands.push(Errand::Load(Some(answer))),
        Request::Reexecute(_) => {
            world.sockets.hold();
            world.paths.hold(&world.sockets.epoll);
            world.reexec.push(answer);
        }
        Request::PlanReload(_) => world.errands.push(Errand::Plan(answer)),
        Request::EnableUnitFiles(r) => change(Wish::Enable, r, answer, world),
        Request::DisableUnitFiles(r) => change(Wish::Disable, r, answer, world),
        Request::MaskUnitFiles(r) => change(Wish::Mask, r, answer, world),
        Request::UnmaskUnitFiles(r) => change(Wish::Unmask, r, answer, world),
        Request::SetProperties(r) => match properties::read(&r.unit, &r.properties, r.runtime) {
            Ok(wanted) => world.errands.push(Errand::Set(wanted, answer)),
            Err(error) => {
                answer.result::<Empty>(Err(error));
            }
        },
        _ => {
            answer
                .result::<Empty>(Err(CallError::MethodNotFound { method: inbound.request.method().into() }));
        }
    }
}

fn change(wish: Wish, request: &UnitFilesRequest, answer: Answer, world: &mut World) {
    match super::unit_files::change(wish, request) {
        Ok(change) => world.errands.push(Errand::Change(change, answer)),
        Err(error) => {
            answer.result::<Empty>(Err(error));
        }
    }
}

fn name(text: &str) -> Result<UnitName, CallError> {
    UnitName::parse_lenient(text)
        .map_err(|e| CallError::NoSuchUnit { unit: text.to_owned(), message: e.to_string() })
}

fn job(kind: JobKind, request: &JobRequest) -> Result<EngineRequest, CallError> {
    let mode = match request.mode {
        agentd_protocol::JobMode::Replace => JobMode::Replace,
        agentd_protocol::JobMode::Fail => JobMode::Fail,
        agentd_protocol::JobMode::Isolate => JobMode::Isolate,
        agentd_protocol::JobMode::IgnoreDependencies => JobMode::IgnoreDependencies,
        agentd_protocol::JobMode::IgnoreRequirements => JobMode::IgnoreRequirements,
        agentd_protocol::JobMode::ReplaceIrreversibly => JobMode::ReplaceIrreversibly,
    };
    Ok(EngineRequest::Job { kind, unit: name(&request.unit)?, mode })
}

fn kill(request: &KillRequest) -> Result<EngineRequest, CallError> {
    let whom = match request.whom {
        agentd_protocol::KillWhom::All => KillWhom::All,
        agentd_protocol::KillWhom::Main => KillWhom::Main,
        agentd_protocol::KillWhom::Control => KillWhom::Control,
    };
    let signal = Signal::from_number(request.signal)
        .ok_or_else(|| CallError::InvalidParameter { parameter: "signal".to_owned() })?;
    Ok(EngineRequest::Kill { unit: name(&request.unit)?, whom, signal })
}

/// Processes stand still by their cgroup; a signal that stops them would be theirs to see, and anyone's to undo.
fn freeze(request: &FreezeRequest, frozen: bool, world: &World) -> Result<EngineRequest, CallError> {
    let unit = name(&request.unit)?;
    if world.cgroups.is_some() {
        return Ok(EngineRequest::Freeze { unit, frozen });
    }
    let message =
        "this manager has no cgroups, and cannot freeze without; 'agentctl status' says why".to_owned();
    Err(CallError::NotApplicable { unit: unit.to_string(), message })
}

const fn shutdown_kind(request: &ShutdownRequest) -> ShutdownKind {
    match request.kind {
        agentd_protocol::ShutdownKind::Poweroff => ShutdownKind::Poweroff,
        agentd_protocol::ShutdownKind::Reboot => ShutdownKind::Reboot,
        agentd_protocol::ShutdownKind::Halt => ShutdownKind::Halt,
        agentd_protocol::ShutdownKind::Exit => ShutdownKind::Exit(match request.exit_code {
            Some(code) => code,
            None => 0,
        }),
    }
}

/// Only a manager that owns the machine or the container may end it; the others can only exit.
fn shutdown(request: &ShutdownRequest, world: &World) -> Result<(), CallError> {
    let exits = request.kind == agentd_protocol::ShutdownKind::Exit;
    if exits || world.config.mode.is_pid1() {
        return Ok(());
    }
    let message = format!(
        "this manager is no init and cannot {} the machine; 'agentctl exit' ends the manager",
        request.kind.as_str()
    );
    Err(CallError::NotApplicable { unit: String::new(), message })
}

/// Whether the unit's own file has a secret in it.
fn has_secret(unit: &Unit) -> bool {
    let text = |credential: &Credential| matches!(credential.source, CredentialSource::Text(_));
    unit.as_service().is_some_and(|body| body.service.credentials.iter().any(text))
}
