//! `cargo xtask VERB`: see `cargo xtask help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use xtask::cli;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match cli::parse(&words).and_then(cli::run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {}", error.chain());
            ExitCode::FAILURE
        }
    }
}
