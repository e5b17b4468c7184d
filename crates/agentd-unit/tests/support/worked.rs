//! The time that a test itself takes.

use std::time::{Duration, Instant};

/// The time that this thread has had a processor, proc(5) `schedstat`: how busy the machine is does not count. Where the
/// kernel keeps no account it is the time of day.
pub(crate) fn worked(begin: Instant) -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = account.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}
