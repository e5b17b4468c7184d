//! agentctl as a process: before a manager that follows a script, and without one.
#![expect(clippy::expect_used, reason = "what the tests stand on must hold, or they fail")]

mod agreement;
mod analyze;
mod manager;
mod security;
mod signing;
mod verbs;
