//! What is wrong with a unit file: for people with its place in the text, for programs as fields.

use agentd_unit::{Diagnostic, UnitName};
use serde::Serialize;

use crate::print::plain;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Finding {
    /// The file or folder; `None`: it is about the unit as a whole.
    pub(crate) path: Option<String>,
    /// From 1, where there is a place.
    pub(crate) line: Option<usize>,
    /// From 1, in characters.
    pub(crate) column: Option<usize>,
    /// The unit, where there is one.
    pub(crate) unit: Option<String>,
    /// `error`: the unit cannot start; `warning`: it can.
    pub(crate) severity: &'static str,
    /// What.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// The report with the source line, for people.
    #[serde(skip)]
    report: Option<String>,
}

impl Finding {
    /// From reading a file.
    pub(crate) fn of_text(unit: &UnitName, found: &Diagnostic, colour: bool) -> Self {
        let (line, column) = found.source.line_column(found.span.start);
        Self {
            path: Some(found.source.path().display().to_string()),
            line: Some(line),
            column: Some(column),
            unit: Some(unit.to_string()),
            severity: if found.is_error() { "error" } else { "warning" },
            message: found.message.clone(),
            help: found.help.clone(),
            report: Some(found.render(colour)),
        }
    }

    /// About a unit, or a path, as a whole.
    pub(crate) fn whole(unit: Option<&UnitName>, path: Option<String>, message: impl Into<String>) -> Self {
        Self {
            path,
            line: None,
            column: None,
            unit: unit.map(UnitName::to_string),
            severity: "error",
            message: message.into(),
            help: None,
            report: None,
        }
    }

    /// The same with the file that it is about.
    pub(crate) fn at(self, path: String) -> Self {
        Self { path: Some(path), ..self }
    }

    /// Whether it keeps the unit from starting.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// The same as a warning.
    pub(crate) fn but_a_warning(self) -> Self {
        Self { severity: "warning", ..self }
    }

    /// The same with a word on what to do.
    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// For people: one line, or several with the source line.
    pub(crate) fn text(&self) -> String {
        if let Some(report) = &self.report {
            return report.clone();
        }
        let about = self.unit.as_ref().or(self.path.as_ref());
        let about = about.filter(|about| !self.message.starts_with(about.as_str()));
        let about = about.map(|about| format!("{about}: ")).unwrap_or_default();
        let help = self.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        plain(&format!("{}: {about}{}{help}", self.severity, self.message)).into_owned()
    }
}
