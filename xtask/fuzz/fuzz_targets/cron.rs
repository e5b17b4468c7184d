// No `forbid(unsafe_code)` here: the entry point that the driver calls has a name that is not Rust's.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::unit::cron(data));
