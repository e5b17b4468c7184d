//! Signal numbers with their names, signal(7).

use std::fmt;
use std::str::FromStr;

/// A Linux signal, 1 to 64. Real-time signals are counted from 34, as glibc senders do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

/// The names of the classic signals; the index is the number less one.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The first real-time signal that programs may use (glibc keeps 32 and 33 for its threads).
const RTMIN: u8 = 34;
const RTMAX: u8 = 64;

impl Signal {
    /// Hang-up; by custom: read the configuration again.
    pub const HUP: Self = Self(1);
    /// Interrupt from the keyboard; Ctrl-Alt-Del for PID 1.
    pub const INT: Self = Self(2);
    /// Abort with a core dump; what a missed watchdog sends.
    pub const ABRT: Self = Self(6);
    /// Cannot be caught.
    pub const KILL: Self = Self(9);
    /// For the program to give a meaning to.
    pub const USR1: Self = Self(10);
    /// Asks politely.
    pub const TERM: Self = Self(15);
    /// Goes on after a stop.
    pub const CONT: Self = Self(18);

    /// The signal of this number, if it is one (1 to 64).
    #[must_use]
    pub const fn from_number(number: i32) -> Option<Self> {
        if number >= 1 && number <= RTMAX as i32 { Some(Self(number as u8)) } else { None }
    }

    /// The number as the kernel takes it.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0 as i32
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if (n as usize) <= NAMES.len() => write!(f, "SIG{}", NAMES[n as usize - 1]),
            RTMIN => f.write_str("SIGRTMIN"),
            RTMAX => f.write_str("SIGRTMAX"),
            n if n > RTMIN => write!(f, "SIGRTMIN+{}", n - RTMIN),
            n => write!(f, "SIG{n}"),
        }
    }
}

/// The text is no signal's name or number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no signal; write a name such as SIGTERM or a number from 1 to 64")]
pub struct SignalError(pub String);

impl FromStr for Signal {
    type Err = SignalError;

    /// Takes `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3`, `RTMAX-2`; names in capitals, as systemd does.
    fn from_str(text: &str) -> Result<Self, SignalError> {
        let refused = || SignalError(text.to_owned());
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return text.parse().ok().and_then(Self::from_number).ok_or_else(refused);
        }
        let name = text.strip_prefix("SIG").unwrap_or(text);
        if let Some(index) = NAMES.iter().position(|known| *known == name) {
            return Ok(Self(index as u8 + 1));
        }
        let offset = |digits: &str, from: u8, up: bool| {
            let n: u8 = digits.parse().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))?;
            let number = if up { from.checked_add(n) } else { from.checked_sub(n) }?;
            (RTMIN..=RTMAX).contains(&number).then_some(Self(number))
        };
        match name {
            "RTMIN" => Ok(Self(RTMIN)),
            "RTMAX" => Ok(Self(RTMAX)),
            "CLD" => Ok(Self(17)),
            "POLL" => Ok(Self(29)),
            "IOT" => Ok(Self(6)),
            _ => if let Some(n) = name.strip_prefix("RTMIN+") {
                offset(n, RTMIN, true)
            } else if let Some(n) = name.strip_prefix("RTMAX-") {
                offset(n, RTMAX, false)
            } else {
                None
            }
            .ok_or_else(refused),
        }
    }
}
