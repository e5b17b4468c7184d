//! The pure engine: Manager, Unit, Job, Transaction and the state machines. No clock, no I/O.
#![forbid(unsafe_code)]
