//! How errors reach a person.

use std::error::Error;

use agentd_protocol::CallError;

use crate::client::ClientError;
use crate::exit::Failure;
use crate::print::one_line;

/// An error with its causes, on one line: what, because of what.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    one_line(&text).into_owned()
}

/// Tells about one unit of several, so that the others go on.
pub(crate) fn complain(what: &str, error: &dyn Error) {
    eprintln!("{what}: {}", with_causes(error));
}

/// An error that concerns one unit: the connection itself being gone concerns all and ends the verb.
pub(crate) fn only_this_unit(error: ClientError) -> Result<CallError, Failure> {
    match error {
        ClientError::Call(error) => Ok(error),
        other => Err(Failure::Client(other)),
    }
}
