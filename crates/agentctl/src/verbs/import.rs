//! `import`: unit files in systemd's syntax, rewritten in TOML.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd_unit::{SourceFile, UnitName, import as language};
use serde::Serialize;

use super::analyze::Finding;
use super::schema;
use crate::args::definitions::Import;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::place;
use crate::print::json;

/// What came of one file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Imported {
    file: PathBuf,
    /// Where the text was written, if it was.
    written: Option<PathBuf>,
    text: String,
    notes: Vec<Finding>,
}

/// `agentctl import FILE…`: 1 if a line of a file is wrong. What agentd does not have stays as a comment and is told.
pub(crate) fn import(context: &Context, arguments: &Import, out: &mut impl Write) -> Outcome {
    let mut all = Vec::new();
    for file in &arguments.files {
        all.push(one(context, file, arguments.out.as_deref())?);
    }
    for finding in all.iter().flat_map(|imported| &imported.notes) {
        eprintln!("{}", finding.text());
    }
    let has_error = all.iter().any(|imported| imported.notes.iter().any(Finding::is_error));
    if context.is_json() {
        json(&all, out)?;
    } else {
        write(&all, context.quiet, out)?;
    }
    Ok(if has_error { Exit::Failed } else { Exit::Done })
}

fn write(all: &[Imported], quiet: bool, out: &mut impl Write) -> std::io::Result<()> {
    for imported in all {
        match &imported.written {
            Some(_) if quiet => {}
            Some(path) => writeln!(out, "Wrote {}.", path.display())?,
            None if all.len() == 1 => write!(out, "{}", imported.text)?,
            None => writeln!(out, "# {}\n{}", imported.file.display(), imported.text)?,
        }
    }
    Ok(())
}

fn one(context: &Context, file: &Path, folder: Option<&Path>) -> Result<Imported, Failure> {
    let (unit, name) = names(file).ok_or_else(|| Failure::Other {
        exit: Exit::Failed,
        message: format!(
            "{} is neither a unit file such as web.service nor a drop-in such as web.service.d/limits.conf",
            file.display()
        ),
    })?;
    let bytes = fs::read(file).map_err(|error| place::failed(file, "cannot be read", &error))?;
    let imported = language::to_toml(&Arc::new(SourceFile::from_bytes(file, &bytes)), &unit);
    let text = format!("#:schema {}\n{}", schema::INSTALLED, imported.text);
    let note = |note| Finding::of_text(&unit, note, context.style.is_coloured());
    let written = folder.map(|folder| folder.join(name));
    if let Some(path) = &written {
        place::create(path, &text, 0o644)?;
    }
    Ok(Imported { file: file.to_owned(), written, text, notes: imported.notes.iter().map(note).collect() })
}

/// The unit that a file is for, and the name of the file in TOML.
fn names(file: &Path) -> Option<(UnitName, PathBuf)> {
    let name = file.file_name()?.to_str()?;
    if let Some(stem) = name.strip_suffix(".conf") {
        let folder = file.parent()?.file_name()?.to_str()?;
        let owner = folder.strip_suffix(".d")?;
        return Some((UnitName::parse(owner).ok()?, Path::new(folder).join(format!("{stem}.toml"))));
    }
    Some((UnitName::parse(name).ok()?, PathBuf::from(format!("{name}.toml"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_for_its_unit_and_a_drop_in_for_its_owner() {
        for (file, expected) in [
            ("/lib/web.service", Some(("web.service", "web.service.toml"))),
            ("a@.timer", Some(("a@.timer", "a@.timer.toml"))),
            ("/etc/web.service.d/10-a.conf", Some(("web.service", "web.service.d/10-a.toml"))),
            ("10-a.conf", None),
            ("readme.txt", None),
        ] {
            let found = names(Path::new(file));
            let found = found.as_ref().map(|(unit, name)| (unit.as_str(), name.to_str().unwrap()));
            assert_eq!(found, expected, "{file}");
        }
    }
}
