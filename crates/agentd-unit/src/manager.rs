//! `agentd.toml`: the manager's own settings, in the same language and with the same diagnostics as units.

use std::sync::Arc;

use crate::assignment::{Assignment, Assignments, Raw};
use crate::diagnostic::{Diagnostic, quote};
use crate::source::SourceFile;
use crate::toml_front;

/// The section of the file.
const SECTION: &str = "Manager";

/// What a setting is kept in.
type Slot = fn(&mut ManagerSettings) -> &mut Option<String>;

/// The keys, with where each is kept.
const KEYS: [Key; 3] = [
    Key {
        name: "Trust",
        slot: |s| &mut s.trust,
        doc: "What may run: with `enforce` only what is signed by a known key, with `warn` everything, and what is not \
              signed is told, and with `off` everything. Default: `enforce` as the first process of a machine or a \
              container, else `warn`.",
    },
    Key {
        name: "LogLevel",
        slot: |s| &mut s.log_level,
        doc: "How much the manager tells: `debug`, `info`, `notice`, `warning` or `err`, or the number of syslog(3). \
              Default: `info`.",
    },
    Key {
        name: "WatchUnits",
        slot: |s| &mut s.watch_units,
        doc: "What happens to unit files that change on disk: with `off` nothing by itself; with `load` they are loaded \
              as by `agentctl daemon-reload`; with `apply` what changed is then started, restarted or stopped as by \
              `agentctl apply`. A change is taken up when the folders of units have been quiet for 0.3 seconds and no \
              file is open that was written to, and after 5 seconds in any case. Default: `off`.",
    },
];

/// One setting.
struct Key {
    name: &'static str,
    slot: Slot,
    /// What it is for, for the manual.
    doc: &'static str,
}

/// The settings, each with what it is for.
pub(crate) fn documentation() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter().map(|key| (key.name, key.doc))
}

/// `[Manager]`. The words are checked by whoever knows them, with the place in `places`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagerSettings {
    /// `Trust`: enforce, warn or off.
    pub trust: Option<String>,
    /// `LogLevel`: a word or number of syslog(3).
    pub log_level: Option<String>,
    /// `WatchUnits`: off, load or apply.
    pub watch_units: Option<String>,
}

impl ManagerSettings {
    /// Reads the file's text. Unknown sections and keys are errors; keys and sections that begin with `X-` are left
    /// alone.
    #[must_use]
    pub fn parse(source: &Arc<SourceFile>) -> (Self, Vec<Diagnostic>) {
        let mut read = Assignments::default();
        let mut diagnostics = toml_front::read(source, &mut read);
        let mut settings = Self::default();
        for section in
            read.sections.iter().filter(|name| name.text != SECTION && !name.text.starts_with("X-"))
        {
            let message = format!("there is no section [{}]", quote(&section.text));
            let help = "the manager's settings stand in [Manager]".to_owned();
            diagnostics.push(Diagnostic::error(source, section.span.clone(), message).with_help(help));
        }
        let is_ours = |section: usize| read.sections.get(section).is_some_and(|name| name.text == SECTION);
        for assignment in
            read.assignments.iter().filter(|a| is_ours(a.section) && !a.key.text.starts_with("X-"))
        {
            if let Err(diagnostic) = settings.take(source, assignment) {
                diagnostics.push(diagnostic);
            }
        }
        (settings, diagnostics)
    }

    fn take(&mut self, source: &Arc<SourceFile>, assignment: &Assignment<'_>) -> Result<(), Diagnostic> {
        let key = &assignment.key;
        let Some(known) = KEYS.iter().find(|known| known.name == key.text) else {
            let names: Vec<&str> = KEYS.iter().map(|known| known.name).collect();
            let message = format!("[Manager] has no setting {}", quote(&key.text));
            let help = format!("the settings are {}", names.join(", "));
            return Err(Diagnostic::error(source, key.span.clone(), message).with_help(help));
        };
        match &assignment.value.raw {
            Raw::Text(text) => *(known.slot)(self) = Some(text.to_string()),
            Raw::Integer(number) => *(known.slot)(self) = Some(number.to_string()),
            _ => {
                let message =
                    format!("[Manager] {}: is {}, not a string", key.text, assignment.value.shape());
                return Err(Diagnostic::error(source, assignment.value.span.clone(), message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (ManagerSettings, Vec<String>) {
        let source = Arc::new(SourceFile::new(std::path::Path::new("/etc/agentd/agentd.toml"), text));
        let (settings, diagnostics) = ManagerSettings::parse(&source);
        (settings, diagnostics.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn each_setting_is_read() {
        let (settings, errors) =
            parse("[Manager]\nTrust = \"warn\"\nLogLevel = 7\nWatchUnits = \"load\"\nX-Note = \"mine\"\n");
        assert_eq!(errors, [""; 0]);
        assert_eq!((settings.trust.as_deref(), settings.log_level.as_deref()), (Some("warn"), Some("7")));
        assert_eq!(settings.watch_units.as_deref(), Some("load"));
    }

    #[test]
    fn what_is_no_setting_is_told_with_its_place() {
        for (text, place) in [
            ("[Manager]\nTrsut = \"warn\"\n", ":2:1:"),
            ("[Service]\n", ":1:"),
            ("[Manager]\nTrust = [1]\n", ":2:9:"),
            ("[Manager\n", ":1:"),
        ] {
            let (_, errors) = parse(text);
            assert!(errors.len() == 1 && errors[0].contains(place), "{text}: {errors:?}");
        }
    }
}
