//! Points in time on the kernel's clocks, and being woken at one: clock_gettime(2), timerfd_create(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;

/// A clock of the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// CLOCK_MONOTONIC: since boot, without the time in suspend. For timeouts of things that suspend stops too.
    Monotonic,
    /// CLOCK_BOOTTIME: since boot, with the time in suspend.
    Boottime,
    /// CLOCK_REALTIME: since 1970, and set by people.
    Realtime,
}

impl Clock {
    /// The point in time that this clock shows.
    ///
    /// # Errors
    /// None that these clocks can have.
    pub fn now(self) -> io::Result<Duration> {
        let id = match self {
            Self::Monotonic => nix::time::ClockId::CLOCK_MONOTONIC,
            Self::Boottime => nix::time::ClockId::CLOCK_BOOTTIME,
            Self::Realtime => nix::time::ClockId::CLOCK_REALTIME,
        };
        Ok(Duration::from(clock_gettime(id)?))
    }
}

/// What all clocks show at (almost) one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// CLOCK_MONOTONIC.
    pub monotonic: Duration,
    /// CLOCK_BOOTTIME.
    pub boottime: Duration,
    /// CLOCK_REALTIME, since 1970.
    pub realtime: Duration,
}

impl Clocks {
    /// Reads all three.
    ///
    /// # Errors
    /// None that these clocks can have.
    pub fn now() -> io::Result<Self> {
        Ok(Self {
            monotonic: Clock::Monotonic.now()?,
            boottime: Clock::Boottime.now()?,
            realtime: Clock::Realtime.now()?,
        })
    }
}

/// Why a timer became readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// It did not: a spurious wake-up.
    NotYet,
    /// The point in time has come.
    Expired,
    /// Somebody set the clock. The timer is disarmed: what is due by the new clock is due, then set it again.
    ClockChanged,
}

/// A timer that is readable at a point in time. Never blocks; close-on-exec.
#[derive(Debug)]
pub struct Timer {
    fd: TimerFd,
    clock: Clock,
}

impl Timer {
    /// A timer that is not set. timerfd_create(2).
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let id = match clock {
            Clock::Monotonic => ClockId::CLOCK_MONOTONIC,
            Clock::Boottime => ClockId::CLOCK_BOOTTIME,
            Clock::Realtime => ClockId::CLOCK_REALTIME,
        };
        let fd = TimerFd::new(id, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        Ok(Self { fd, clock })
    }

    /// Sets the point in time, on the timer's clock; one that is past makes it readable at once. None: never. On
    /// the real-time clock either way wakes when the clock is set.
    ///
    /// # Errors
    /// None that a valid timer can have.
    pub fn set(&self, at: Option<Duration>) -> io::Result<()> {
        let mut flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
        if self.clock == Clock::Realtime {
            flags |= TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        }
        match (at, self.clock) {
            (None, Clock::Monotonic | Clock::Boottime) => self.fd.unset()?,
            (None, Clock::Realtime) => self.fd.set(Expiration::OneShot(time_spec(NEVER)), flags)?,
            // Zero would disarm it.
            (Some(at), _) => {
                let at = at.clamp(Duration::from_nanos(1), NEVER);
                self.fd.set(Expiration::OneShot(time_spec(at)), flags)?;
            }
        }
        Ok(())
    }

    /// Takes the wake-up, so that it is not readable any more.
    ///
    /// # Errors
    /// None that a timerfd can have.
    pub fn read(&self) -> io::Result<Wake> {
        // Not by nix's wait, which takes ECANCELED for an expiry.
        match nix::unistd::read(&self.fd, &mut [0; 8]) {
            Ok(_) => Ok(Wake::Expired),
            Err(Errno::EAGAIN) => Ok(Wake::NotYet),
            Err(Errno::ECANCELED) => Ok(Wake::ClockChanged),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Later than any machine lives, and within what the kernel counts in nanoseconds (292 years).
const NEVER: Duration = Duration::from_secs(9_000_000_000);

fn time_spec(at: Duration) -> TimeSpec {
    TimeSpec::from_duration(at)
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    fn readable(timer: &Timer, timeout: PollTimeout) -> bool {
        poll(&mut [PollFd::new(timer.as_fd(), PollFlags::POLLIN)], timeout).unwrap() > 0
    }

    const CLOCKS: [Clock; 3] = [Clock::Monotonic, Clock::Boottime, Clock::Realtime];

    #[test]
    fn a_point_in_the_past_has_come() {
        for clock in CLOCKS {
            let timer = Timer::new(clock).unwrap();
            for at in [Duration::ZERO, clock.now().unwrap()] {
                timer.set(Some(at)).unwrap();
                assert!(readable(&timer, PollTimeout::from(10_000u16)), "{clock:?}");
                assert_eq!(timer.read().unwrap(), Wake::Expired, "{clock:?}");
                assert_eq!(timer.read().unwrap(), Wake::NotYet, "{clock:?}");
            }
        }
    }

    #[test]
    fn a_point_in_the_future_has_not_come() {
        for clock in CLOCKS {
            let timer = Timer::new(clock).unwrap();
            for at in [Some(clock.now().unwrap() + Duration::from_secs(3600)), Some(Duration::MAX), None] {
                timer.set(at).unwrap();
                assert!(!readable(&timer, PollTimeout::ZERO), "{clock:?} {at:?}");
                assert_eq!(timer.read().unwrap(), Wake::NotYet, "{clock:?} {at:?}");
            }
        }
    }

    #[test]
    fn it_wakes_at_its_time_and_not_before() {
        for clock in CLOCKS {
            let timer = Timer::new(clock).unwrap();
            let at = clock.now().unwrap() + Duration::from_millis(20);
            timer.set(Some(at)).unwrap();
            assert!(readable(&timer, PollTimeout::from(10_000u16)), "{clock:?}");
            assert!(clock.now().unwrap() >= at, "{clock:?}");
        }
    }

    #[test]
    fn clocks_run_forward() {
        let before = Clocks::now().unwrap();
        let after = Clocks::now().unwrap();
        assert!(after.monotonic >= before.monotonic);
        assert!(after.boottime >= before.boottime);
        assert!(before.boottime >= before.monotonic, "suspend only adds");
    }
}
