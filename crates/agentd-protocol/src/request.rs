//! Every method as one typed request.
//!
//! The table at the end of this file is the only list of methods: [`Request`], the [`method`] types that clients call
//! with, and the tests against the interface descriptions all come from it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::CallError;
use crate::introspect::{DescriptionReply, DescriptionRequest, INTERFACES, InfoReply};
use crate::manager::{
    AwaitEndsReply, AwaitEndsRequest, CancelJobRequest, Empty, FreezeRequest, JobReply, JobRequest,
    KillRequest, ListJobsReply, ListPathsReply, ListSocketsReply, ListTimersReply, ListUnitsReply,
    ListUnitsRequest, ManagerStatus, PlanReply, ReloadReply, ResetFailedRequest, ShutdownRequest,
};
use crate::message::{Call, MessageError, to_object};
use crate::unit::{
    GetFilesReply, GetFilesRequest, GetLogsReply, GetLogsRequest, GetProcessesReply, GetReply, UnitRequest,
};
use crate::unit_files::{
    ListUnitFilesReply, ListUnitFilesRequest, SetPropertiesRequest, UnitFileStateReply, UnitFilesReply,
    UnitFilesRequest,
};

/// One method: its name and the types on both sides.
pub trait Method {
    /// The full name: `io.agentd.Manager.StartUnit`.
    const NAME: &'static str;
    /// What goes in.
    type Parameters: Serialize + DeserializeOwned;
    /// What comes back.
    type Reply: Serialize + DeserializeOwned;

    /// The call of this method.
    ///
    /// # Errors
    /// If the parameters do not become a JSON object, which all of this crate do.
    fn call(parameters: &Self::Parameters) -> Result<Call, MessageError> {
        let method = Self::NAME.to_owned();
        Ok(Call { method, parameters: to_object(parameters)?, oneway: false, more: false, upgrade: false })
    }
}

/// Checks parameters against their type, and names the one that is to blame.
fn decode<T: DeserializeOwned>(parameters: Map<String, Value>) -> Result<T, CallError> {
    serde_json::from_value(Value::Object(parameters.clone()))
        .map_err(|error| CallError::InvalidParameter { parameter: culprit::<T>(&parameters, &error) })
}

/// The parameter that an error is about: named in it, or the one without which the error is another.
fn culprit<T: DeserializeOwned>(parameters: &Map<String, Value>, error: &serde_json::Error) -> String {
    /// No method takes more; beyond it, looking for the one would only be work for whoever asks.
    const MOST: usize = 16;
    let text = error.to_string();
    if let Some(name) = text.strip_prefix("missing field `").or_else(|| text.strip_prefix("unknown field `"))
    {
        return name.split('`').next().unwrap_or_default().to_owned();
    }
    let without = |name: &String| {
        let mut rest = parameters.clone();
        rest.remove(name);
        serde_json::from_value::<T>(Value::Object(rest)).err().is_none_or(|other| other.to_string() != text)
    };
    let few = parameters.len() <= MOST;
    parameters.keys().find(|name| few && without(name)).cloned().unwrap_or_default()
}

macro_rules! methods {
    ($($(#[$doc:meta])* $interface:literal $name:ident ($parameters:ty) -> $reply:ty;)+) => {
        /// Everything that can be asked, typed.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request {
            $($(#[$doc])* $name($parameters),)+
        }

        /// One type for each method, for clients: `client.call::<method::StartUnit>(…)`.
        pub mod method {
            #[allow(unused_imports, reason = "each table row names its own types")]
            use super::*;

            $($(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Method for $name {
                const NAME: &'static str = concat!($interface, ".", stringify!($name));
                type Parameters = $parameters;
                type Reply = $reply;
            })+
        }

        impl Request {
            /// The full names of all methods.
            pub const METHODS: &'static [&'static str] = &[$(<method::$name as Method>::NAME),+];

            /// Reads a call.
            ///
            /// # Errors
            /// `InterfaceNotFound`, `MethodNotFound`, `InvalidParameter`.
            pub fn from_call(call: Call) -> Result<Self, CallError> {
                match call.method.as_str() {
                    $(<method::$name as Method>::NAME => Ok(Self::$name(decode(call.parameters)?)),)+
                    _ if INTERFACES.iter().any(|known| known.name == call.interface()) => {
                        Err(CallError::MethodNotFound { method: call.method })
                    }
                    _ => Err(CallError::InterfaceNotFound { interface: call.interface().to_owned() }),
                }
            }

            /// The full name of the method.
            #[must_use]
            pub const fn method(&self) -> &'static str {
                match self { $(Self::$name(_) => <method::$name as Method>::NAME,)+ }
            }

            /// Reads the parameters of a method, prints them, and the same for its reply: for the test that the
            /// interface descriptions and these types are of one mind.
            ///
            /// # Errors
            /// If one of the two is not of the method's type, or the method is not known.
            pub fn round_trip(
                method: &str,
                parameters: Value,
                reply: Value,
            ) -> Result<(Value, Value), serde_json::Error> {
                match method {
                    $(<method::$name as Method>::NAME => Ok((
                        serde_json::to_value(serde_json::from_value::<$parameters>(parameters)?)?,
                        serde_json::to_value(serde_json::from_value::<$reply>(reply)?)?,
                    )),)+
                    _ => Err(serde::de::Error::custom(format_args!("there is no method {method}"))),
                }
            }
        }
    };
}

methods! {
    /// Who serves here, and which interfaces it has.
    "org.varlink.service" GetInfo(Empty) -> InfoReply;
    /// The description of one interface.
    "org.varlink.service" GetInterfaceDescription(DescriptionRequest) -> DescriptionReply;

    /// Brings a unit up.
    "io.agentd.Manager" StartUnit(JobRequest) -> JobReply;
    /// Takes a unit down.
    "io.agentd.Manager" StopUnit(JobRequest) -> JobReply;
    /// Down and up again; up if it is down.
    "io.agentd.Manager" RestartUnit(JobRequest) -> JobReply;
    /// Down and up again if it is up.
    "io.agentd.Manager" TryRestartUnit(JobRequest) -> JobReply;
    /// Has a unit read its configuration again.
    "io.agentd.Manager" ReloadUnit(JobRequest) -> JobReply;
    /// Reload if it can, else restart.
    "io.agentd.Manager" ReloadOrRestartUnit(JobRequest) -> JobReply;
    /// Sends a signal to processes of a unit.
    "io.agentd.Manager" KillUnit(KillRequest) -> Empty;
    /// Stops the processes of a unit where they stand.
    "io.agentd.Manager" FreezeUnit(FreezeRequest) -> Empty;
    /// Lets the processes of a frozen unit go on.
    "io.agentd.Manager" ThawUnit(FreezeRequest) -> Empty;
    /// Forgets failures, start limits and restart counts.
    "io.agentd.Manager" ResetFailed(ResetFailedRequest) -> Empty;
    /// Lists units; a stream of pages.
    "io.agentd.Manager" ListUnits(ListUnitsRequest) -> ListUnitsReply;
    /// Lists timers.
    "io.agentd.Manager" ListTimers(Empty) -> ListTimersReply;
    /// Lists what sockets listen on.
    "io.agentd.Manager" ListSockets(Empty) -> ListSocketsReply;
    /// Lists what path units wait for.
    "io.agentd.Manager" ListPaths(Empty) -> ListPathsReply;
    /// Lists jobs.
    "io.agentd.Manager" ListJobs(Empty) -> ListJobsReply;
    /// Calls a job off.
    "io.agentd.Manager" CancelJob(CancelJobRequest) -> Empty;
    /// Reads all units again (`daemon-reload`).
    "io.agentd.Manager" Reload(Empty) -> ReloadReply;
    /// Executes the manager's program again (`daemon-reexec`) as soon as no unit has a job. Answered just before.
    "io.agentd.Manager" Reexecute(Empty) -> Empty;
    /// What a reload and `apply` would change.
    "io.agentd.Manager" PlanReload(Empty) -> PlanReply;
    /// Stops everything, then ends the machine or the manager. Answered as soon as it has begun.
    "io.agentd.Manager" Shutdown(ShutdownRequest) -> Empty;
    /// Lists unit files; a stream of pages.
    "io.agentd.Manager" ListUnitFiles(ListUnitFilesRequest) -> ListUnitFilesReply;
    /// Whether a unit is part of what boots.
    "io.agentd.Manager" GetUnitFileState(UnitRequest) -> UnitFileStateReply;
    /// Makes units part of what boots.
    "io.agentd.Manager" EnableUnitFiles(UnitFilesRequest) -> UnitFilesReply;
    /// Takes units out of what boots.
    "io.agentd.Manager" DisableUnitFiles(UnitFilesRequest) -> UnitFilesReply;
    /// Keeps units from ever starting.
    "io.agentd.Manager" MaskUnitFiles(UnitFilesRequest) -> UnitFilesReply;
    /// Takes that back.
    "io.agentd.Manager" UnmaskUnitFiles(UnitFilesRequest) -> UnitFilesReply;
    /// Sets limits of a unit, now and for later.
    "io.agentd.Manager" SetProperties(SetPropertiesRequest) -> UnitFilesReply;
    /// Waits until units have ended.
    "io.agentd.Manager" AwaitEnds(AwaitEndsRequest) -> AwaitEndsReply;
    /// The manager as a whole.
    "io.agentd.Manager" GetStatus(Empty) -> ManagerStatus;

    /// All properties of a unit.
    "io.agentd.Unit" Get(UnitRequest) -> GetReply;
    /// The processes of a unit.
    "io.agentd.Unit" GetProcesses(UnitRequest) -> GetProcessesReply;
    /// The files that define a unit; a stream of pages.
    "io.agentd.Unit" GetFiles(GetFilesRequest) -> GetFilesReply;
    /// The lines of a unit; a stream of pages.
    "io.agentd.Unit" GetLogs(GetLogsRequest) -> GetLogsReply;
}

impl Request {
    /// Whether the method only reads, so that anyone may call it.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        match self {
            Self::GetInfo(_)
            | Self::GetInterfaceDescription(_)
            | Self::ListUnits(_)
            | Self::ListTimers(_)
            | Self::ListSockets(_)
            | Self::ListPaths(_)
            | Self::ListJobs(_)
            | Self::ListUnitFiles(_)
            | Self::GetUnitFileState(_)
            | Self::AwaitEnds(_)
            | Self::GetStatus(_)
            | Self::Get(_)
            | Self::GetProcesses(_)
            | Self::GetFiles(_)
            | Self::GetLogs(_) => true,
            Self::StartUnit(_)
            | Self::StopUnit(_)
            | Self::RestartUnit(_)
            | Self::TryRestartUnit(_)
            | Self::ReloadUnit(_)
            | Self::ReloadOrRestartUnit(_)
            | Self::KillUnit(_)
            | Self::FreezeUnit(_)
            | Self::ThawUnit(_)
            | Self::ResetFailed(_)
            | Self::CancelJob(_)
            | Self::Reload(_)
            | Self::Reexecute(_)
            // It changes nothing, and yet it reads every file.
            | Self::PlanReload(_)
            | Self::EnableUnitFiles(_)
            | Self::DisableUnitFiles(_)
            | Self::MaskUnitFiles(_)
            | Self::UnmaskUnitFiles(_)
            | Self::SetProperties(_)
            | Self::Shutdown(_) => false,
        }
    }

    /// The one unit that the call is about; of `Request`s that act, those without one are about the whole.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::StartUnit(job)
            | Self::StopUnit(job)
            | Self::RestartUnit(job)
            | Self::TryRestartUnit(job)
            | Self::ReloadUnit(job)
            | Self::ReloadOrRestartUnit(job) => Some(&job.unit),
            Self::KillUnit(kill) => Some(&kill.unit),
            Self::SetProperties(set) => Some(&set.unit),
            Self::FreezeUnit(freeze) | Self::ThawUnit(freeze) => Some(&freeze.unit),
            Self::ResetFailed(reset) => reset.unit.as_deref(),
            Self::Get(about) | Self::GetProcesses(about) | Self::GetUnitFileState(about) => Some(&about.unit),
            Self::GetFiles(files) => Some(&files.unit),
            // What boots is the machine's matter, even where one unit is named.
            Self::GetLogs(logs) => Some(&logs.unit),
            Self::GetInfo(_)
            | Self::GetInterfaceDescription(_)
            | Self::ListUnits(_)
            | Self::ListTimers(_)
            | Self::ListSockets(_)
            | Self::ListPaths(_)
            | Self::ListJobs(_)
            | Self::ListUnitFiles(_)
            | Self::PlanReload(_)
            | Self::EnableUnitFiles(_)
            | Self::DisableUnitFiles(_)
            | Self::MaskUnitFiles(_)
            | Self::UnmaskUnitFiles(_)
            | Self::CancelJob(_)
            | Self::Reload(_)
            | Self::Reexecute(_)
            | Self::Shutdown(_)
            | Self::AwaitEnds(_)
            | Self::GetStatus(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::JobMode;

    fn read(method: &str, parameters: Value) -> Result<Request, CallError> {
        let frame = serde_json::to_vec(&serde_json::json!({ "method": method, "parameters": parameters }));
        Request::from_call(Call::parse(&frame.unwrap()).unwrap())
    }

    #[test]
    fn what_is_left_out_of_a_call_has_its_default() {
        let start = read("io.agentd.Manager.StartUnit", serde_json::json!({"unit": "a.service"})).unwrap();
        let expected = JobRequest { unit: "a.service".into(), mode: JobMode::Replace, wait: true };
        assert_eq!(start, Request::StartUnit(expected));
        assert_eq!((start.is_read(), start.unit()), (false, Some("a.service")));
    }

    #[test]
    fn the_properties_of_a_list_are_those_that_its_lines_have() {
        let line = serde_json::to_value(crate::manager::UnitSummary::default()).unwrap();
        let mut names = crate::manager::UnitSummary::PROPERTIES;
        names.sort_unstable();
        let mut sent: Vec<&String> = line.as_object().unwrap().keys().collect();
        sent.sort_unstable();
        assert_eq!(sent, names.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_bad_parameter_is_named() {
        for (case, parameters, parameter) in [
            ("missing", serde_json::json!({}), "unit"),
            ("unknown", serde_json::json!({"unit": "a", "now": true}), "now"),
            ("of another type", serde_json::json!({"unit": 7}), "unit"),
            ("of another type beside good ones", serde_json::json!({"unit": "a", "wait": "x"}), "wait"),
            ("none of the words", serde_json::json!({"unit": "a", "mode": "hard"}), "mode"),
        ] {
            let error = read("io.agentd.Manager.StartUnit", parameters).unwrap_err();
            assert_eq!(error, CallError::InvalidParameter { parameter: parameter.into() }, "{case}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for (method, parameters) in [
            ("io.agentd.Manager.CancelJob", serde_json::json!({"job": -1})),
            ("io.agentd.Manager.CancelJob", serde_json::json!({"job": 4_294_967_296_u64})),
            ("io.agentd.Manager.CancelJob", serde_json::json!({"job": 1.5})),
            ("io.agentd.Manager.Shutdown", serde_json::json!({"kind": "exit", "exit_code": 256})),
        ] {
            assert!(matches!(read(method, parameters), Err(CallError::InvalidParameter { .. })), "{method}");
        }
    }

    #[test]
    fn an_unknown_interface_is_told_from_an_unknown_method() {
        for (method, error) in [
            ("io.agentd.Manager.Fly", CallError::MethodNotFound { method: "io.agentd.Manager.Fly".into() }),
            ("io.agentd.Other.Get", CallError::InterfaceNotFound { interface: "io.agentd.Other".into() }),
            ("Get", CallError::InterfaceNotFound { interface: String::new() }),
            ("", CallError::InterfaceNotFound { interface: String::new() }),
        ] {
            assert_eq!(read(method, Value::Null).unwrap_err(), error, "{method}");
        }
    }
}
