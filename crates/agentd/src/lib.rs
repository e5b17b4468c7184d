//! The shell round the engine: it performs effects, watches the world and serves the control socket.
#![forbid(unsafe_code)]

pub mod journal;
pub mod log;
