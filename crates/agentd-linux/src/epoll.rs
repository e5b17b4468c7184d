//! Waiting for many descriptors at once, and being woken from another thread: epoll(7), eventfd(2).
//!
//! For threads that have no event loop of their own, such as the one that reads the agents' output.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::epoll::{EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// A set of descriptors, level-triggered: what is readable is told again until it is read.
#[derive(Debug)]
pub struct Epoll(nix::sys::epoll::Epoll);

impl Epoll {
    /// An empty set. epoll_create1(2), close-on-exec.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM.
    pub fn new() -> io::Result<Self> {
        Ok(Self(nix::sys::epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?))
    }

    /// Watches `fd` for input (or its writer's end) under the name `token`.
    ///
    /// # Errors
    /// EPERM: the descriptor cannot be waited for (a regular file); EEXIST: it is watched already; ENOMEM, ENOSPC.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    /// Watches `fd` for input under the name `token` and tells of it once; then it is to be armed again.
    ///
    /// # Errors
    /// EPERM: the descriptor cannot be waited for (a regular file); ENOMEM, ENOSPC.
    pub fn arm(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLONESHOT, token);
        match self.0.modify(&fd, &mut event) {
            Err(nix::errno::Errno::ENOENT) => Ok(self.0.add(fd, event)?),
            other => Ok(other?),
        }
    }

    /// Watches `fd` for a hang-up or an error alone, under the name `token`. It is told for as long as the open file
    /// lives, also when `fd` is closed while a copy of it is open elsewhere: [`remove`](Self::remove) it first.
    ///
    /// # Errors
    /// EPERM: the descriptor cannot be waited for (a regular file); EEXIST: it is watched already; ENOMEM, ENOSPC.
    pub fn add_hangup(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(self.0.add(fd, EpollEvent::new(EpollFlags::empty(), token))?)
    }

    /// The set itself as a descriptor, which is readable while something in it has something to say. epoll(7).
    ///
    /// # Errors
    /// EMFILE, ENFILE.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.0.try_clone()
    }

    /// Watches it no longer.
    ///
    /// # Errors
    /// ENOENT: it was not watched.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.0.delete(fd)?)
    }

    /// Waits until something is readable and appends the tokens to `ready`; after `timeout` with none. A signal
    /// that interrupts it counts as nothing readable.
    ///
    /// # Errors
    /// None that a valid set can have.
    pub fn wait(&self, ready: &mut Vec<u64>, timeout: Option<Duration>) -> io::Result<()> {
        // At most this many a call: what is left is told by the next one, in turn.
        let mut events = [EpollEvent::empty(); 64];
        // Rounded up, so that a wait never ends before its time and turns into a busy loop.
        let timeout = timeout.map_or(EpollTimeout::NONE, |t| {
            let millis = t.as_micros().div_ceil(1000);
            EpollTimeout::try_from(millis).unwrap_or(EpollTimeout::MAX)
        });
        match self.0.wait(&mut events, timeout) {
            Ok(n) => {
                ready.extend(events.iter().take(n).map(EpollEvent::data));
                Ok(())
            }
            Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Epoll {
    /// Readable while something in the set is.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// Wakes a thread that waits for descriptors. eventfd(2), never blocking, close-on-exec.
#[derive(Debug)]
pub struct Waker(EventFd);

impl Waker {
    /// A waker that has not been used.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM.
    pub fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }

    /// Makes it readable.
    pub fn wake(&self) {
        // EAGAIN, the only error there is, says that it is readable already: the counter is full.
        let _full = self.0.write(1);
    }

    /// Makes it unreadable again.
    pub fn clear(&self) {
        // EAGAIN says that nobody woke us: nothing to clear.
        let _unused = self.0.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_pipe_with_bytes_is_told_until_it_is_read() {
        let (mut read, mut write) = std::io::pipe().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&read, 7).unwrap();
        write.write_all(b"x").unwrap();
        let mut ready = Vec::new();
        epoll.wait(&mut ready, None).unwrap();
        epoll.wait(&mut ready, None).unwrap();
        assert_eq!(ready, [7, 7]);
        read.read_exact(&mut [0]).unwrap();
        ready.clear();
        epoll.wait(&mut ready, Some(Duration::ZERO)).unwrap();
        assert!(ready.is_empty());
    }

    #[test]
    fn a_waker_wakes_a_thread_that_waits() {
        let epoll = Epoll::new().unwrap();
        let waker = Arc::new(Waker::new().unwrap());
        epoll.add(&*waker, 1).unwrap();
        let other = Arc::clone(&waker);
        let thread = std::thread::spawn(move || other.wake());
        let mut ready = Vec::new();
        epoll.wait(&mut ready, Some(Duration::from_secs(10))).unwrap();
        assert_eq!(ready, [1]);
        thread.join().unwrap();
        waker.clear();
        ready.clear();
        epoll.wait(&mut ready, Some(Duration::ZERO)).unwrap();
        assert!(ready.is_empty(), "cleared");
    }

    #[test]
    fn a_hang_up_is_told_and_bytes_are_not() {
        let (read, mut write) = std::io::pipe().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add_hangup(&read, 3).unwrap();
        write.write_all(b"x").unwrap();
        let mut ready = Vec::new();
        epoll.wait(&mut ready, Some(Duration::ZERO)).unwrap();
        assert!(ready.is_empty());
        drop(write);
        epoll.wait(&mut ready, None).unwrap();
        assert_eq!(ready, [3]);
    }

    #[test]
    fn a_wait_ends_after_its_timeout() {
        let mut ready = Vec::new();
        Epoll::new().unwrap().wait(&mut ready, Some(Duration::from_micros(1))).unwrap();
        assert!(ready.is_empty());
    }
}
