//! The project's own commands, run as `cargo xtask VERB`.
//!
//! xtask depends on none of the project's crates: what it tests, it tests as built programs.
#![forbid(unsafe_code)]

pub mod arrows;
pub mod bench;
pub mod check;
pub mod cli;
pub mod corpus;
pub mod demo;
pub mod error;
pub mod fuzz;
pub mod image;
pub mod report;
pub mod run;
pub mod scenarios;
pub mod scratch;
pub mod sim;
pub mod tools;
pub mod vm;
