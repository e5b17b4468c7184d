//! The init system for AI agents. As PID 1 it needs no option; `agentd --help` lists the others.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use agentd::boot;
use agentd::options::{self, Invocation, USAGE};
use agentd::takeover::reexec::Inherited;

fn main() -> ExitCode {
    agentd_linux::memory::keep_little();
    // Before all else: a stop that is asked for while we start is kept for the loop (and PID 1 has no default action).
    if let Err(error) = boot::hold_signals() {
        eprintln!("agentd: signals cannot be blocked: {error}");
        return ExitCode::FAILURE;
    }
    let inherited = Inherited::take();
    let pid1 = agentd_linux::reap::is_pid1();
    match options::parse(std::env::args_os().skip(1), pid1) {
        Ok(Invocation::Run(options)) => boot::run(*options, pid1, inherited),
        Ok(Invocation::Version) => {
            println!("agentd {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(Invocation::Help) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("agentd: {error}");
            ExitCode::from(2)
        }
    }
}
