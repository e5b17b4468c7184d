//! The machine's watchdog: who does not feed it is rebooted. watchdog-api.rst of the kernel.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// `_IOR('W', 5, int)` and `_IOWR('W', 6, int)` of linux/watchdog.h.
const WDIOC_KEEPALIVE: libc::Ioctl = 0x8004_5705;
const WDIOC_SETTIMEOUT: libc::Ioctl = 0xc004_5706_u32 as libc::Ioctl;

/// An open watchdog, which counts. Dropping it without [`Watchdog::disarm`] leaves it counting: a manager that
/// dies does not get the machine stuck.
#[derive(Debug)]
pub struct Watchdog(File);

impl Watchdog {
    /// Opens it, which starts it.
    ///
    /// # Errors
    /// ENOENT: there is none. EBUSY: somebody else feeds it. EACCES.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().write(true).custom_flags(libc::O_NOCTTY).open(path)?))
    }

    /// Sets after how long without food it reboots, and gives what it made of that: some know only a few spans.
    ///
    /// # Errors
    /// EINVAL: out of its range. ENOTTY, EOPNOTSUPP: it cannot be set.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<Duration> {
        // Up, as a shorter span than asked for might be too short to live with.
        let seconds = timeout.as_millis().div_ceil(1000).max(1);
        let mut seconds = libc::c_int::try_from(seconds).unwrap_or(libc::c_int::MAX);
        // SAFETY: the request reads and writes one int at the address of the live local.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), WDIOC_SETTIMEOUT, &raw mut seconds) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    /// Feeds it. Feed it at half of its time.
    ///
    /// # Errors
    /// The device is gone or broken.
    pub fn feed(&self) -> io::Result<()> {
        // SAFETY: the request takes no argument; drivers ignore it.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), WDIOC_KEEPALIVE, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Closes it so that it stops counting, if the driver can (the "magic close").
    ///
    /// # Errors
    /// The device is gone or broken.
    pub fn disarm(mut self) -> io::Result<()> {
        self.0.write_all(b"V")
    }
}
