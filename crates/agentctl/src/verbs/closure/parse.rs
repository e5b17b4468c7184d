//! From the bytes of a definition to the unit, off the machine that will run it.

use std::sync::Arc;

use agentd_unit::{Diagnostic, LocalZone, ParseContext, SourceFile, SpecifierContext, Unit, parse_unit};

use super::{ClosureError, Definition};

/// Reads the unit. Warnings are the manager's to show; errors would keep the unit from ever running.
pub(crate) fn parse(definition: &Definition) -> Result<Unit, ClosureError> {
    let mut files = Vec::new();
    for (path, bytes) in &definition.files {
        let text = str::from_utf8(bytes).map_err(|error| {
            ClosureError::Invalid(vec![format!("{}: is not UTF-8: {error}", path.display())])
        })?;
        files.push(Arc::new(SourceFile::new(path, text)));
    }
    // The machine that will run the unit is another one, and its names are not known here. They may stand in settings that no
    // signature needs; a program's path with one of them names no file, which is then said.
    let context = ParseContext { specifiers: &SpecifierContext::elsewhere(), zone: &LocalZone::utc() };
    let parsed = parse_unit(&definition.unit, &files, &context);
    let errors: Vec<String> =
        parsed.diagnostics.iter().filter(|found| found.is_error()).map(Diagnostic::to_string).collect();
    if errors.is_empty() { Ok(parsed.unit) } else { Err(ClosureError::Invalid(errors)) }
}
