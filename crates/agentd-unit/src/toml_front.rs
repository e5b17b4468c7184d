//! The TOML front end: one file's text into [`Assignments`].

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::assignment::{Assignment, Assignments, Name, Raw, Value};
use crate::diagnostic::{Diagnostic, quote};
use crate::source::SourceFile;
use crate::toml_fast;

/// So many errors of one file are told; whoever mends these sees the others next.
pub(crate) const MAX_ERRORS: usize = 100;

/// Reads a file into an empty list; what is wrong with it. What could be read is there also where there are errors, so
/// that all are found in one pass.
#[must_use]
pub(crate) fn read<'a>(source: &'a Arc<SourceFile>, found: &mut Assignments<'a>) -> Vec<Diagnostic> {
    if source.broken().is_empty() && toml_fast::read(source.text(), found).is_some() {
        return Vec::new();
    }
    found.clear();
    read_fully(source, found)
}

/// The same by the full reader alone.
fn read_fully<'a>(source: &'a Arc<SourceFile>, found: &mut Assignments<'a>) -> Vec<Diagnostic> {
    let (document, syntax) = DeTable::parse_recoverable(source.text());
    let mut reader = Reader { source, problems: Vec::new() };
    for (name, value) in in_order(document.get_ref()) {
        reader.section(name, value, found);
    }
    let mut problems: Vec<_> =
        syntax.iter().take(MAX_ERRORS).map(|error| syntax_error(source, error)).collect();
    if problems.is_empty() {
        problems = reader.problems;
    } else {
        // The recovered tree guesses at what stood on a broken line, so only the syntax error speaks for that line.
        let broken: Vec<Range<usize>> =
            problems.iter().map(|p| line_around(source.text(), p.span.start)).collect();
        let sound = |span: &Range<usize>| !broken.iter().any(|line| line.contains(&span.start));
        // Behind an unclosed bracket the reader takes keys for sections; a section stands behind a bracket.
        let bracketed = |name: &Name<'_>| source.text()[..name.span.start].trim_end().ends_with('[');
        keep(found, bracketed, sound);
        problems.extend(reader.problems.into_iter().filter(|problem| sound(&problem.span)));
    }
    problems.extend(source.broken().iter().take(MAX_ERRORS).map(|at| {
        let help = "write the file as UTF-8 text".to_owned();
        Diagnostic::error(source, *at..*at + 1, "the line is no UTF-8 text").with_help(help)
    }));
    problems
}

/// Drops sections, with all that stands in them, and assignments by the place of their key.
fn keep(
    found: &mut Assignments<'_>,
    section: impl Fn(&Name<'_>) -> bool,
    sound: impl Fn(&Range<usize>) -> bool,
) {
    // By the old place of each section the new one.
    let mut count = 0;
    let places: Vec<Option<usize>> = found
        .sections
        .iter()
        .map(|name| {
            section(name).then(|| {
                count += 1;
                count - 1
            })
        })
        .collect();
    let place = |section: usize| places.get(section).copied().flatten();
    found.assignments.retain_mut(|assignment| {
        let kept = place(assignment.section);
        assignment.section = kept.unwrap_or_default();
        kept.is_some() && sound(&assignment.key.span)
    });
    let mut old = 0;
    found.sections.retain(|_| {
        old += 1;
        place(old - 1).is_some()
    });
}

/// The byte range of the line that a byte stands on, its newline included.
fn line_around(text: &str, offset: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let offset = offset.min(bytes.len());
    let start = bytes[..offset].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let end = bytes[offset..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| offset + n);
    start..end + 1
}

/// The reader's words, where a person who does not know TOML would not know what to do, and ours with the help.
const WORDINGS: [(&str, &str, &str); 6] = [
    (
        "string values must be quoted",
        "the value is not quoted",
        "write it in double quotes; true, false and numbers stand alone",
    ),
    ("invalid basic string", "the string is not closed", "end it with a double quote on the same line"),
    (
        "missing escaped value",
        "the string has an unknown escape",
        "write \\\\ for a backslash, or use single quotes",
    ),
    (
        "cannot recurse further",
        "the value is nested too deeply",
        "no setting takes more than a list of lists",
    ),
    ("unclosed table", "the section's name is not closed", "write it as [Section]"),
    ("extra comma in array", "the list has a comma too many", "write one comma between two items"),
];

fn syntax_error(source: &Arc<SourceFile>, error: &toml::de::Error) -> Diagnostic {
    let span = source.clamp(&error.span().unwrap_or(0..0));
    let told = error.message().trim();
    let text = source.text();
    let before = text[..span.start].trim_end_matches([' ', '\t']);
    if told == "duplicate key" {
        let key = text[span.clone()].trim();
        let (message, help) = if before.ends_with('[') {
            (
                format!("the section [{key}] stands twice in this file"),
                "write all of its settings below one of them",
            )
        } else {
            (
                format!("{} is set twice in this file", quote(key)),
                "keep one of them; to add to a list write one list",
            )
        };
        return Diagnostic::error(source, span, message).with_help(help.to_owned());
    }
    if before.ends_with('=')
        && text[span.end..].trim_start_matches([' ', '\t', '\r']).starts_with('\n')
        && span.is_empty()
    {
        return Diagnostic::error(source, span, "there is no value behind the '='")
            .with_help("write one; [] is an empty list".to_owned());
    }
    match WORDINGS.iter().find(|(theirs, ..)| told.starts_with(theirs)) {
        Some((_, ours, help)) => Diagnostic::error(source, span, *ours).with_help((*help).to_owned()),
        None => Diagnostic::error(source, span, format!("not TOML: {told}"))
            .with_help("strings stand in double quotes, lists in [ ], tables in { }".to_owned()),
    }
}

struct Reader<'a> {
    source: &'a Arc<SourceFile>,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn section<'i>(&mut self, name: Name<'i>, value: &Spanned<DeValue<'i>>, found: &mut Assignments<'i>) {
        match value.get_ref() {
            DeValue::Table(table) => {
                for (key, value) in in_order(table) {
                    if let Some(value) = self.value(value) {
                        let section = found.sections.len();
                        found.assignments.push(Assignment { section, key, value });
                    }
                }
                found.sections.push(name);
            }
            DeValue::Array(list) if list.iter().all(|item| item.get_ref().is_table()) && !list.is_empty() => {
                let section = &name.text;
                self.refuse(
                    name.span.clone(),
                    format!("[[{section}]] is a list of tables"),
                    format!("write the section once, as [{section}]"),
                );
            }
            _ => self.refuse(
                name.span.clone(),
                format!("{} stands outside of any section", quote(&name.text)),
                crate::schema::home_of(&name.text)
                    .map_or("write it below a section such as [Unit]".to_owned(), |home| {
                        format!("it belongs to [{home}]")
                    }),
            ),
        }
    }

    fn value<'i>(&mut self, value: &Spanned<DeValue<'i>>) -> Option<Value<'i>> {
        let span = value.span();
        let raw = match value.get_ref() {
            DeValue::Boolean(yes) => Raw::Bool(*yes),
            DeValue::String(text) if text.contains('\0') => {
                self.refuse(
                    span,
                    "the string has a NUL character".to_owned(),
                    "no setting can hold one".to_owned(),
                );
                return None;
            }
            DeValue::String(text) => Raw::Text(text.clone()),
            DeValue::Float(number) => Raw::Float(number.as_str().replace('_', "")),
            DeValue::Datetime(date) => Raw::Date(date.to_string()),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Raw::Integer(number),
                Err(_) => {
                    let help = "the largest number that any setting takes has 20 digits".to_owned();
                    self.refuse(span, format!("the number {} is too large", quote(number.as_str())), help);
                    return None;
                }
            },
            DeValue::Array(list) => Raw::List(list.iter().filter_map(|item| self.value(item)).collect()),
            DeValue::Table(table) => Raw::Table(
                in_order(table)
                    .into_iter()
                    .filter_map(|(key, value)| Some((key, self.value(value)?)))
                    .collect(),
            ),
        };
        Some(Value { raw, span, line: None })
    }

    fn refuse(&mut self, span: Range<usize>, message: String, help: String) {
        if self.problems.len() < MAX_ERRORS {
            self.problems.push(Diagnostic::error(self.source, span, message).with_help(help));
        }
    }
}

/// A table's entries in the order of the file (the reader keeps them sorted by name).
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(Name<'i>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| (Name { text: key.get_ref().clone(), span: key.span() }, value))
        .collect();
    entries.sort_unstable_by_key(|(name, _)| name.span.start);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways through a text: if the short one goes through, it finds what the full one finds, and no error.
    fn is_same(text: &str) -> bool {
        let source = Arc::new(SourceFile::new("a.service.toml", text));
        let (mut short, mut full) = (Assignments::default(), Assignments::default());
        if toml_fast::read(text, &mut short).is_none() {
            return false;
        }
        let problems = read_fully(&source, &mut full);
        assert!(problems.is_empty(), "{text:?}: {problems:?}");
        assert_eq!((&short.sections, &short.assignments), (&full.sections, &full.assignments), "{text:?}");
        true
    }

    #[test]
    fn the_short_way_reads_what_the_full_one_reads() {
        for text in [
            "",
            "# only a comment",
            "[Unit]\nDescription = \"a \u{e9}\"\n\n[Service] # why\nExecStart=['/bin/a','b c',]\n",
            "[A]\nx = [ # first\n 1, -2,\n [\"a\", []]]\ny = { A = \"1\", B_1-c = true }\nz = false",
            "[A]\nx = 0\n\t y = 999999999999999999 \t# end\n[B]\nx = {}\n",
        ] {
            assert!(is_same(text), "{text:?} goes the short way");
        }
        for text in [
            "x = 1",
            "[A]\nx = 1\nx = 2",
            "[A]\n[A]\n",
            "[A.b]\n",
            "[A]\na.b = 1",
            "[A]\nx = \"\\n\"",
            "[A]\nx = \"\"\"a\"\"\"",
            "[A]\nx = 1.5",
            "[A]\nx = 01",
            "[A]\nx = -0",
            "[A]\nx = 1979-05-27",
            "[A]\nx = 1 2",
            "[A]\r\nx = 1",
            "[A]\nx = \"a",
            "[A]\nx = {a = 1, a = 2}",
            "[A]\nx = 'a\u{1}'",
            "[A]\n# \u{7f}",
            "[ A ]",
            "[[A]]",
            "[A]\nx",
            "\u{feff}[A]",
        ] {
            let found = &mut Assignments::default();
            assert!(toml_fast::read(text, found).is_none(), "{text:?} is for the full reader");
        }
    }

    #[test]
    fn what_is_put_together_by_chance_reads_the_same_both_ways() {
        const PARTS: &[&str] = &[
            "[A]",
            "[B]",
            "\n",
            "\n",
            " ",
            "\t",
            "#c",
            "x",
            "y",
            "=",
            " = ",
            "1",
            "-7",
            "0",
            "true",
            "false",
            "\"s\"",
            "'t'",
            "[",
            "]",
            "{",
            "}",
            ",",
            ", ",
            "z = 1\n",
            "w = [\"a\", 'b']\n",
            "v = {a = 1}\n",
            "\"",
            "_",
            ".",
        ];
        // xorshift64: the same texts in every run.
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |bound: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 33) as usize % bound
        };
        let mut short = 0;
        for _ in 0..20_000 {
            let count = next(14);
            let text: String = (0..count).map(|_| PARTS[next(PARTS.len())]).collect();
            short += usize::from(is_same(&text));
            short += usize::from(is_same(&format!("[S]\n{text}")));
        }
        assert!(short > 500, "{short} texts went the short way");
    }
}
