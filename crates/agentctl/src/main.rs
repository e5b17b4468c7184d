//! The command line of agentd.
#![forbid(unsafe_code)]

fn main() {}
