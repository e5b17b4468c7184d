//! The processes below one, found by parenthood and by a mark in their environment: for places without cgroups.
//!
//! A daemon that left its parents is a child of ours (we are its reaper) and no longer of its unit. It still has
//! the environment that it was born with, in which `INVOCATION_ID` says whose it is. A program that erases its
//! environment *and* leaves its parents escapes; only a cgroup holds that one.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use crate::pidfd::{Delivery, PidFd};
use crate::signal::is_gone;

/// How often the processes are looked through, at most, for those that were born meanwhile.
const ROUNDS: usize = 64;

/// What belongs together.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    /// Processes that belong to it, with all below them.
    pub roots: &'a [u32],
    /// A variable that all of it was born with, as `NAME=value`, such as `INVOCATION_ID=…`.
    pub mark: &'a str,
}

/// One process, as `/proc` shows it.
struct Process {
    parent: u32,
    zombie: bool,
    /// In ticks since boot. With the number it names a process for good.
    started: u64,
}

impl Tree<'_> {
    /// The processes that belong to it, zombies left out.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        Ok(self.members()?.into_iter().map(|(pid, _)| pid).collect())
    }

    /// The processes with the times at which they started.
    fn members(&self) -> io::Result<Vec<(u32, u64)>> {
        let all = all_processes()?;
        let own = std::process::id();
        let mut members: HashSet<u32> = self.roots.iter().copied().filter(|pid| *pid != own).collect();
        members.extend(all.keys().filter(|pid| **pid != own && self.is_marked(**pid)));
        // Parents are not listed before their children, so look until nobody joins.
        loop {
            let joined: Vec<u32> = all
                .iter()
                .filter(|(pid, process)| !members.contains(pid) && members.contains(&process.parent))
                .map(|(pid, _)| *pid)
                .collect();
            if joined.is_empty() {
                break;
            }
            members.extend(joined);
        }
        let alive =
            |pid: &u32| all.get(pid).filter(|process| !process.zombie).map(|process| (*pid, process.started));
        Ok(members.iter().filter_map(alive).collect())
    }

    /// Whether the process was born with the mark. One that is gone or may not be looked at was not.
    fn is_marked(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
    }

    /// Sends a signal to each, each once, also to those that are born while we go. Gives how many got it.
    ///
    /// # Errors
    /// `/proc` cannot be read, or a process is not ours to signal. The others get the signal all the same.
    pub fn signal(&self, signal: i32) -> io::Result<usize> {
        let (mut seen, mut sent, mut refused) = (HashSet::new(), 0, None);
        for _ in 0..ROUNDS {
            let born: Vec<(u32, u64)> = self.members()?.into_iter().filter(|one| seen.insert(*one)).collect();
            if born.is_empty() {
                break;
            }
            for (pid, started) in born {
                match signal_one(pid, started, signal) {
                    Ok(Delivery::Sent) => sent += 1,
                    Ok(Delivery::Gone) => {}
                    Err(e) => refused = Some(e),
                }
            }
        }
        refused.map_or(Ok(sent), Err)
    }
}

/// Held first, then looked at again: between the list and the pidfd the number may have become another's.
fn signal_one(pid: u32, started: u64, signal: i32) -> io::Result<Delivery> {
    let Some(held) = PidFd::open(pid)? else { return Ok(Delivery::Gone) };
    match read_process(pid)? {
        Some(process) if process.started == started => held.send_signal(signal),
        _ => Ok(Delivery::Gone),
    }
}

/// When and of whom a process was born.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// Whose child it is now.
    pub parent: u32,
    /// When it was born, on CLOCK_BOOTTIME, to a hundredth of a second downwards. proc_pid_stat(5) `starttime`.
    pub at: Duration,
}

/// When and of whom a process was born. None: there is no such process.
///
/// # Errors
/// `/proc` cannot be read.
pub fn birth(pid: u32) -> io::Result<Option<Birth>> {
    let Some(process) = read_process(pid)? else { return Ok(None) };
    let ticks =
        sysconf(SysconfVar::CLK_TCK)?.and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(100).max(1);
    let at = Duration::from_millis(process.started.saturating_mul(1000) / ticks);
    Ok(Some(Birth { parent: process.parent, at }))
}

/// The parent of a process. None: it is gone, or a zombie.
///
/// # Errors
/// `/proc` cannot be read.
pub fn parent(pid: u32) -> io::Result<Option<u32>> {
    Ok(read_process(pid)?.filter(|process| !process.zombie).map(|process| process.parent))
}

/// How many children of a process have ended and wait for it to fetch their status. 0 where the kernel lists no children
/// (CONFIG_PROC_CHILDREN) or the process is gone. proc_pid_task_children(5).
#[must_use]
pub fn zombies_of(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let is_zombie = |child: &str| {
        let process = child.parse().ok().and_then(|child| read_process(child).ok().flatten());
        process.is_some_and(|process| process.zombie)
    };
    children.map(|all| all.split_ascii_whitespace().filter(|child| is_zombie(child)).count() as u64).sum()
}

/// All processes that `/proc` shows.
fn all_processes() -> io::Result<HashMap<u32, Process>> {
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if let Some(process) = read_process(pid)? {
            all.insert(pid, process);
        }
    }
    Ok(all)
}

/// What `/proc` says of one. None: it is gone.
fn read_process(pid: u32) -> io::Result<Option<Process>> {
    match fs::read(format!("/proc/{pid}/stat")) {
        // The name is any bytes.
        Ok(stat) => Ok(parse_stat(&String::from_utf8_lossy(&stat))),
        Err(e) if is_gone(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// proc_pid_stat(5): after the name, which may have parentheses in it, come the state and the parent; the start
/// is field 22.
fn parse_stat(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    Some(Process { zombie, parent, started: fields.nth(17)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_were_born_a_moment_ago() {
        let birth = birth(std::process::id()).unwrap().unwrap();
        let now = crate::timer::Clocks::now().unwrap().boottime;
        assert!(birth.at <= now && now - birth.at < Duration::from_secs(3600), "{birth:?} {now:?}");
        assert_eq!(birth.parent, std::os::unix::process::parent_id());
    }

    #[test]
    fn a_name_with_parentheses_hides_nothing() {
        let tail = "7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 1000";
        for (head, zombie, parent) in
            [("7 (sh) S 3", false, 3), ("7 (a) Z 1) (b) Z 42", true, 42), ("7 () X 0", true, 0)]
        {
            let process = parse_stat(&format!("{head} {tail}")).unwrap();
            assert_eq!((process.zombie, process.parent, process.started), (zombie, parent, 99), "{head}");
        }
        assert!(parse_stat("7 (sh").is_none());
    }

    #[test]
    fn we_are_no_part_of_a_tree_of_ours() {
        let own = [std::process::id()];
        let found = Tree { roots: &own, mark: "NO_SUCH=mark" }.processes().unwrap();
        assert!(!found.contains(&std::process::id()));
    }
}
