//! A file in systemd's syntax, sorted by section and key.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::value::{self, Item};
use crate::assignment::{Name, Raw, Value};
use crate::diagnostic::{Diagnostic, Severity, quote};
use crate::ini_front;
use crate::name::{UnitName, UnitType};
use crate::schema::{self, SYSTEMD_TYPES, Section, Setting, Shape, Slot};
use crate::source::SourceFile;
use crate::toml_front::MAX_ERRORS;
use crate::values::syscalls;
use crate::values::words::{self, Escapes};

/// Something that stands on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Nothing.
    Blank,
    /// A comment's text.
    Comment(String),
}

/// What one line gave to its key.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// What stood above it.
    pub(super) above: Vec<Line>,
    /// Its value.
    pub(super) item: Item,
    /// Its value as written; `None` for an empty one.
    pub(super) words: Option<String>,
    /// Where it stands.
    pub(super) span: Range<usize>,
}

/// One thing in a section.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// Comments that belong to no key, and keys that became comments.
    Lines(Vec<Line>),
    /// A key with all that was given to it.
    Key {
        /// The name.
        key: String,
        /// How its values are written.
        shape: Shape,
        /// Its values, in order.
        given: Vec<Given>,
        /// Whether the file is a drop-in: then taking back reaches beyond the file.
        drop_in: bool,
        /// Whether an empty value takes back those of its sister keys too.
        shared: bool,
    },
}

/// A section.
#[derive(Debug, Clone)]
pub(super) struct SectionText {
    /// The name.
    pub(super) name: String,
    /// What stood above its header.
    pub(super) above: Vec<Line>,
    /// What stands in it.
    pub(super) entries: Vec<Entry>,
}

/// A file.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    /// What stood above the first section and is no section's.
    pub(super) head: Vec<Line>,
    /// The sections in the order in which they first stood.
    pub(super) sections: Vec<SectionText>,
    /// What stood at the end.
    pub(super) tail: Vec<Line>,
    /// What could not be taken over as it was.
    pub(super) notes: Vec<Diagnostic>,
}

/// Sorts a file.
pub(super) fn collect(source: &Arc<SourceFile>, name: &UnitName) -> Document {
    let (items, problems) = ini_front::items(source);
    let document = Document { notes: problems, ..Document::default() };
    let drop_in = source.path().extension().is_some_and(|ending| ending == "conf");
    let mut collector = Collector {
        source,
        name,
        document,
        above: Vec::new(),
        drop_in,
        places: HashMap::new(),
        keys: HashMap::new(),
    };
    for item in items {
        match item {
            ini_front::Item::Blank => collector.above.push(Line::Blank),
            ini_front::Item::Comment(place) => {
                let text = source.text()[place].trim_start_matches(['#', ';']);
                // A form feed and the like may stand in a comment here, but not in TOML.
                let text = text.replace(|c: char| c.is_control() && c != '\t', " ");
                collector.above.push(Line::Comment(text));
            }
            ini_front::Item::Section(name) => collector.section(&name),
            ini_front::Item::Assignment { section: None, key, value } => {
                let comment = format!("{}={}", key.text, text_of(&value));
                collector.above.push(Line::Comment(comment));
            }
            ini_front::Item::Assignment { section: Some(section), key, value } => {
                collector.assignment(&section, &key, &value);
            }
        }
    }
    collector.document.tail = std::mem::take(&mut collector.above);
    collector.orders();
    collector.listeners();
    collector.document
}

fn text_of<'v>(value: &'v Value<'_>) -> &'v str {
    match &value.raw {
        Raw::Text(text) => text,
        _ => "",
    }
}

struct Collector<'a> {
    source: &'a Arc<SourceFile>,
    name: &'a UnitName,
    document: Document,
    above: Vec<Line>,
    drop_in: bool,
    /// Where each section stands in the document.
    places: HashMap<String, usize>,
    /// Where each key stands in its section.
    keys: HashMap<(usize, String), usize>,
}

impl Collector<'_> {
    /// Whether so much was noted that no more is.
    fn is_full(&self) -> bool {
        self.document.notes.len() >= MAX_ERRORS
    }

    fn note(&mut self, span: &Range<usize>, message: String, help: impl Into<Option<String>>) {
        if self.is_full() {
            return;
        }
        self.document.notes.push(Diagnostic::warning(self.source, span.clone(), message).with_help(help));
    }

    /// The section of this name, made where it first stands.
    fn section_text(&mut self, name: &str) -> usize {
        if let Some(index) = self.places.get(name) {
            return *index;
        }
        let section = SectionText { name: name.to_owned(), above: Vec::new(), entries: Vec::new() };
        self.document.sections.push(section);
        let index = self.document.sections.len() - 1;
        self.places.insert(name.to_owned(), index);
        index
    }

    fn section(&mut self, name: &Name<'_>) {
        let text = &*name.text;
        let fits = Section::from_name(text).is_some_and(|section| section.fits(self.name.unit_type()));
        if !text.starts_with("X-") && !fits {
            let message = format!("[{text}] is not supported in a {} and is left out", self.name.unit_type());
            self.note(&name.span, message, None);
            return self.above.push(Line::Comment(format!("[{text}]")));
        }
        if text == "Install" && !self.drop_in && !self.places.contains_key(text) {
            let help = "write Enabled = false below it to decide with agentctl enable".to_owned();
            let message = "[Install] counts from the moment the TOML file is there".to_owned();
            self.note(&name.span, message, help);
        }
        let above = std::mem::take(&mut self.above);
        let index = self.section_text(text);
        let section = &mut self.document.sections[index];
        if section.entries.is_empty() && section.above.is_empty() {
            section.above = above;
        } else {
            section.entries.push(Entry::Lines(above));
        }
    }

    fn assignment(&mut self, section: &str, key: &Name<'_>, value: &Value<'_>) {
        let text = text_of(value);
        if section.starts_with("X-") || key.text.starts_with("X-") {
            let item = Item::Scalar(value::string(text));
            return self.take(section, &key.text, (Shape::Text, false), item, value);
        }
        let found = Section::from_name(section).filter(|s| s.fits(self.name.unit_type()));
        let Some(found) = found else {
            return self.above.push(Line::Comment(format!("{}={text}", key.text)));
        };
        let (home, name) = schema::renamed(found, &key.text).unwrap_or((found, &key.text));
        let Some(setting) = home.setting(name) else {
            if !self.is_full() {
                // Looking for what was meant takes time.
                let (message, help) = crate::parse::missing(found, home, name, &key.text);
                self.note(&key.span, message, help);
            }
            return self.comment_out(section, format!("{}={text}", key.text));
        };
        let has = matches!(setting.slot, Slot::Choice(words, _) if words().contains(&text));
        let text = match schema::substitute(home, setting.key, text) {
            Some((word, why)) if !has => {
                let message =
                    format!("[{section}] {}: '{text}' is not supported and taken as {word}: {why}", key.text);
                self.note(&value.span, message, None);
                word
            }
            _ => text,
        };
        let shape = setting.slot.shape();
        let item = value::escaped(setting.key, text).unwrap_or_else(|| match setting.key {
            "SystemCallFilter" | "SystemCallLog" => self.calls(text, shape, value, setting.key),
            _ => self.item(text, shape, value, setting.slot.names_units()),
        });
        let item = match item {
            Ok(item) => item,
            Err(refused) => {
                let message = format!("[{section}] {}: {}", key.text, refused.why);
                let finding = Diagnostic::warning(self.source, value.span.clone(), message);
                let finding = Diagnostic { severity: Severity::Error, ..finding };
                if !self.is_full() {
                    self.document.notes.push(finding.with_help(refused.help));
                }
                return self.comment_out(section, format!("{}={text}", key.text));
            }
        };
        if item == Item::Reset && self.drop_in && matches!(shape, Shape::Text | Shape::Plain | Shape::Bool) {
            let message = format!("[{section}] {}: an empty value takes back what the unit says", key.text);
            self.note(&value.span, message, "in TOML write the value that it is to have".to_owned());
        }
        self.take(home.as_str(), setting.key, (shape, shares_reset(home, setting)), item, value);
    }

    /// A list of system calls, without those that agentd does not know: systemd goes on without what it does not know.
    fn calls(
        &mut self,
        text: &str,
        shape: Shape,
        value: &Value<'_>,
        key: &str,
    ) -> Result<Item, crate::values::Refused> {
        let words = words::split_with(text, Escapes::Retain)?;
        let name = |word: &str| word.strip_prefix('~').unwrap_or(word).to_owned();
        let is_unknown = |at: usize, word: &str| {
            let name = if at == 0 { name(word) } else { word.to_owned() };
            !name.is_empty() && !syscalls::is_known(&name)
        };
        if !words.iter().enumerate().any(|(at, word)| is_unknown(at, &word.text)) {
            return value::item(text, shape);
        }
        let mut kept = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if is_unknown(at, &word.text) {
                let message =
                    format!("[Service] {key}: {} is left out: it is no system call", quote(&word.text));
                self.note(&value.place(&word.span), message, None);
                // What the first word says of the others stays.
                kept.extend((at == 0 && word.text.starts_with('~')).then(|| "~".to_owned()));
            } else {
                kept.push(word.text.to_string());
            }
        }
        if kept.is_empty() {
            // A list that allows what each program needs alone; and no list at all.
            kept.push(if key == "SystemCallFilter" { "@default" } else { "~" }.to_owned());
        }
        Ok(Item::Items(kept.iter().map(|word| value::string(word)).collect()))
    }

    /// The value of a line; units that agentd cannot have are left out.
    fn item(
        &mut self,
        text: &str,
        shape: Shape,
        value: &Value<'_>,
        names_units: bool,
    ) -> Result<Item, crate::values::Refused> {
        if !names_units || text.trim().is_empty() {
            return value::item(text, shape);
        }
        let mut kept = Vec::new();
        for word in words::split_with(text, Escapes::Retain)? {
            let ending = word.text.rsplit('.').next().unwrap_or_default();
            if SYSTEMD_TYPES.contains(&ending) {
                let message =
                    format!("{} is left out: not supported: agentd has no {ending} units", quote(&word.text));
                self.note(&value.place(&word.span), message, None);
                self.above.push(Line::Comment(format!("{}: agentd has no {ending} units", word.text)));
            } else {
                kept.push(self.instance_of(&word.text));
            }
        }
        Ok(Item::Items(kept.iter().map(|name| value::string(name)).collect()))
    }

    /// A template among units means the instance of the unit's own instance, else of its prefix.
    fn instance_of(&self, word: &str) -> String {
        match UnitName::parse(word) {
            Ok(name) if name.is_template() => {
                let own = if self.name.is_template() { "%i" } else { self.name.prefix() };
                format!("{}@{own}.{}", name.prefix(), name.unit_type())
            }
            _ => word.to_owned(),
        }
    }

    fn comment_out(&mut self, section: &str, text: String) {
        let mut loose = std::mem::take(&mut self.above);
        loose.push(Line::Comment(text));
        let index = self.section_text(section);
        self.document.sections[index].entries.push(Entry::Lines(loose));
    }

    fn take(&mut self, section: &str, key: &str, kind: (Shape, bool), item: Item, value: &Value<'_>) {
        let (shape, shared) = kind;
        let text = text_of(value);
        let above = std::mem::take(&mut self.above);
        let words = (item != Item::Reset).then(|| text.to_owned());
        let item_is_reset = item == Item::Reset;
        let new = Given { above, item, words, span: value.span.clone() };
        let index = self.section_text(section);
        let entries = &mut self.document.sections[index].entries;
        if shared && item_is_reset {
            for entry in &mut *entries {
                if let Entry::Key { key: sister, given, shared: true, .. } = entry
                    && sister != key
                {
                    given.push(Given { above: Vec::new(), ..new.clone() });
                }
            }
        }
        match self.keys.get(&(index, key.to_owned())).and_then(|place| entries.get_mut(*place)) {
            Some(Entry::Key { given, .. }) => given.push(new),
            _ => {
                self.keys.insert((index, key.to_owned()), entries.len());
                entries.push(Entry::Key {
                    key: key.to_owned(),
                    shape,
                    given: vec![new],
                    drop_in: self.drop_in,
                    shared,
                });
            }
        }
    }

    /// Notes the edges that order as well in TOML. A target comes after what it pulls in under systemd too.
    fn orders(&mut self) {
        if self.name.unit_type() == UnitType::Target {
            return;
        }
        let ordered: BTreeSet<String> =
            self.names_of(&["After", "Before"]).into_iter().map(|(name, _)| name).collect();
        for (name, span) in self.names_of(&["Requires", "Requisite", "Wants", "BindsTo", "Upholds"]) {
            if !ordered.contains(&name) {
                let message = format!("in TOML the edge to {name} orders too: this unit starts after it");
                let help = "systemd starts both at once; if that is what is meant, keep the unit in systemd's syntax";
                self.note(&span, message, help.to_owned());
            }
        }
    }

    /// Notes listeners whose order among each other TOML cannot keep: there a key stands once.
    fn listeners(&mut self) {
        let mut listeners: Vec<(usize, &str)> = Vec::new();
        for entry in self.document.sections.iter().filter(|s| s.name == "Socket").flat_map(|s| &s.entries) {
            if let Entry::Key { key, given, .. } = entry
                && key.starts_with("Listen")
            {
                listeners.extend(given.iter().map(|given| (given.span.start, key.as_str())));
            }
        }
        let key_at = |(_, key): &(usize, &str)| (*key).to_owned();
        let in_toml: Vec<String> = listeners.iter().map(key_at).collect();
        listeners.sort_unstable();
        let moved = listeners.iter().zip(&in_toml).find(|((_, key), toml)| key != toml);
        if let Some((place, key)) = moved.map(|((place, key), _)| (*place, (*key).to_owned())) {
            let message = format!("the descriptors come in another order in TOML, where {key} stands once");
            let help = "let the service find them by name: FileDescriptorName".to_owned();
            self.note(&(place..place + 1), message, help);
        }
    }

    /// What stands in some lists of `[Unit]`, with its place.
    fn names_of(&self, keys: &[&str]) -> Vec<(String, Range<usize>)> {
        let unit = self.document.sections.iter().filter(|section| section.name == "Unit");
        let mut names = Vec::new();
        for entry in unit.flat_map(|section| &section.entries) {
            let Entry::Key { key, given, .. } = entry else { continue };
            if !keys.contains(&key.as_str()) {
                continue;
            }
            for Given { item, span, .. } in given {
                if let Item::Items(items) = item {
                    let plain = items.iter().map(|item| item.trim_matches(['"', '\'']).to_owned());
                    names.extend(plain.map(|name| (name, span.clone())));
                }
            }
        }
        names
    }
}

/// Whether an empty value of the key takes back those of its sister keys too: triggers, listeners, watches.
fn shares_reset(section: Section, setting: &Setting) -> bool {
    match section {
        Section::Timer => matches!(setting.slot, Slot::Triggers(..) | Slot::Calendars | Slot::Crons),
        Section::Socket => setting.key.starts_with("Listen"),
        Section::Path => setting.key.starts_with("Path") || setting.key == "DirectoryNotEmpty",
        _ => false,
    }
}
