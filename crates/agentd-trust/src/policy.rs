//! What a machine's policy makes of a verdict.

use std::fmt;
use std::str::FromStr;

use crate::{KeyId, TrustError};

/// How strict a machine is: `Trust` in `agentd.toml`, `agentd.trust=`, `--trust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nothing runs that is not signed by a known key and unaltered.
    Enforce,
    /// Everything runs; what `Enforce` would refuse is said aloud.
    Warn,
    /// Everything runs, and nothing is said.
    Off,
}

impl Policy {
    const ALL: [Self; 3] = [Self::Enforce, Self::Warn, Self::Off];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let known = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        known.ok_or_else(|| PolicyError(text.to_owned()))
    }
}

/// The word is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no trust policy; use enforce, warn or off")]
pub struct PolicyError(pub String);

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Signed by these known keys, and unaltered.
    Trusted {
        /// The keys, sorted; at least one.
        keys: Vec<KeyId>,
    },
    /// There is no signature.
    Unsigned,
    /// There is a signature, and it does not hold.
    Refused(TrustError),
}

impl fmt::Display for Verdict {
    /// One line: `signed by KEY, KEY`, or what is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted { keys } => {
                let list: Vec<String> = keys.iter().map(KeyId::to_string).collect();
                write!(f, "signed by {}", list.join(", "))
            }
            Self::Unsigned => f.write_str("not signed; sign it with 'agentctl sign --key KEY UNIT-FILE'"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

/// Whether it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allowed,
    /// Yes, but the line is to be logged and shown.
    AllowedWithWarning(String),
    /// No, and the line says why.
    Refused(String),
}

/// What `policy` makes of `verdict`: the one place where both meet.
#[must_use]
pub fn decide(policy: Policy, verdict: &Verdict) -> Decision {
    match (policy, verdict) {
        (Policy::Off, _) | (_, Verdict::Trusted { .. }) => Decision::Allowed,
        (Policy::Warn, verdict) => Decision::AllowedWithWarning(verdict.to_string()),
        (Policy::Enforce, verdict) => Decision::Refused(verdict.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_answers_each_verdict() {
        use {Decision as D, Policy as P, Verdict as V};
        let id: KeyId = "0123456789abcdef".parse().unwrap();
        let altered = TrustError::BadSignature { id };
        let unsigned = "not signed; sign it with 'agentctl sign --key KEY UNIT-FILE'".to_owned();
        let line = altered.to_string();

        for (policy, verdict, decision) in [
            (P::Enforce, V::Trusted { keys: vec![id] }, D::Allowed),
            (P::Enforce, V::Unsigned, D::Refused(unsigned.clone())),
            (P::Enforce, V::Refused(altered.clone()), D::Refused(line.clone())),
            (P::Warn, V::Trusted { keys: vec![id] }, D::Allowed),
            (P::Warn, V::Unsigned, D::AllowedWithWarning(unsigned)),
            (P::Warn, V::Refused(altered.clone()), D::AllowedWithWarning(line)),
            (P::Off, V::Trusted { keys: vec![id] }, D::Allowed),
            (P::Off, V::Unsigned, D::Allowed),
            (P::Off, V::Refused(altered), D::Allowed),
        ] {
            assert_eq!(decide(policy, &verdict), decision, "{policy} {verdict:?}");
        }
    }

    #[test]
    fn a_policy_reads_what_it_prints_and_nothing_else() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for text in ["", "Enforce", "on", "true", "warn ", "0"] {
            assert_eq!(text.parse::<Policy>(), Err(PolicyError(text.to_owned())), "{text:?}");
        }
    }
}
