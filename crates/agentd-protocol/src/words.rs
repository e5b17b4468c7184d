//! systemd's words for states and choices, as they stand on the wire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text is none of the words that are known for its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {kind}; it is one of {known}")]
pub struct WordError {
    /// What was read.
    pub text: String,
    /// What it should have been, for people: "job mode".
    pub kind: &'static str,
    /// All words, separated by commas.
    pub known: String,
}

/// Enums whose variants are words: printed, read and sent as that word.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $kind:literal { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of this type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = WordError;

            fn from_str(text: &str) -> Result<Self, WordError> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text).ok_or_else(|| WordError {
                    text: text.to_owned(),
                    kind: $kind,
                    known: Self::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

words! {
    /// What a unit is for others, systemd's `ActiveState`.
    ActiveState, "active state" {
        /// Down.
        #[default]
        Inactive = "inactive",
        /// Coming up, or waiting to be restarted.
        Activating = "activating",
        /// Up.
        Active = "active",
        /// Up, and reading its configuration again.
        Reloading = "reloading",
        /// Going down.
        Deactivating = "deactivating",
        /// Down after a failure.
        Failed = "failed",
    }
}

words! {
    /// What came of reading a unit's files, systemd's `LoadState`.
    LoadState, "load state" {
        /// The definition is whole.
        Loaded = "loaded",
        /// No search path has a file for it.
        #[default]
        NotFound = "not-found",
        /// A file was found but is not valid.
        BadSetting = "bad-setting",
        /// A file was found but could not be read or may not be trusted.
        Error = "error",
        /// It must not start.
        Masked = "masked",
    }
}

words! {
    /// Whether a unit is part of what boots, systemd's `UnitFileState`, systemctl(1) `is-enabled`.
    UnitFileState, "unit file state" {
        /// `[Install]` counts.
        Enabled = "enabled",
        /// `[Install]` counts until the next boot.
        EnabledRuntime = "enabled-runtime",
        /// It is another name of a unit.
        Alias = "alias",
        /// It must not start.
        Masked = "masked",
        /// It must not start until the next boot.
        MaskedRuntime = "masked-runtime",
        /// It has no `[Install]`.
        #[default]
        Static = "static",
        /// Not it, but what comes with it may be enabled: its timer, or instances of the template.
        Indirect = "indirect",
        /// It has `[Install]`, and a no stands against it.
        Disabled = "disabled",
        /// The manager made it from another file.
        Generated = "generated",
        /// Its file cannot be used.
        Bad = "bad",
    }
}

words! {
    /// What was done to a file, as in the answers of systemd's `EnableUnitFiles`.
    FileChangeKind, "change of a file" {
        /// It was made.
        #[default]
        Created = "created",
        /// It was taken away.
        Removed = "removed",
    }
}

words! {
    /// What `apply` does with a unit whose definition changed.
    PlannedAction, "action" {
        /// It is stopped: its definition is gone.
        Stop = "stop",
        /// It is stopped and started again.
        Restart = "restart",
        /// It is started.
        Start = "start",
        /// The reload itself brings the new definition into force.
        #[default]
        Reload = "reload",
        /// It goes on as it is, since its new files cannot be used.
        Keep = "keep",
    }
}

words! {
    /// What is known of a unit's signature.
    TrustState, "trust state" {
        /// The policy is off, or there is nothing to sign.
        #[default]
        Unchecked = "unchecked",
        /// Signed by a known key, and unchanged since.
        Trusted = "trusted",
        /// There is no signature; the policy lets it run.
        Unsigned = "unsigned",
        /// The signature does not hold, or there is none and the policy asks for one.
        Refused = "refused",
    }
}

words! {
    /// What happens to jobs that are in the way, `--job-mode` of systemctl(1).
    JobMode, "job mode" {
        /// They are replaced.
        #[default]
        Replace = "replace",
        /// They make the request fail.
        Fail = "fail",
        /// Every unit that is not part of the transaction is stopped.
        Isolate = "isolate",
        /// Only this unit, whatever it depends on.
        IgnoreDependencies = "ignore-dependencies",
        /// Only this unit, but in its order.
        IgnoreRequirements = "ignore-requirements",
        /// They are replaced, and nothing replaces the new ones.
        ReplaceIrreversibly = "replace-irreversibly",
    }
}

words! {
    /// What came of a job.
    JobResult, "job result" {
        /// Done.
        #[default]
        Done = "done",
        /// Another job or a person called it off.
        Canceled = "canceled",
        /// It took too long.
        Timeout = "timeout",
        /// The unit failed.
        Failed = "failed",
        /// Something that it requires failed.
        Dependency = "dependency",
        /// There was nothing to do.
        Skipped = "skipped",
        /// The unit cannot do that.
        Invalid = "invalid",
        /// An assert of the unit does not hold.
        Assert = "assert",
    }
}

words! {
    /// Which processes of a unit get a signal, `--kill-whom` of systemctl(1).
    KillWhom, "choice of processes" {
        /// Every process.
        #[default]
        All = "all",
        /// The main process.
        Main = "main",
        /// The control process.
        Control = "control",
    }
}

words! {
    /// How the manager ends.
    ShutdownKind, "kind of shutdown" {
        /// Switch the machine off.
        #[default]
        Poweroff = "poweroff",
        /// Start it again.
        Reboot = "reboot",
        /// Stop it, power on.
        Halt = "halt",
        /// End the manager's process.
        Exit = "exit",
    }
}

words! {
    /// Whether a job has begun.
    JobState, "job state" {
        /// It waits for what stands before it.
        #[default]
        Waiting = "waiting",
        /// It has begun.
        Running = "running",
    }
}

words! {
    /// Where the lines of a unit are kept.
    LogSource, "log source" {
        /// In the manager's own files; the entries come with the reply.
        #[default]
        Embedded = "embedded",
        /// In the journal; the client asks journald.
        Journal = "journal",
    }
}

words! {
    /// Where a line came from.
    LogStream, "log stream" {
        /// Standard output or standard error of the unit: one pipe carries both, so that their order is kept.
        #[default]
        Output = "output",
        /// The manager, about the unit.
        Manager = "manager",
    }
}

words! {
    /// How the whole stands, as `systemctl is-system-running` has it.
    SystemState, "system state" {
        /// The first target is not reached yet.
        #[default]
        Starting = "starting",
        /// All is well.
        Running = "running",
        /// At least one unit has failed.
        Degraded = "degraded",
        /// A shutdown is under way.
        Stopping = "stopping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_printed_read_and_sent_alike() {
        for word in JobMode::ALL {
            assert_eq!(word.as_str().parse(), Ok(*word));
            assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
        }
        for word in LoadState::ALL {
            assert_eq!(word.as_str().parse(), Ok(*word));
            assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
        }
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_ones() {
        let error = "now".parse::<JobMode>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'now' is no job mode; it is one of replace, fail, isolate, ignore-dependencies, \
             ignore-requirements, replace-irreversibly"
        );
    }
}
