//! The init system for AI agents: main loop, performing effects, watching the world.
#![forbid(unsafe_code)]

fn main() {}
