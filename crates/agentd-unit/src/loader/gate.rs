//! The trust gate: whoever decides what may run sees the very bytes that are parsed next, and nothing is parsed
//! that it does not admit.

use std::path::Path;
use std::sync::Arc;

use crate::name::UnitName;

/// One file of a unit: main file or drop-in.
#[derive(Debug, Clone, Copy)]
pub struct UnitFile<'a> {
    /// The name below its tier: `web.service.toml`, `web.service.d/10-limits.toml`.
    pub name: &'a str,
    /// Where it lies.
    pub path: &'a Path,
    /// What it says.
    pub bytes: &'a [u8],
}

/// What the gate decides on. Files below `control/` are not among them: the manager wrote them itself, and all that
/// they may do is bound resources.
#[derive(Debug, Clone, Copy)]
pub struct UnitFiles<'a> {
    /// The unit that is to be made of them.
    pub unit: &'a UnitName,
    /// The main file first, then the drop-ins in the order in which they apply.
    pub files: &'a [UnitFile<'a>],
    /// The bytes of the signature file beside the main file, if there is one.
    pub signature: Option<&'a Arc<[u8]>>,
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Admitted,
    /// Go on, but say this in the unit's `status`.
    Warned(String),
    /// The unit is not loaded, for this reason.
    Refused(String),
}

/// Decides before parsing what is loaded. Two threads may ask at once: a gate has no order to go by.
pub trait Gate: Sync {
    /// Whether these bytes may become a unit.
    fn admit(&self, files: &UnitFiles<'_>) -> Admission;
}

/// Lets everything in: for policy `off`, and for tools that only look.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn admit(&self, _files: &UnitFiles<'_>) -> Admission {
        Admission::Admitted
    }
}
