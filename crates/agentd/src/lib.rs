//! The shell round the engine: it performs effects, watches the world and serves the control socket.
#![forbid(unsafe_code)]

pub mod boot;
pub mod config;
pub mod control;
pub mod daemon;
pub mod journal;
pub mod log;
pub mod manager_file;
pub mod options;
pub mod perform;
pub mod takeover;
pub mod units;
pub mod watch;
pub mod world;
