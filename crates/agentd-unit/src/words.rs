//! The words of settings that choose one of a few, both ways: from the file and for `show`.

use crate::sections::{AgentKind, AgentSandbox, ControlAccess, KillMode, NotifyAccess, Restart, ServiceType};

/// A choice with a word for each value.
pub trait Words: Copy + PartialEq + 'static {
    /// Each value with its word, in the order in which help lists them.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word.
    #[must_use]
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }

    /// The word of a value.
    #[must_use]
    fn as_word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

impl Words for ServiceType {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("simple", Self::Simple),
        ("exec", Self::Exec),
        ("notify", Self::Notify),
        ("notify-reload", Self::NotifyReload),
        ("forking", Self::Forking),
        ("oneshot", Self::Oneshot),
        ("idle", Self::Idle),
    ];
}

impl Words for Restart {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("no", Self::No),
        ("always", Self::Always),
        ("on-success", Self::OnSuccess),
        ("on-failure", Self::OnFailure),
        ("on-abnormal", Self::OnAbnormal),
        ("on-abort", Self::OnAbort),
        ("on-watchdog", Self::OnWatchdog),
    ];
}

impl Words for KillMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("control-group", Self::ControlGroup),
        ("mixed", Self::Mixed),
        ("process", Self::Process),
        ("none", Self::None),
    ];
}

impl Words for NotifyAccess {
    const WORDS: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("main", Self::Main), ("exec", Self::Exec), ("all", Self::All)];
}

impl Words for AgentKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("exec", Self::Exec), ("go", Self::Go), ("python", Self::Python)];
}

impl Words for AgentSandbox {
    const WORDS: &'static [(&'static str, Self)] = &[("none", Self::None), ("strict", Self::Strict)];
}

impl Words for ControlAccess {
    const WORDS: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("self", Self::Own), ("all", Self::All)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back() {
        fn check<T: Words + std::fmt::Debug>() {
            for (word, value) in T::WORDS {
                assert_eq!(T::from_word(word), Some(*value), "{word}");
                assert_eq!(value.as_word(), *word);
            }
        }
        check::<ServiceType>();
        check::<Restart>();
        check::<KillMode>();
        check::<NotifyAccess>();
        check::<AgentKind>();
        check::<ControlAccess>();
        check::<AgentSandbox>();
    }
}
