//! From systemd's syntax to TOML: a unit file or drop-in rewritten, its comments kept.
//!
//! What TOML says differently is said in the notes: what agentd does not support (it stays in the text as a comment),
//! lines that are wrong, and edges that order as well now.
//!
//! # Invariants
//!
//! - The text is a TOML file that loads without an error wherever the source does.
//! - Apart from the implied order of TOML's edges it makes the same unit as the source.

mod collect;
mod print;
mod value;

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::name::UnitName;
use crate::source::SourceFile;

/// What came of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The file in TOML.
    pub text: String,
    /// What could not be taken over as it was, each with its place in the source: errors for lines that are wrong,
    /// warnings for the rest. In the order of the file.
    pub notes: Vec<Diagnostic>,
}

/// Rewrites a file in systemd's syntax for the unit of this name (a template's name for a template's file; the owner's
/// name for a drop-in, whose path ends in `.conf`).
///
/// ```
/// use std::sync::Arc;
/// use agentd_unit::{SourceFile, UnitName, import};
///
/// let source = SourceFile::new("web.service", "[Service]\n# the web\nExecStart=/bin/web -v\n");
/// let name = UnitName::parse("web.service")?;
/// let imported = import::to_toml(&Arc::new(source), &name);
/// assert_eq!(imported.text, "[Service]\n# the web\nExecStart = [\"/bin/web\", \"-v\"]\n");
/// assert_eq!(imported.notes, []);
/// # Ok::<(), agentd_unit::UnitNameError>(())
/// ```
#[must_use]
pub fn to_toml(source: &Arc<SourceFile>, name: &UnitName) -> Imported {
    let mut document = collect::collect(source, name);
    document.notes.sort_by_key(|note| note.span.start);
    Imported { text: print::print(&document), notes: document.notes }
}
