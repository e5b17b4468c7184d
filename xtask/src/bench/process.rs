//! What the kernel tells of a process: proc_pid_stat(5) and its neighbours.

use std::fs;
use std::time::Duration;

use crate::error::{During, Error, Result};
use crate::run;

/// The CPU time of all threads of a process that live, user and system.
///
/// # Errors
/// It is gone, or the kernel keeps no schedstat.
pub fn cpu(pid: u32) -> Result<Duration> {
    let nanoseconds = per_thread(pid, "schedstat", |text| text.split(' ').next()?.parse().ok())?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// How often all threads of a process went to sleep or were made to pause: every wake-up is one of these.
///
/// # Errors
/// It is gone.
pub fn switches(pid: u32) -> Result<u64> {
    per_thread(pid, "status", |text| {
        let counts = text.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        Some(counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum())
    })
}

fn per_thread(pid: u32, file: &str, read: impl Fn(&str) -> Option<u64>) -> Result<u64> {
    let folder = format!("/proc/{pid}/task");
    let mut sum = 0;
    for thread in fs::read_dir(&folder).during(|| format!("cannot read {folder}"))? {
        let path = thread.during(|| format!("cannot read {folder}"))?.path().join(file);
        let text = fs::read_to_string(&path).during(|| format!("cannot read {}", path.display()))?;
        sum += read(&text)
            .ok_or_else(|| Error::new(format!("{} is not as expected: {text}", path.display())))?;
    }
    Ok(sum)
}

/// A field of `/proc/PID/smaps_rollup`, such as `Rss`, in bytes.
///
/// # Errors
/// The process is gone, or the kernel has no such field.
pub fn resident(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).during(|| format!("cannot read {path}"))?;
    let kilobytes = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name == field { value.trim().strip_suffix(" kB")?.parse::<u64>().ok() } else { None }
    });
    kilobytes.map(|count| count * 1024).ok_or_else(|| Error::new(format!("{path} has no field {field}")))
}

/// The cgroup v2 path of a process; empty if there is none.
///
/// # Errors
/// It is gone.
pub fn cgroup(pid: u32) -> Result<String> {
    let path = format!("/proc/{pid}/cgroup");
    let text = fs::read_to_string(&path).during(|| format!("cannot read {path}"))?;
    Ok(text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned())
}

/// The machine in one line.
#[must_use]
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let commit = run::output(&mut run::command("git", &["rev-parse", "--short", "HEAD"])).unwrap_or_default();
    let commit = commit.trim();
    format!("commit {commit}, {cores} processors, Linux {}, load {load} at the end", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_figures_can_be_read() {
        let own = std::process::id();
        assert!(resident(own, "Rss").unwrap() > 100_000);
        assert!(resident(own, "Pss").unwrap() > 0);
        assert!(switches(own).is_ok());
        assert!(cpu(own).unwrap() > Duration::ZERO);
        assert!(resident(own, "Nothing").unwrap_err().to_string().contains("has no field Nothing"));
    }
}
