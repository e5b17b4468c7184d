//! Unit names: `NAME.TYPE`, templates `NAME@.TYPE` and instances `NAME@INSTANCE.TYPE`, systemd.unit(5).

use std::borrow::Borrow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::bytes;

/// The longest name, in bytes, as in systemd (UNIT_NAME_MAX).
const NAME_MAX: usize = 255;

/// By byte: whether names have it.
const ALLOWED: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < allowed.len() {
        let c = byte as u8;
        allowed[byte] = c.is_ascii_alphanumeric() || matches!(c, b':' | b'-' | b'_' | b'.' | b'\\' | b'@');
        byte += 1;
    }
    allowed
};

/// The kind of a unit: the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitType {
    /// Runs processes.
    Service,
    /// Starts another unit by the clock.
    Timer,
    /// Listens, and starts a service when something comes.
    Socket,
    /// Gathers units.
    Target,
    /// A branch of the cgroup tree.
    Slice,
    /// Watches a path.
    Path,
}

impl UnitType {
    /// All types, in the order in which systemd lists them.
    pub const ALL: [Self; 6] =
        [Self::Service, Self::Timer, Self::Socket, Self::Target, Self::Slice, Self::Path];

    /// The type that a name ends in.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let dot = name.bytes().rposition(|byte| byte == b'.')?;
        Self::of_ending(name.get(dot + 1..)?)
    }

    /// The type of this name: `service`.
    fn of_ending(ending: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit_type| unit_type.as_str() == ending)
    }

    /// The ending without its dot.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Timer => "timer",
            Self::Socket => "socket",
            Self::Target => "target",
            Self::Slice => "slice",
            Self::Path => "path",
        }
    }
}

impl fmt::Display for UnitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no unit name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitNameError {
    /// There is no type ending.
    #[error("'{0}' has no type; a unit's name ends in .service, .timer, .socket, .target, .slice or .path")]
    NoType(String),
    /// Nothing stands before the type, or before the `@`.
    #[error("'{0}' has nothing before its type")]
    Empty(String),
    /// A character that no unit name may have.
    #[error("'{name}' has the character {character:?}; a unit's name is made of letters, digits and :-_.\\@")]
    Character {
        /// The text.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
    /// Longer than 255 bytes.
    #[error("the name '{}…' is longer than 255 bytes", .0.chars().take(40).collect::<String>())]
    TooLong(String),
}

/// A valid unit name. Cheap to clone; ordered by its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(Arc<str>);

impl UnitName {
    /// Checks a full name such as `web.service`.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, UnitNameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    /// Whether [`Self::parse`] takes a text.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub(crate) fn check(text: &str) -> Result<(), UnitNameError> {
        if text.len() > NAME_MAX {
            return Err(UnitNameError::TooLong(text.to_owned()));
        }
        if let Some(place) = text.bytes().position(|byte| !ALLOWED[usize::from(byte)]) {
            // All before is ASCII, so a character begins there.
            let character = text[place..].chars().next().unwrap_or_default();
            return Err(UnitNameError::Character { name: text.to_owned(), character });
        }
        let dot = text.bytes().rposition(|byte| byte == b'.');
        let dot = dot.ok_or_else(|| UnitNameError::NoType(text.to_owned()))?;
        let (stem, ending) = (&text[..dot], &text[dot + 1..]);
        if UnitType::of_ending(ending).is_none() {
            return Err(UnitNameError::NoType(text.to_owned()));
        }
        if stem.is_empty() || stem.starts_with('@') {
            return Err(UnitNameError::Empty(text.to_owned()));
        }
        Ok(())
    }

    /// The unit that a file such as `web.service.toml` or `web.service` is for.
    ///
    /// # Errors
    /// The first rule that the name breaks.
    pub fn of_file(path: &Path) -> Result<Self, UnitNameError> {
        let file = path.file_name().map(|file| file.to_string_lossy()).unwrap_or_default();
        Self::parse(file.strip_suffix(".toml").unwrap_or(&file))
    }

    /// As a person types it: a name without a type is a service, as systemctl has it.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse_lenient(text: &str) -> Result<Self, UnitNameError> {
        match Self::parse(text) {
            Err(UnitNameError::NoType(_)) => Self::parse(&format!("{text}.service")),
            result => result,
        }
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The type.
    #[must_use]
    pub fn unit_type(&self) -> UnitType {
        UnitType::of_name(&self.0).unwrap_or(UnitType::Service)
    }

    /// The name without its type: `web`, `agent@2` (specifier `%N`, unescaped only where asked).
    #[must_use]
    pub fn stem(&self) -> &str {
        let dot = self.0.bytes().rposition(|byte| byte == b'.');
        dot.map_or(&self.0, |dot| &self.0[..dot])
    }

    /// What stands before the `@`, or the stem: `agent` (specifier `%p`).
    #[must_use]
    pub fn prefix(&self) -> &str {
        let stem = self.stem();
        bytes::find(b'@', stem.as_bytes()).map_or(stem, |at| &stem[..at])
    }

    /// What stands after the `@`: `Some("2")` for an instance, `Some("")` for a template.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        let at = bytes::find(b'@', self.0.as_bytes())?;
        self.stem().get(at + 1..)
    }

    /// Whether it is a template such as `agent@.service`, which itself never runs.
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.instance() == Some("")
    }

    /// The template of an instance: `agent@.service` for `agent@2.service`.
    #[must_use]
    pub fn template(&self) -> Option<Self> {
        match self.instance() {
            Some(instance) if !instance.is_empty() => {
                Some(Self(format!("{}@.{}", self.prefix(), self.unit_type()).into()))
            }
            _ => None,
        }
    }

    /// The instance of a template: `agent@2.service` for `agent@.service` and `2`.
    #[must_use]
    pub fn of_instance(template: &Self, instance: &str) -> Option<Self> {
        Self::parse(&format!("{}@{instance}.{}", template.prefix(), template.unit_type())).ok()
    }

    /// The same name with another type: `web.timer` for `web.service`.
    #[must_use]
    pub fn with_type(&self, unit_type: UnitType) -> Self {
        Self(format!("{}.{unit_type}", self.stem()).into())
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for UnitName {
    type Err = UnitNameError;

    fn from_str(text: &str) -> Result<Self, UnitNameError> {
        Self::parse(text)
    }
}

impl Borrow<str> for UnitName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
