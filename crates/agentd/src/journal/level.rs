//! How loud a message is: syslog's eight levels, by systemd's names.

use std::fmt;
use std::str::FromStr;

use tracing_subscriber::filter::LevelFilter;

/// A level of syslog(3). The lesser, the louder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LogLevel {
    /// 0: the system is unusable.
    Emergency,
    /// 1: somebody must act at once.
    Alert,
    /// 2: critical.
    Critical,
    /// 3: an error.
    Error,
    /// 4: a warning.
    Warning,
    /// 5: normal, but worth a look.
    Notice,
    /// 6: what happens.
    #[default]
    Info,
    /// 7: how it happens.
    Debug,
}

/// A text that names no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no log level; use emerg, alert, crit, err, warning, notice, info, debug or a number from 0 to 7"
)]
pub struct LogLevelError(String);

impl LogLevel {
    /// All levels, loudest first.
    pub const ALL: [Self; 8] = [
        Self::Emergency,
        Self::Alert,
        Self::Critical,
        Self::Error,
        Self::Warning,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// The number, 0 to 7.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The level of a number; what is above 7 is debug.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        usize::try_from(number).ok().and_then(|n| Self::ALL.get(n)).copied().unwrap_or(Self::Debug)
    }

    /// systemd's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Emergency => "emerg",
            Self::Alert => "alert",
            Self::Critical => "crit",
            Self::Error => "err",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// The level of an event that names none. tracing has no notice; its trace is for the authors of libraries, and is
    /// never logged.
    pub(crate) const fn of(level: &tracing::Level) -> Self {
        match *level {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN => Self::Warning,
            tracing::Level::INFO => Self::Info,
            tracing::Level::DEBUG | tracing::Level::TRACE => Self::Debug,
        }
    }

    /// Which events can be this loud or louder.
    pub(crate) const fn filter(self) -> LevelFilter {
        match self {
            Self::Emergency | Self::Alert | Self::Critical | Self::Error => LevelFilter::ERROR,
            Self::Warning => LevelFilter::WARN,
            Self::Notice | Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        }
    }
}

impl From<agentd_engine::Level> for LogLevel {
    fn from(level: agentd_engine::Level) -> Self {
        match level {
            agentd_engine::Level::Error => Self::Error,
            agentd_engine::Level::Warning => Self::Warning,
            agentd_engine::Level::Notice => Self::Notice,
            agentd_engine::Level::Info => Self::Info,
            agentd_engine::Level::Debug => Self::Debug,
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = LogLevelError;

    /// systemd's words, the common long forms `error` and `warn`, and the numbers.
    fn from_str(text: &str) -> Result<Self, LogLevelError> {
        let named = |level: &Self| level.as_str() == text || level.number().to_string() == text;
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warning),
            _ => Self::ALL.into_iter().find(named).ok_or_else(|| LogLevelError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_read_by_its_word_and_its_number() {
        for level in LogLevel::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
            assert_eq!(level.number().to_string().parse(), Ok(level));
            assert_eq!(LogLevel::from_number(u64::from(level.number())), level);
        }
    }

    #[test]
    fn what_is_no_level_is_refused_with_the_levels_there_are() {
        for text in ["", "8", "-1", "06", "INFO", "verbose", "info "] {
            let error = text.parse::<LogLevel>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is no log level; use emerg, ")), "{error}");
        }
    }

    #[test]
    fn no_event_of_a_level_is_filtered_out_before_it_is_looked_at() {
        for level in
            [tracing::Level::ERROR, tracing::Level::WARN, tracing::Level::INFO, tracing::Level::DEBUG]
        {
            assert!(LogLevel::of(&level).filter() >= level);
        }
        assert!(LogLevel::Notice.filter() >= tracing::Level::INFO, "notices are events of this level");
    }
}
