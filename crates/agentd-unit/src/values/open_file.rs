//! `path:name:options` of `OpenFile`, systemd.service(5).

use super::{Refused, path};
use crate::sections::{FileAccess, OpenFile};

/// The longest name, sd_listen_fds_with_names(3).
const NAME_MAX: usize = 255;

const FORM: &str = "write path, path:name or path:name:options";

/// Reads one.
///
/// # Errors
/// The path is not absolute; the name cannot stand in `LISTEN_FDNAMES`; an option is unknown or said twice, or two say how
/// it is opened.
pub fn open_file(text: &str) -> Result<OpenFile, Refused> {
    let mut parts = text.split(':');
    let path = path::absolute(parts.next().unwrap_or_default())?;
    let name = parts.next().filter(|name| !name.is_empty()).map_or_else(
        || path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        str::to_owned,
    );
    if name.is_empty()
        || name.len() > NAME_MAX
        || !name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b':')
    {
        return Err(Refused::of(
            &name,
            "is no name of a descriptor",
            "write up to 255 plain characters, without ':'",
        ));
    }
    let (access, graceful) = options(parts.next().unwrap_or_default())?;
    match parts.next() {
        Some(_) => Err(Refused::of(text, "has too many parts", FORM)),
        None => Ok(OpenFile { path, name, access, graceful }),
    }
}

fn options(text: &str) -> Result<(FileAccess, bool), Refused> {
    let (mut access, mut graceful) = (None, false);
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let known = [FileAccess::ReadOnly, FileAccess::Append, FileAccess::Truncate];
        match known.into_iter().find(|known| known.word() == Some(word)) {
            Some(found) if access.is_none() => access = Some(found),
            Some(_) => {
                return Err(Refused::of(
                    word,
                    "says a second time how it is opened",
                    "write one of read-only, append, truncate",
                ));
            }
            None if word == "graceful" && !graceful => graceful = true,
            None => {
                return Err(Refused::of(
                    word,
                    "is no option here",
                    "the options are read-only, append, truncate and graceful, each once",
                ));
            }
        }
    }
    Ok((access.unwrap_or_default(), graceful))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_names_and_options_are_told_apart() {
        for (text, path, name, access, graceful) in [
            ("/etc/a.conf", "/etc/a.conf", "a.conf", FileAccess::ReadWrite, false),
            ("/etc/a.conf:conf", "/etc/a.conf", "conf", FileAccess::ReadWrite, false),
            ("/etc/a.conf::read-only", "/etc/a.conf", "a.conf", FileAccess::ReadOnly, false),
            ("/l:log:append,graceful", "/l", "log", FileAccess::Append, true),
            ("/l:log:graceful,truncate", "/l", "log", FileAccess::Truncate, true),
            ("/l:log:", "/l", "log", FileAccess::ReadWrite, false),
        ] {
            let file = OpenFile { path: path.into(), name: name.into(), access, graceful };
            assert_eq!(open_file(text), Ok(file), "{text}");
        }
    }

    #[test]
    fn what_no_descriptor_can_be_made_of_is_refused() {
        for text in [
            "a",
            "",
            "/",
            "/a:b\u{7}",
            "/a:ä",
            "/a:b:write",
            "/a:b:append,append",
            "/a:b:append,read-only",
            "/a:b:graceful,graceful",
            "/a:b:append:c",
        ] {
            assert!(open_file(text).is_err(), "{text}");
        }
    }
}
