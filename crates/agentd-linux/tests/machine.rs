//! What only a machine of its own can show: its clock, its watchdog, and the end of its mounts.
//!
//! Ignored elsewhere; run with `--ignored` in the virtual machine of the tests, as root, each fails if it cannot do
//! its work. `AGENTD_TEST_MACHINE=1` says that the machine may be spoiled.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::time::Duration;

use agentd_linux::epoll::Epoll;
use agentd_linux::timer::{Clock, Clocks, Timer, Wake};
use agentd_linux::watchdog::Watchdog;
use common::{DEADLINE, alone};

/// Runs a test that would do harm to a machine that somebody works on.
fn in_a_spare_machine(name: &str, body: impl FnOnce()) {
    let spare = std::env::var("AGENTD_TEST_MACHINE").is_ok_and(|value| value == "1");
    assert!(spare, "this test spoils the machine: set AGENTD_TEST_MACHINE=1 in a virtual one");
    alone(name, body);
}

/// Sets the wall clock.
fn set_clock(to: Duration) {
    let to = libc::timespec { tv_sec: to.as_secs() as libc::time_t, tv_nsec: to.subsec_nanos().into() };
    // SAFETY: the call reads one timespec from the address of the live local.
    let result = unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &raw const to) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
#[ignore = "sets the clock of the machine"]
fn a_clock_that_is_set_wakes_its_timers_and_no_others() {
    in_a_spare_machine("a_clock_that_is_set_wakes_its_timers_and_no_others", || {
        let epoll = Epoll::new().unwrap();
        let timer = |clock| Timer::new(clock).unwrap();
        let (set, unset) = (timer(Clock::Realtime), timer(Clock::Realtime));
        let steady = [timer(Clock::Monotonic), timer(Clock::Boottime)];
        for (number, timer) in (0..).zip([&set, &unset, &steady[0], &steady[1]]) {
            epoll.add(timer, number).unwrap();
        }
        for step in [3600, 86_400] {
            let now = Clocks::now().unwrap();
            set.set(Some(now.realtime + Duration::from_secs(1_000_000))).unwrap();
            unset.set(None).unwrap();
            steady[0].set(Some(now.monotonic + Duration::from_secs(600))).unwrap();
            steady[1].set(Some(now.boottime + Duration::from_secs(600))).unwrap();
            set_clock(now.realtime + Duration::from_secs(step));
            let mut ready = Vec::new();
            epoll.wait(&mut ready, Some(DEADLINE)).unwrap();
            ready.sort_unstable();
            assert_eq!(ready, [0, 1], "step {step}");
            for timer in [&set, &unset] {
                assert_eq!(timer.read().unwrap(), Wake::ClockChanged, "step {step}");
                assert_eq!(timer.read().unwrap(), Wake::NotYet, "step {step}");
            }
            assert!(steady.iter().all(|timer| timer.read().unwrap() == Wake::NotYet), "step {step}");
        }
        // Due is due, and a clock that is set past the point of time is told as a change first.
        let now = Clock::Realtime.now().unwrap();
        set.set(Some(now + Duration::from_secs(60))).unwrap();
        set_clock(now + Duration::from_secs(120));
        assert_eq!(set.read().unwrap(), Wake::ClockChanged);
        set.set(Some(now + Duration::from_secs(60))).unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&set, 0).unwrap();
        epoll.wait(&mut Vec::new(), Some(DEADLINE)).unwrap();
        assert_eq!(set.read().unwrap(), Wake::Expired);
    });
}

#[test]
#[ignore = "needs a watchdog: modprobe softdog"]
fn a_watchdog_is_set_fed_and_disarmed() {
    let path = Path::new("/dev/watchdog");
    let watchdog = Watchdog::open(path).unwrap();
    assert_eq!(watchdog.set_timeout(Duration::from_millis(29_500)).unwrap(), Duration::from_secs(30));
    assert!(watchdog.set_timeout(Duration::from_secs(1 << 30)).is_err(), "out of its range");
    watchdog.feed().unwrap();
    assert_eq!(Watchdog::open(path).unwrap_err().raw_os_error(), Some(libc::EBUSY));
    watchdog.disarm().unwrap();
    Watchdog::open(path).unwrap().disarm().unwrap();
}

#[test]
#[ignore = "unmounts everything"]
fn what_is_in_use_at_the_end_becomes_read_only() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    in_a_spare_machine("what_is_in_use_at_the_end_becomes_read_only", || {
        let none: Option<&str> = None;
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        for folder in ["/mnt/free", "/mnt/used"] {
            std::fs::create_dir_all(folder).unwrap();
            mount(Some("test"), folder, Some("tmpfs"), MsFlags::empty(), none).unwrap();
        }
        std::fs::write("/mnt/used/data", "kept").unwrap();
        let user = std::fs::File::open("/mnt/used/data").unwrap();
        let left = agentd_linux::mount::unmount_all();
        assert!(!left.iter().any(|(point, _)| point.starts_with("/mnt")), "{left:?}");
        let mounts = agentd_linux::mount::mounts().unwrap();
        assert!(!mounts.iter().any(|point| point == Path::new("/mnt/free")), "{mounts:?}");
        assert!(mounts.iter().any(|point| point == Path::new("/mnt/used")), "{mounts:?}");
        let error = std::fs::write("/mnt/used/more", "lost").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EROFS));
        drop(user);
    });
}
