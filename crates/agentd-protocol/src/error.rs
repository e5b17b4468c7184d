//! Every error that a call can come back with.
//!
//! The standard ones are `org.varlink.service`'s; those of agentd's own carry a sentence for people in `message`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::message::Reply;
use crate::object::Object;

/// Why a call was not carried out. `Display` is the sentence for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", content = "parameters")]
pub enum CallError {
    /// No such interface here.
    #[error("the manager has no interface {interface}")]
    #[serde(rename = "org.varlink.service.InterfaceNotFound")]
    InterfaceNotFound {
        /// What was asked for.
        interface: String,
    },
    /// No such method in the interface.
    #[error("the manager has no method {method}")]
    #[serde(rename = "org.varlink.service.MethodNotFound")]
    MethodNotFound {
        /// What was asked for.
        method: String,
    },
    /// A parameter is missing, unknown, of another type or out of range.
    #[error("the manager does not take the parameter '{parameter}' as it was sent")]
    #[serde(rename = "org.varlink.service.InvalidParameter")]
    InvalidParameter {
        /// Its name; empty where no single one is to blame.
        parameter: String,
    },
    /// The answer is a stream, and the call did not say `more`.
    #[error("the method answers with a stream; call it with 'more'")]
    #[serde(rename = "org.varlink.service.ExpectedMore")]
    ExpectedMore {},
    /// The peer may read but not do this.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.NotPermitted")]
    NotPermitted {
        /// Who may, and what the peer is.
        message: String,
    },
    /// No file defines the unit, and nothing names it.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.NoSuchUnit")]
    NoSuchUnit {
        /// Its name.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// The unit, or one that it requires, did not load.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.LoadFailed")]
    LoadFailed {
        /// The unit that was asked for.
        unit: String,
        /// The reason of loading, with file, line and column.
        message: String,
    },
    /// The unit, or one that it requires, is masked.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.UnitMasked")]
    UnitMasked {
        /// The unit.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// The transaction cannot be built: cycle, contradiction, a job in the way.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.TransactionFailed")]
    TransactionFailed {
        /// The unit that was asked for.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// `RefuseManualStart` or `RefuseManualStop`.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.OnlyByDependency")]
    OnlyByDependency {
        /// The unit.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// To isolate a unit stops nearly everything else, and this one has no `AllowIsolate`.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.NoIsolation")]
    NoIsolation {
        /// The unit.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// The unit cannot do that: reload without ExecReload, start of a template.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.NotApplicable")]
    NotApplicable {
        /// The unit.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// There is no process to send a signal to.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.NoSuchProcess")]
    NoSuchProcess {
        /// The unit.
        unit: String,
        /// The sentence.
        message: String,
    },
    /// There is no such job; it may have ended.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.NoSuchJob")]
    NoSuchJob {
        /// Its number.
        job: u32,
        /// The sentence.
        message: String,
    },
    /// Nothing new is begun any more.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.ShuttingDown")]
    ShuttingDown {
        /// The sentence.
        message: String,
    },
    /// More clients or more pending calls than the manager takes at once.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.Busy")]
    Busy {
        /// The sentence, with the bound.
        message: String,
    },
    /// The manager failed at something that is not the caller's doing.
    #[error("{message}")]
    #[serde(rename = "io.agentd.Manager.Failed")]
    Failed {
        /// What, on what, and the cause.
        message: String,
    },
    /// The peer's answer is not of the type that the interface promises. Never sent.
    #[error(
        "the manager's answer is not as its interface says: {message}; are agentd and agentctl of one version?"
    )]
    #[serde(skip)]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// An error of a name that is not known here. Never sent.
    #[error("the manager answered {name} {parameters}")]
    #[serde(skip)]
    Other {
        /// The full name.
        name: String,
        /// Its parameters as JSON text.
        parameters: String,
    },
}

impl CallError {
    /// The typed error of an error reply; one that is not known becomes [`CallError::Other`].
    #[must_use]
    pub fn from_wire(name: String, parameters: Map<String, Value>) -> Self {
        let wire = json!({ "error": name, "parameters": parameters });
        match serde_json::from_value(wire) {
            Ok(error) => error,
            Err(_) => Self::Other { name, parameters: Value::Object(parameters).to_string() },
        }
    }

    /// The reply that carries it. What is never sent goes out as [`CallError::Failed`].
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        let as_sent = match self {
            Self::Malformed { .. } | Self::Other { .. } => &Self::Failed { message: self.to_string() },
            sent => sent,
        };
        let wire = serde_json::to_value(as_sent).unwrap_or_default();
        Reply {
            error: wire.get("error").and_then(Value::as_str).map(str::to_owned),
            parameters: wire.get("parameters").and_then(|it| Object::of(it).ok()).unwrap_or_default(),
            continues: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn every_error_comes_back_as_it_was_sent() {
        let (unit, message) = (text("a.service"), text("Unit a.service not found."));
        for error in [
            CallError::InterfaceNotFound { interface: text("x.y") },
            CallError::MethodNotFound { method: text("x.y.Z") },
            CallError::InvalidParameter { parameter: text("mode") },
            CallError::ExpectedMore {},
            CallError::NotPermitted { message: message.clone() },
            CallError::NoSuchUnit { unit: unit.clone(), message: message.clone() },
            CallError::LoadFailed { unit: unit.clone(), message: message.clone() },
            CallError::UnitMasked { unit: unit.clone(), message: message.clone() },
            CallError::TransactionFailed { unit: unit.clone(), message: message.clone() },
            CallError::OnlyByDependency { unit: unit.clone(), message: message.clone() },
            CallError::NoIsolation { unit: unit.clone(), message: message.clone() },
            CallError::NotApplicable { unit: unit.clone(), message: message.clone() },
            CallError::NoSuchProcess { unit, message: message.clone() },
            CallError::NoSuchJob { job: 7, message: message.clone() },
            CallError::ShuttingDown { message: message.clone() },
            CallError::Busy { message: message.clone() },
            CallError::Failed { message },
        ] {
            let frame = error.to_reply().to_frame().unwrap();
            let back = Reply::parse(&frame[..frame.len() - 1]).unwrap();
            assert_eq!(back.into_result::<Value>(), Err(error));
        }
    }

    #[test]
    fn an_error_of_a_later_version_keeps_its_name_and_parameters() {
        let reply = Reply::parse(br#"{"error":"io.agentd.Manager.New","parameters":{"a":1}}"#).unwrap();
        let error = reply.into_result::<Value>().unwrap_err();
        assert_eq!(error.to_string(), r#"the manager answered io.agentd.Manager.New {"a":1}"#);
    }

    #[test]
    fn an_error_without_parameters_may_leave_them_out() {
        let reply = Reply::parse(br#"{"error":"org.varlink.service.ExpectedMore"}"#).unwrap();
        assert_eq!(reply.into_result::<Value>(), Err(CallError::ExpectedMore {}));
    }
}
