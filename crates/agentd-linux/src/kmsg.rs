//! The kernel's log: one line a record, before there is anything better. kernel document ABI/testing/dev-kmsg.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The kernel cuts what does not fit its line buffer (LOG_LINE_MAX); this much always fits, prefix included.
const LINE: usize = 976;

/// An open /dev/kmsg.
#[derive(Debug)]
pub struct Kmsg(File);

impl Kmsg {
    /// Opens the device; never makes a file of that name.
    ///
    /// # Errors
    /// If it is not there, is no character device, or may not be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open(path)?;
        if !file.metadata()?.file_type().is_char_device() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no character device"));
        }
        Ok(Self(file))
    }

    /// Writes one record: `priority` as in syslog(3), 0 to 7. Newlines become spaces; a text that is too long is cut.
    ///
    /// # Errors
    /// The errno of write(2): EAGAIN when the kernel suppresses floods.
    pub fn write(&mut self, priority: u8, tag: &str, text: &str) -> io::Result<()> {
        // LOG_DAEMON is facility 3.
        let mut line = format!("<{}>{tag}: {}", 3 << 3 | u32::from(priority.min(7)), text.replace('\n', " "));
        if line.len() > LINE {
            let cut = (0..=LINE).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            line.truncate(cut);
        }
        line.push('\n');
        self.0.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_file_or_a_missing_one_is_no_kernel_log() {
        let path = std::env::temp_dir().join(format!("agentd-kmsg-{}", std::process::id()));
        assert!(Kmsg::open(&path).is_err());
        assert!(!path.exists(), "no file is made");
        std::fs::write(&path, "").unwrap();
        assert!(Kmsg::open(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn any_text_is_one_write() {
        let mut kmsg = Kmsg::open(Path::new("/dev/null")).unwrap();
        kmsg.write(6, "agentd", &"ä\n".repeat(2000)).unwrap();
    }
}
