//! What a spawn costs beside the least that a spawn can cost: vfork(2) and execve(2) of the same program.
//!
//! Prints medians of 1,000 of each, taken in turns, from before the birth to after the reaping.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use agentd_linux::cgroup::{CgroupRoot, Leaf, Place};
use agentd_linux::reap::reap_one;
use agentd_linux::spawn::{Identity, Program, SpawnPlan, Spawner};

const ROUNDS: usize = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = CString::new(std::env::args().nth(1).unwrap_or_else(|| "/bin/true".into()))?;
    let mut spawner = Spawner::new()?;
    let cgroup = make_leaf();
    let mut times: [(&str, Vec<Duration>); 4] = [
        ("vfork+exec", vec![]),
        ("spawn", vec![]),
        ("spawn into a cgroup", vec![]),
        ("spawn as another user", vec![]),
    ];
    let plan = SpawnPlan::new(Program::Path(program.clone()), vec![program.clone()]);
    let mut in_cgroup = plan.clone();
    in_cgroup.cgroup = cgroup.as_ref().map(|(_, leaf)| leaf.as_fd());
    let mut other_user = plan.clone();
    other_user.identity = Some(Identity { uid: 65534, gid: 65534, groups: vec![] });
    for _ in 0..ROUNDS {
        let [(_, floor), (_, plain), (_, cgroup), (_, user)] = &mut times;
        floor.push(timed(|| floor_spawn(&program))?);
        plain.push(timed(|| once(&mut spawner, &plan))?);
        cgroup.push(timed(|| once(&mut spawner, &in_cgroup))?);
        if spawner_is_root() {
            user.push(timed(|| once(&mut spawner, &other_user))?);
        }
    }
    report(&mut times);
    if let Some((root, leaf)) = cgroup {
        leaf.remove()?;
        root.leave();
    }
    Ok(())
}

/// One spawn, whose process is left to be reaped.
fn once(spawner: &mut Spawner, plan: &SpawnPlan<'_>) -> io::Result<()> {
    spawner.spawn(plan).map_err(io::Error::other)?;
    Ok(())
}

fn spawner_is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A cgroup to be born in, where there are any.
fn make_leaf() -> Option<(CgroupRoot, Leaf)> {
    let mut root =
        CgroupRoot::set_up(Place::Folder("spawn-floor")).map_err(|e| eprintln!("no cgroup: {e}")).ok()?;
    let leaf = root.leaf("system.slice", "floor.service").map_err(|e| eprintln!("no cgroup: {e}")).ok()?;
    Some((root, leaf))
}

/// The time of one birth and its reaping.
fn timed(birth: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let start = Instant::now();
    birth()?;
    // The reaper does not wait; here we do, so that both ways are timed to the same end.
    nix::sys::wait::waitid(
        nix::sys::wait::Id::All,
        nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT,
    )?;
    reap_one(|_| ())?;
    Ok(start.elapsed())
}

/// The floor.
fn floor_spawn(program: &CString) -> io::Result<()> {
    let argv = [program.as_ptr(), std::ptr::null()];
    let envp = [std::ptr::null()];
    // SAFETY: the child calls execve or _exit and nothing else, and leaves the stack as it was.
    #[expect(deprecated, reason = "it is the floor that everybody compares with")]
    let pid = unsafe { libc::vfork() };
    if pid == 0 {
        // SAFETY: the program and both arrays are live and end as execve wants them.
        unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
        // SAFETY: the call ends the child.
        unsafe { libc::_exit(127) };
    }
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn report(times: &mut [(&str, Vec<Duration>)]) {
    let mut floor = None;
    for (name, times) in times.iter_mut().filter(|(_, times)| !times.is_empty()) {
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let floor = *floor.get_or_insert(median);
        println!("{name:24} {median:>10.1?}  {:.2}x", median.as_secs_f64() / floor.as_secs_f64());
    }
}
