//! What must hold for any bytes at all, one function for each reader. The same files are part of the ordinary tests of
//! the crates that they test, where they run over the inputs in `corpus/`.
#![forbid(unsafe_code)]

pub mod mutate;
pub mod protocol;
pub mod unit;
