//! What `show` tells of a unit's keys: each key of the tables under systemd's name of its property, org.freedesktop.systemd1(5).
//!
//! # Invariants
//!
//! - Every key has a property, or stands in [`property`] with the reason why not: a new key is shown without a further
//!   word.
//! - What is shown is what counts: the value of the typed section, defaults too. Of kinds of values that have a reader of
//!   their own alone ([`Slot::Own`]) it is what the files say, put together by the same rules; empty: the default.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Section, Setting, Shape, Slot, renamed};
use crate::assignment::{Assignment, Raw, Value};
use crate::draft::Draft;
use crate::effective;
use crate::exec::ExecCommand;
use crate::names::UnitNames;
use crate::sections::{MemoryLimit, TasksLimit};
use crate::source::{SourceFile, Syntax};
use crate::unit::{Body, Unit};
use crate::values::limit::percent;
use crate::values::{capability, span};
use crate::{ini_front, toml_front};

/// Where a key is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Property {
    /// Under this name.
    Shown(String),
    /// Together with other keys under this name, each with its key.
    Gathered(&'static str),
    /// Nowhere, for this reason.
    Hidden(&'static str),
}

/// Where `show` has a key.
#[must_use]
pub fn property(section: Section, key: &str) -> Property {
    use Property::{Gathered, Hidden, Shown};
    let own = |section: Section| Shown(format!("{}{}", section.as_str(), in_usec(key)));
    match (section, key) {
        (Section::Unit, key) if key.starts_with("Condition") => Gathered("Conditions"),
        (Section::Unit, key) if key.starts_with("Assert") => Gathered("Asserts"),
        (Section::Service, "TimeoutSec") => {
            Hidden("it sets TimeoutStartSec and TimeoutStopSec, which are shown")
        }
        (Section::Service, "SetCredential") => Hidden("its text is a secret"),
        (Section::Service | Section::Slice, "CPUQuota") => Shown("CPUQuotaPerSecUSec".to_owned()),
        (Section::Service, "EnvironmentFile") => Shown("EnvironmentFiles".to_owned()),
        (Section::Timer, "OnCalendar" | "Cron") => Gathered("TimersCalendar"),
        (Section::Timer, key) if key.starts_with("On") && key.ends_with("Sec") => Gathered("TimersMonotonic"),
        (Section::Socket, key) if key.starts_with("Listen") => Gathered("Listen"),
        (Section::Socket, "Service") => Hidden("Triggers tells it"),
        (Section::Path, key) if key.starts_with("Path") || key == "DirectoryNotEmpty" => Gathered("Paths"),
        (Section::Install, "WantedBy" | "RequiredBy" | "UpheldBy") => {
            Hidden("the edges that it makes are shown")
        }
        (Section::Install, "Alias") => Hidden("Names tells it"),
        (Section::Install, _) => Hidden("UnitFileState tells what came of it"),
        (Section::Agent | Section::Snapshot | Section::Rollout, _) => own(section),
        _ => Shown(in_usec(key)),
    }
}

/// Spans are in microseconds on the bus, and so `RestartSec` is `RestartUSec` there.
fn in_usec(key: &str) -> String {
    key.strip_suffix("Sec").map_or_else(|| key.to_owned(), |stem| format!("{stem}USec"))
}

/// The properties that show the keys of a unit's sections, by name.
#[must_use]
pub fn properties(unit: &Unit) -> BTreeMap<String, String> {
    let (mut draft, sections) = sections(unit);
    let mut scratch = draft.clone();
    let written = Written::of(unit);
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for (section, setting) in sections.iter().flat_map(|s| s.settings().iter().map(|setting| (*s, setting))) {
        let value = match value(&setting.slot, &mut draft, &mut scratch) {
            Some(value) => value,
            None => written.text(section, setting.key),
        };
        match property(section, setting.key) {
            Property::Shown(name) => drop(shown.insert(name, value)),
            Property::Gathered(name) => {
                let gathered = shown.entry(name.to_owned()).or_default();
                for item in written.items(section, setting.key) {
                    let gap = if gathered.is_empty() { "" } else { " ; " };
                    gathered.push_str(&format!("{gap}{}={item}", setting.key));
                }
            }
            Property::Hidden(_) => {}
        }
    }
    // Where nothing else is said an abort may take as long as a stop.
    if written.items(Section::Service, "TimeoutAbortSec").is_empty()
        && let Some(stop) = shown.get("TimeoutStopUSec").cloned()
    {
        shown.insert("TimeoutAbortUSec".to_owned(), stop);
    }
    // What `Sandbox = "strict"` and `DynamicUser` set beside what the files say.
    if let Some(body) = unit.as_service() {
        let walls = effective::sandbox(&body.service).into_iter();
        shown.extend(walls.map(|(key, value)| (key.to_owned(), value)));
    }
    shown
}

/// The sections that the unit has, as the tables see them.
fn sections(unit: &Unit) -> (Draft, Vec<Section>) {
    let mut draft = Draft::default();
    draft.unit = unit.unit.clone();
    draft.install = unit.install.clone();
    let mut all = vec![Section::Unit];
    match &unit.body {
        Body::Service(body) => {
            draft.service = body.service.clone();
            draft.ambient = Some(body.service.ambient_capabilities);
            all.push(Section::Service);
            if let Some(agent) = &body.agent {
                draft.agent = (**agent).clone();
                all.push(Section::Agent);
            }
            if let Some(snapshot) = &body.snapshot {
                draft.snapshot = (**snapshot).clone();
                all.push(Section::Snapshot);
            }
            if let Some(rollout) = &body.rollout {
                draft.rollout = (**rollout).clone();
                all.push(Section::Rollout);
            }
        }
        Body::Timer(timer) => {
            draft.timer = (**timer).clone();
            all.push(Section::Timer);
        }
        Body::Socket(socket) => {
            draft.socket = (**socket).clone();
            all.push(Section::Socket);
        }
        Body::Path(path) => {
            draft.path = (**path).clone();
            all.push(Section::Path);
        }
        Body::Slice(slice) => {
            draft.slice = (**slice).clone();
            all.push(Section::Slice);
        }
        Body::Target => {}
    }
    (draft, all)
}

/// A value as systemctl shows it; `None`: only its own reader knows it. `scratch` is like `draft`, and so again afterwards.
fn value(slot: &Slot, draft: &mut Draft, scratch: &mut Draft) -> Option<String> {
    Some(match slot {
        Slot::Text(field) | Slot::Principal(field) => field(draft).clone().unwrap_or_default(),
        Slot::Texts(field) => field(draft).join(" "),
        Slot::Bool(field) => yes_no(*field(draft)),
        Slot::MaybeBool(field) => field(draft).map_or_else(String::new, yes_no),
        Slot::Count(field) => field(draft).to_string(),
        Slot::Units(field) | Slot::Names(field) => units(field(draft)),
        Slot::UnitName(field) | Slot::Slice(field) => {
            field(draft).as_ref().map_or_else(String::new, ToString::to_string)
        }
        Slot::Span(field) => span::display(*field(draft)),
        Slot::Timeout(field) => timeout(*field(draft)),
        Slot::BothTimeouts => String::new(),
        Slot::Choice(words, put) => {
            // The word that changes nothing is the one that counts; where all change something none was said.
            let found = words().into_iter().find(|word| put(scratch, word) && same(scratch, draft));
            if found.is_none() {
                scratch.clone_from(draft);
            }
            found.unwrap_or_default().to_owned()
        }
        Slot::Signal(field) => field(draft).to_string(),
        Slot::Commands(kind) => commands(draft.service.commands(*kind)),
        Slot::Environment => {
            let pairs =
                draft.service.environment.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Slot::Path(field) => {
            field(draft).as_ref().map_or_else(String::new, |path| path.display().to_string())
        }
        Slot::Paths(field) | Slot::PathsBelow(field) => {
            field(draft).iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        }
        Slot::WorkingDirectory | Slot::Triggers(..) | Slot::Calendars | Slot::Crons | Slot::Own(..) => {
            return None;
        }
        Slot::Module => draft.agent.module.clone().unwrap_or_default(),
        Slot::Memory(field) => match field(draft) {
            Some(MemoryLimit::Bytes(bytes)) => bytes.to_string(),
            Some(MemoryLimit::Permyriad(share)) => percent(u64::from(*share)),
            Some(MemoryLimit::Infinity) | None => "infinity".to_owned(),
        },
        Slot::Tasks(field) => match field(draft) {
            Some(TasksLimit::Count(count)) => count.to_string(),
            Some(TasksLimit::Permyriad(share)) => percent(u64::from(*share)),
            Some(TasksLimit::Infinity) | None => "infinity".to_owned(),
        },
        // Hundredths of a percent of a second are 100 µs.
        Slot::CpuQuota(field) => {
            timeout(field(draft).map(|quota| Duration::from_micros(quota.saturating_mul(100))))
        }
        Slot::Capabilities(field) => capability::names(field(draft).unwrap_or(capability::ALL)).join(" "),
    })
}

/// Whether two drafts say the same, wherever it was said.
fn same(one: &Draft, other: &Draft) -> bool {
    one.service == other.service
        && one.unit == other.unit
        && one.agent == other.agent
        && one.timer == other.timer
        && one.snapshot == other.snapshot
        && one.rollout == other.rollout
        && one.socket == other.socket
        && one.path == other.path
        && one.slice == other.slice
        && one.install == other.install
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn timeout(bound: Option<Duration>) -> String {
    bound.map_or_else(|| "infinity".to_owned(), span::display)
}

fn units(names: &UnitNames) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn commands(commands: &[ExecCommand]) -> String {
    let one =
        |command: &ExecCommand| command.argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    commands.iter().map(one).collect::<Vec<_>>().join(" ; ")
}

/// A word in which a space can be told from one between words, in systemd's quoting: it can be pasted into a file.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%$".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = "\"".to_owned();
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What a unit's files say, put together by the rules of merging.
struct Written(BTreeMap<(Section, &'static str), Vec<String>>);

impl Written {
    fn of(unit: &Unit) -> Self {
        let mut written = Self(BTreeMap::new());
        for source in &unit.sources {
            let (found, _) = match source.syntax() {
                Syntax::Toml => toml_front::read(source),
                Syntax::Systemd => ini_front::read(source),
            };
            for assignment in &found.assignments {
                let section = found.sections.get(assignment.section);
                if let Some(section) = section.and_then(|section| Section::from_name(&section.text)) {
                    written.take(source, section, assignment);
                }
            }
        }
        written
    }

    fn take(&mut self, source: &SourceFile, section: Section, assignment: &Assignment<'_>) {
        let key = &*assignment.key.text;
        let old = if source.syntax() == Syntax::Systemd { renamed(section, key) } else { None };
        let (section, key) = old.unwrap_or((section, key));
        let Some(setting) = section.setting(key) else { return };
        let items = self.0.entry((section, setting.key)).or_default();
        let new = texts(&assignment.value);
        if new.iter().all(String::is_empty) || !adds_up(setting) {
            items.clear();
        }
        for item in new {
            // An empty one takes back what was set before.
            if item.is_empty() { items.clear() } else { items.push(item) }
        }
        // Sisters share one list, which an empty value of any of them takes back.
        if items.is_empty()
            && let Property::Gathered(name) = property(section, setting.key)
        {
            self.0.retain(|(other, key), _| {
                *other != section || property(*other, key) != Property::Gathered(name)
            });
        }
    }

    fn items(&self, section: Section, key: &'static str) -> &[String] {
        self.0.get(&(section, key)).map_or(&[], Vec::as_slice)
    }

    fn text(&self, section: Section, key: &'static str) -> String {
        self.items(section, key).join(" ")
    }
}

/// Whether several values of a key are one list.
fn adds_up(setting: &Setting) -> bool {
    !matches!(setting.slot.shape(), Shape::Text | Shape::Plain | Shape::Bool)
}

/// The items of a value as they are written.
fn texts(value: &Value<'_>) -> Vec<String> {
    match &value.raw {
        Raw::List(list) if list.is_empty() => vec![String::new()],
        Raw::List(list) => list.iter().map(|item| texts(item).join(" ")).collect(),
        Raw::Table(table) => {
            table.iter().map(|(name, item)| format!("{}={}", name.text, texts(item).join(" "))).collect()
        }
        Raw::Text(text) => vec![text.trim().to_owned()],
        Raw::Float(text) | Raw::Date(text) => vec![text.clone()],
        Raw::Integer(number) => vec![number.to_string()],
        Raw::Bool(yes) => vec![yes_no(*yes)],
    }
}
