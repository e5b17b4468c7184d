//! The kernel command line, kernel-command-line(7): what it says to us.

use std::path::PathBuf;

use agentd_trust::Policy;
use agentd_unit::UnitName;

use crate::journal::LogLevel;

/// The words that agentd knows; the rest belongs to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// `agentd.unit=NAME`, or `rescue.target`/`emergency.target` by the words `rescue`, `single`, `emergency`.
    pub unit: Option<UnitName>,
    /// `agentd.log_level=LEVEL`.
    pub log_level: Option<LogLevel>,
    /// `agentd.trust=POLICY`.
    pub trust: Option<Policy>,
    /// `agentd.unit_path=DIR[:DIR…]`.
    pub unit_path: Vec<PathBuf>,
    /// `quiet`: only warnings on the console.
    pub quiet: bool,
    /// Words that begin with `agentd.` and mean nothing, with the reason.
    pub problems: Vec<String>,
}

impl CommandLine {
    /// Reads the text of /proc/cmdline. Quotes hold words with spaces together.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut line = Self::default();
        for word in words(text) {
            line.take(&word);
        }
        line
    }

    fn take(&mut self, word: &str) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "quiet" => self.quiet = true,
            "rescue" | "single" | "s" | "S" | "1" => self.unit = UnitName::parse("rescue.target").ok(),
            "emergency" | "-b" => self.unit = UnitName::parse("emergency.target").ok(),
            "agentd.unit" => match UnitName::parse_lenient(value) {
                Ok(unit) => self.unit = Some(unit),
                Err(e) => self.problems.push(format!("{word}: {e}")),
            },
            "agentd.log_level" => match value.parse() {
                Ok(level) => self.log_level = Some(level),
                Err(e) => self.problems.push(format!("{word}: {e}")),
            },
            "agentd.trust" => match value.parse() {
                Ok(policy) => self.trust = Some(policy),
                Err(e) => self.problems.push(format!("{word}: {e}")),
            },
            "agentd.unit_path" => {
                self.unit_path.extend(value.split(':').filter(|d| !d.is_empty()).map(PathBuf::from));
            }
            _ if key.starts_with("agentd.") => self.problems.push(format!("{word}: no such setting")),
            _ => {}
        }
    }
}

/// Splits at white space outside of double quotes, and drops the quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_ascii_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_read() {
        let line = CommandLine::parse(
            "console=ttyS0 quiet agentd.unit=web agentd.trust=warn agentd.log_level=debug agentd.unit_path=/a:/b \"x=a b\"\n",
        );
        assert_eq!(line.unit.unwrap().as_str(), "web.service");
        assert_eq!(line.trust, Some(Policy::Warn));
        assert!(line.quiet && line.log_level.is_some() && line.problems.is_empty());
        assert_eq!(line.unit_path, [PathBuf::from("/a"), "/b".into()]);
    }

    #[test]
    fn rescue_and_emergency_name_their_targets() {
        for (word, unit) in
            [("rescue", "rescue.target"), ("single", "rescue.target"), ("emergency", "emergency.target")]
        {
            assert_eq!(CommandLine::parse(word).unit.unwrap().as_str(), unit, "{word}");
        }
    }

    #[test]
    fn a_word_that_means_nothing_is_reported() {
        let line = CommandLine::parse("agentd.trust=maybe agentd.colour=red");
        assert_eq!(line.problems.len(), 2);
        assert_eq!(line.trust, None);
    }
}
