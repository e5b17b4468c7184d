//! One parser per kind of value. Each takes text, knows no file format, and says what is wrong and what to write
//! instead; the same parser serves checking, applying and the command line.

pub mod address;
pub mod boolean;
pub mod capability;
pub mod command;
pub mod environment;
pub mod exit_status;
pub mod limit;
pub mod memory_kinds;
pub mod numbers;
pub mod open_file;
pub mod path;
pub mod principal;
pub mod rlimit;
pub mod span;
pub mod stream;
mod syscall_names;
pub mod syscalls;
pub mod words;

use crate::diagnostic::quote;

/// Why a text is no value of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// What is wrong.
    pub why: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Refused {
    /// A refusal without advice.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), help: None }
    }

    /// A refusal with advice.
    #[must_use]
    pub fn with_help(why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { why: why.into(), help: Some(help.into()) }
    }

    /// `'text' why`, with advice.
    #[must_use]
    pub fn of(text: &str, why: &str, help: &str) -> Self {
        Self::with_help(format!("{} {why}", quote(text)), help)
    }
}
