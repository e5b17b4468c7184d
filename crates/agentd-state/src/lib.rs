//! Durable files: timer stamps, generations, atomic and checksummed.
#![forbid(unsafe_code)]
