//! The pipe between a run and the log.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A pipe: the read end for [`LogStore::attach`](super::LogStore::attach), the other for the run. Both close-on-exec.
///
/// The run's end is open for reading as well, so that a run that outlives the manager is not killed by SIGPIPE at its
/// next word, pipe(7): its output waits in the pipe, and whoever takes the run over reads it through
/// `/proc/PID/fd/1`. It still counts as a writer alone for the manager, who sees the end of the output when the last
/// process of the run is gone.
///
/// # Errors
/// EMFILE, ENFILE; ENOENT where /proc is not mounted.
pub fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    // Opening a pipe by its name in /proc gives a descriptor of its own mode, proc_pid_fd(5).
    let both =
        OpenOptions::new().read(true).write(true).open(format!("/proc/self/fd/{}", write.as_raw_fd()))?;
    Ok((read.into(), both.into()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
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
