//! The init system for AI agents.
#![forbid(unsafe_code)]

fn main() {}
