//! `edit`: a drop-in, or a copy of the whole unit file, through an editor or from standard input. What has an error is
//! never saved.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use agentd_unit::{LoadState, OpenGate, SourceFile, Unit, UnitName};

use super::analyze::of_texts;
use super::schema;
use crate::args::definitions::Edit;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::place::{self, Place};

/// How lines begin that are shown to the editor and are no part of the text.
const SHOWN: &str = "#|";

/// The editors that are tried where no variable names one, as systemctl tries them.
const EDITORS: [&str; 4] = ["editor", "nano", "vim", "vi"];

/// `agentctl edit UNIT`.
pub(crate) fn edit(context: &Context, edit: &Edit, out: &mut impl Write) -> Outcome {
    let mut place = Place::find(context)?;
    let unit = place.loader()?.load_unit(&edit.unit, &OpenGate);
    check(&edit.unit, &unit)?;
    let target = target(&place, edit, &unit)?;
    let old = fs::read_to_string(&target).ok();
    let start = match &old {
        Some(old) => old.clone(),
        None if edit.full => unit.sources.first().map(|source| source.text().to_owned()).unwrap_or_default(),
        None => head(&unit.name),
    };
    let text = if edit.stdin { from_stdin()? } else { from_editor(&target, &unit, &start)? };
    if text.trim().is_empty() || (text == start && (old.is_some() || !edit.full)) {
        writeln!(out, "{} is left as it was: nothing is changed.", target.display())?;
        return Ok(Exit::Done);
    }
    validate(context, &unit, &target, &text, edit)?;
    place::write(&target, &text, 0o644)?;
    if !context.quiet {
        writeln!(
            out,
            "Wrote {}. It counts from the next start; 'agentctl apply' restarts what runs.",
            target.display()
        )?;
    }
    place.reload()?;
    if place.enforces {
        let file = unit.fragment.as_deref().filter(|_| !edit.full).unwrap_or(&target);
        eprintln!(
            "{} is not signed as it is now, and the manager runs only what is signed: sign it with \
             'agentctl sign --key FILE {}', then run 'agentctl daemon-reload'.",
            unit.name,
            file.display()
        );
    }
    Ok(Exit::Done)
}

fn check(asked: &UnitName, unit: &Unit) -> Result<(), Failure> {
    let refuse = |message: String, exit| Err(Failure::Other { exit, message });
    match &unit.load {
        LoadState::NotFound => {
            let message = format!("there is no unit {asked}; 'agentctl new NAME' writes one");
            return refuse(message, Exit::NoSuchUnit);
        }
        LoadState::Masked => {
            let message = format!("{asked} is masked; 'agentctl unmask {asked}' takes that back");
            return refuse(message, Exit::Failed);
        }
        LoadState::Error(why) => return refuse(format!("{asked} cannot be edited: {why}"), Exit::Failed),
        LoadState::Loaded | LoadState::BadSetting(_) => {}
    }
    let owner = unit.fragment.as_deref().and_then(|path| UnitName::of_file(path).ok());
    match owner {
        Some(owner) if owner.unit_type() != unit.name.unit_type() => {
            refuse(format!("{asked} comes from {owner}; edit that"), Exit::Failed)
        }
        _ => Ok(()),
    }
}

/// The file that is to be written.
fn target(place: &Place, edit: &Edit, unit: &Unit) -> Result<PathBuf, Failure> {
    let folder = place.units(edit.runtime)?;
    if edit.full {
        let file = unit.fragment.as_deref().and_then(Path::file_name);
        return Ok(file.map_or_else(|| folder.join(format!("{}.toml", unit.name)), |file| folder.join(file)));
    }
    let stem = edit.drop_in.trim_end_matches(".toml");
    if stem.is_empty() || stem.starts_with('.') || stem.contains('/') {
        return Err(Failure::Usage(format!("--drop-in: '{}' is no name of a file", edit.drop_in)));
    }
    Ok(folder.join(format!("{}.d/{stem}.toml", unit.name)))
}

fn head(unit: &UnitName) -> String {
    format!(
        "#:schema {}\n# A drop-in of {unit}. Lists are added to, an empty list takes back what was set before, and all \
         else replaces.\n",
        schema::INSTALLED
    )
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| Failure::Other {
        exit: Exit::Failed,
        message: format!("standard input cannot be read: {error}"),
    })?;
    Ok(text)
}

/// Lets a person edit the text, with the present definition below it.
fn from_editor(target: &Path, unit: &Unit, start: &str) -> Result<String, Failure> {
    let mut shown = start.to_owned();
    for source in unit.sources.iter().filter(|source| source.path() != target) {
        shown.push_str(&format!("{SHOWN}\n{SHOWN} {}\n", source.path().display()));
        source.text().lines().for_each(|line| shown.push_str(&format!("{SHOWN} {line}\n")));
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = std::env::temp_dir().join(format!("agentctl-{}-{name}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    written
        .and_then(|mut file| file.write_all(shown.as_bytes()))
        .map_err(|error| place::failed(&temporary, "cannot be written", &error))?;
    let edited = run_editor(&temporary).and_then(|()| {
        fs::read_to_string(&temporary).map_err(|error| place::failed(&temporary, "cannot be read", &error))
    });
    // Gone already where the editor has moved it.
    let _gone = fs::remove_file(&temporary);
    let lines = |text: String| {
        let kept = text.lines().filter(|line| !line.starts_with(SHOWN));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    edited.map(lines)
}

/// `$SYSTEMD_EDITOR`, `$EDITOR`, `$VISUAL`, else what is installed; a variable may have arguments.
fn run_editor(file: &Path) -> Result<(), Failure> {
    let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let named = ["SYSTEMD_EDITOR", "EDITOR", "VISUAL"].iter().find_map(variable);
    let candidates = named.map_or_else(|| EDITORS.map(str::to_owned).to_vec(), |editor| vec![editor]);
    for editor in &candidates {
        let mut words = editor.split_whitespace();
        let Some(program) = words.next() else { continue };
        match Command::new(program).args(words).arg(file).status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => {
                let message = format!("nothing is changed: the editor '{editor}' ended with {status}");
                return Err(Failure::Other { exit: Exit::Failed, message });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(place::failed(Path::new(program), "cannot be run as an editor", &error));
            }
        }
    }
    let message = format!("no editor is there ({}); set EDITOR, or use --stdin", candidates.join(", "));
    Err(Failure::Other { exit: Exit::Failed, message })
}

/// Reads the unit as it would be. With an error the text is kept beside, and nothing is saved.
fn validate(context: &Context, unit: &Unit, target: &Path, text: &str, edit: &Edit) -> Result<(), Failure> {
    let new = Arc::new(SourceFile::new(target, text));
    let mut sources: Vec<Arc<SourceFile>> = unit.sources.clone();
    if edit.full {
        sources.splice(0..1.min(sources.len()), [new]);
    } else {
        sources.retain(|source| source.path() != target);
        let by_name = |source: &Arc<SourceFile>| source.path().file_name().map(|name| name.to_owned());
        sources.push(new);
        if let Some(drop_ins) = sources.get_mut(1..) {
            drop_ins.sort_by_key(by_name);
        }
    }
    let findings = of_texts(&unit.name, &sources, context.style.is_coloured());
    findings.iter().for_each(|finding| eprintln!("{}", finding.text()));
    if !findings.iter().any(|finding| finding.is_error()) {
        return Ok(());
    }
    let message = if edit.stdin {
        format!("{} is not written: {} would not load with it", target.display(), unit.name)
    } else {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let kept = std::env::temp_dir().join(format!("agentctl-kept-{}-{name}", std::process::id()));
        place::create(&kept, text, 0o600)?;
        let (target, kept) = (target.display(), kept.display());
        format!(
            "{target} is not written: {} would not load with it; your text is kept in {kept}: correct it, then run \
             'agentctl edit --stdin … < {kept}'",
            unit.name
        )
    };
    Err(Failure::Other { exit: Exit::Failed, message })
}
