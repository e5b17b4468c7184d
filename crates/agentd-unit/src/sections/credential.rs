//! Secrets of a service, systemd.exec(5) "CREDENTIALS".

use std::fmt;
use std::path::PathBuf;

/// One secret by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The name of its file.
    pub id: String,
    /// Where it comes from.
    pub source: CredentialSource,
}

impl Credential {
    /// Whether a secret can have this name: that of a file, of at most 255 bytes (`NAME_MAX`), without `/`, `:` and control
    /// characters.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        !text.is_empty()
            && !matches!(text, "." | "..")
            && text.len() <= 255
            && !text.contains(['/', ':'])
            && !text.chars().any(char::is_control)
    }
}

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// `LoadCredential` with a path: this file.
    File(PathBuf),
    /// `LoadCredential` without one, or with a name: the file of this name in a store.
    Store(String),
    /// `ImportCredential`: each file of the machine's stores whose name begins so.
    Import(String),
    /// `SetCredential`: this text, for where `LoadCredential` finds nothing.
    Text(Secret),
}

/// What is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
