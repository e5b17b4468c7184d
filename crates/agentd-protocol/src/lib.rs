//! The control interface of agentd: varlink's wire, typed requests and replies, and sd_notify(3) datagrams.
//!
//! Pure: bytes in, values out, and back. No socket, no clock, no knowledge of the engine. The same types serve the
//! manager, `agentctl` and every test, so what one writes the other reads.
//!
//! - [`frame`][]: JSON texts that end in NUL, calls of at most [`MAX_FRAME`] bytes, answers of [`MAX_ANSWER`].
//! - [`message`][]: [`Call`] and [`Reply`] as <https://varlink.org/Method-Call> has them.
//! - [`request`][]: every method as a typed [`Request`]; [`manager`], [`mod@unit`] and [`unit_files`] hold what
//!   goes in and comes back.
//! - [`error`][]: every error as a typed [`CallError`].
//! - [`introspect`][]: `org.varlink.service`.
//! - [`notify`][]: what a service tells its manager.
#![forbid(unsafe_code)]

pub mod error;
pub mod frame;
pub mod introspect;
pub mod manager;
pub mod message;
pub mod notify;
pub mod object;
pub mod request;
pub mod text;
pub mod unit;
pub mod unit_files;
pub mod words;

pub use error::CallError;
pub use frame::{FrameError, FrameReader, MAX_ANSWER, MAX_FRAME};
pub use message::{Call, MessageError, Reply};
pub use notify::{NotifyError, NotifyMessage};
pub use object::Object;
pub use request::{Method, Request, method};
pub use unit::UnitProperties;
pub use words::{ActiveState, JobMode, JobResult, KillWhom, LoadState, ShutdownKind, TrustState};

/// What every reply's value is: the bound that generic code over replies needs.
pub use serde::Serialize;
