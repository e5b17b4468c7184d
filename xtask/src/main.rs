//! The project's own commands: test, check, arrows, image, vm, demo, bench.
#![forbid(unsafe_code)]

fn main() {}
