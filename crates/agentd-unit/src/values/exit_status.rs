//! Exit codes and signals as systemd names them, systemd.exec(5) "PROCESS EXIT CODES".

use super::Refused;
use crate::diagnostic::nearest;
use crate::sections::ExitStatusSet;
use crate::signal::Signal;

/// The names of exit codes: the C library's, those of init scripts, sysexits(3) and systemd's own.
const NAMES: &[(&str, u8)] = &[
    ("SUCCESS", 0),
    ("FAILURE", 1),
    ("INVALIDARGUMENT", 2),
    ("NOTIMPLEMENTED", 3),
    ("NOPERMISSION", 4),
    ("NOTINSTALLED", 5),
    ("NOTCONFIGURED", 6),
    ("NOTRUNNING", 7),
    ("USAGE", 64),
    ("DATAERR", 65),
    ("NOINPUT", 66),
    ("NOUSER", 67),
    ("NOHOST", 68),
    ("UNAVAILABLE", 69),
    ("SOFTWARE", 70),
    ("OSERR", 71),
    ("OSFILE", 72),
    ("CANTCREAT", 73),
    ("IOERR", 74),
    ("TEMPFAIL", 75),
    ("PROTOCOL", 76),
    ("NOPERM", 77),
    ("CONFIG", 78),
    ("CHDIR", 200),
    ("NICE", 201),
    ("FDS", 202),
    ("EXEC", 203),
    ("MEMORY", 204),
    ("LIMITS", 205),
    ("OOM_ADJUST", 206),
    ("SIGNAL_MASK", 207),
    ("STDIN", 208),
    ("STDOUT", 209),
    ("CHROOT", 210),
    ("IOPRIO", 211),
    ("SECUREBITS", 213),
    ("SETSCHEDULER", 214),
    ("CPUAFFINITY", 215),
    ("GROUP", 216),
    ("USER", 217),
    ("CAPABILITIES", 218),
    ("CGROUP", 219),
    ("SETSID", 220),
    ("STDERR", 222),
    ("NAMESPACE", 226),
    ("NO_NEW_PRIVILEGES", 227),
    ("SECCOMP", 228),
    ("CREDENTIALS", 243),
];

/// Adds one word, a code from 0 to 255, its name, or a signal, to a set.
///
/// # Errors
/// Any other word.
pub fn add(set: &mut ExitStatusSet, word: &str) -> Result<(), Refused> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        let code = word.parse::<u8>();
        let code = code.map_err(|_| Refused::of(word, "is no exit code", "exit codes are 0 to 255"))?;
        set.codes.insert(code);
    } else if let Some((_, code)) = NAMES.iter().find(|(name, _)| *name == word) {
        set.codes.insert(*code);
    } else if let Ok(signal) = word.parse::<Signal>() {
        set.signals.insert(signal.number());
    } else {
        let near = nearest(word, NAMES.iter().map(|(name, _)| *name));
        let help = near.map_or("write for example 2, TEMPFAIL or SIGTERM".to_owned(), |near| {
            format!("did you mean {near}?")
        });
        return Err(Refused::of(word, "is neither an exit code nor a signal", &help));
    }
    Ok(())
}
