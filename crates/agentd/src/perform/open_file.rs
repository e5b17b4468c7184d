//! What the manager opens for a service: `OpenFile`, systemd.service(5).

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use agentd_engine::SpawnFailure;
use agentd_linux::descriptor::set_blocking;
use agentd_linux::open::{NOCTTY, NONBLOCK};
use agentd_linux::socket::connect_to;
use agentd_unit::sections::{FileAccess, OpenFile};

use super::plan::step;

/// systemd's exit status for descriptors.
const EXIT_FDS: u8 = 202;

/// Opens all, each with its name. What is missing and may be is left out.
///
/// # Errors
/// One cannot be opened or connected to.
pub fn open_all(files: &[OpenFile]) -> Result<Vec<(String, OwnedFd)>, SpawnFailure> {
    let mut opened = Vec::new();
    for file in files {
        match open(file) {
            Ok(fd) => opened.push((file.name.clone(), fd)),
            Err(error) if file.graceful => {
                tracing::debug!(%error, "OpenFile: {} is left out", file.path.display());
            }
            Err(error) => {
                let text = format!(
                    "OpenFile: {} cannot be opened: {error}; with the option graceful it may be missing",
                    file.path.display()
                );
                return Err(step(EXIT_FDS, text));
            }
        }
    }
    Ok(opened)
}

/// Nobody is waited for: not for the other side of a FIFO, nor for a server with a full queue.
fn open(file: &OpenFile) -> io::Result<OwnedFd> {
    if fs::metadata(&file.path)?.file_type().is_socket() {
        return connect_to(&file.path);
    }
    let mut how = OpenOptions::new();
    match file.access {
        FileAccess::ReadWrite => how.read(true).write(true),
        FileAccess::ReadOnly => how.read(true),
        FileAccess::Append => how.read(true).append(true),
        FileAccess::Truncate => how.read(true).write(true).truncate(true),
    };
    let fd = OwnedFd::from(how.custom_flags(NOCTTY | NONBLOCK).open(&file.path)?);
    set_blocking(&fd)?;
    Ok(fd)
}
