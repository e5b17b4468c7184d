//! The pipe that takes what a service says. pipe(7), proc_pid_fd(5).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// The folder of our own descriptors, held so that its way through `/proc` is walked once.
static OWN_DESCRIPTORS: OnceLock<File> = OnceLock::new();

/// A pipe: the end that is read, and that of the service. Both close-on-exec.
///
/// The service's end is open for reading as well, so that one that outlives the manager is not killed by SIGPIPE at its
/// next word, pipe(7): its output waits in the pipe, and whoever takes the service over reads it through
/// `/proc/PID/fd/1`. It still counts as a writer alone for the manager, who sees the end of the output when the last
/// process of the service is gone.
///
/// # Errors
/// EMFILE, ENFILE; ENOENT where /proc is not mounted.
pub fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    // Opening a pipe by its name in /proc gives a descriptor of its own mode.
    let name = write.as_raw_fd().to_string();
    let both = openat(own_descriptors()?, name.as_str(), OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    Ok((read.into(), both))
}

fn own_descriptors() -> io::Result<&'static File> {
    if let Some(folder) = OWN_DESCRIPTORS.get() {
        return Ok(folder);
    }
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let folder = File::options().read(true).custom_flags(flags).open("/proc/self/fd")?;
    Ok(OWN_DESCRIPTORS.get_or_init(|| folder))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_run_outlives_its_reader_and_the_next_one_reads_on() {
        let (read, write) = output_pipe().unwrap();
        let mut write = File::from(write);
        drop(read);
        write.write_all(b"still here").unwrap();
        let mut next = File::open(format!("/proc/self/fd/{}", write.as_raw_fd())).unwrap();
        drop(write);
        let mut text = String::new();
        next.read_to_string(&mut text).unwrap();
        assert_eq!(text, "still here", "and then the end");
    }

    #[test]
    fn the_end_of_the_last_writer_is_the_end_of_the_output() {
        let (read, write) = output_pipe().unwrap();
        drop(write);
        assert_eq!(File::from(read).read(&mut [0]).unwrap(), 0);
    }
}
