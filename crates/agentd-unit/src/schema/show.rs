//! What `show` tells of a unit's keys: each key of the tables under systemd's name of its property, org.freedesktop.systemd1(5).
//!
//! # Invariants
//!
//! - Every key has a property, or stands in [`property`] with the reason why not: a new key is shown without a further
//!   word, and one with a reader of its own fails a test until something prints it.
//! - What is shown is what counts: the value of the typed section, defaults too, as systemctl(1) prints it. What
//!   docs/differences.md does not name is the same there: `cargo xtask test --only same-properties` compares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{Section, Slot, printed};
use crate::draft::Draft;
use crate::effective;
use crate::names::UnitNames;
use crate::sections::{Listen, ListenAddress, PathWatch, TimerTrigger};
use crate::unit::{Body, Unit};
use crate::values::{capability, span};

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
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    // What `Sandbox = "strict"` and `DynamicUser` set is in the sections; these have the lists that add up to one value.
    if let Some(body) = unit.as_service() {
        let walls = effective::sandbox(&body.service).into_iter();
        shown.extend(walls.map(|(key, value)| (key.to_owned(), value)));
    }
    for (section, setting) in sections.iter().flat_map(|s| s.settings().iter().map(|setting| (*s, setting))) {
        match property(section, setting.key) {
            Property::Shown(name) => {
                let printed = printed::value(section, setting.key, &draft);
                match printed.or_else(|| value(&setting.slot, &mut draft, &mut scratch)) {
                    Some(value) => drop(shown.insert(name, value)),
                    None => drop(shown.entry(name).or_default()),
                }
            }
            Property::Gathered(name) => drop(shown.entry(name.to_owned()).or_default()),
            Property::Hidden(_) => {}
        }
    }
    shown.extend(gathered(unit).map(|(name, value)| (name.to_owned(), value)));
    shown.extend(by_name(unit).map(|(name, value)| (name.to_owned(), value)));
    shown.extend(soft_limits(&draft, &sections));
    shown
}

/// What several keys say together.
fn gathered(unit: &Unit) -> impl Iterator<Item = (&'static str, String)> {
    let conditions = |assert: bool| {
        let of_kind = unit.unit.conditions.iter().filter(move |condition| condition.assert == assert);
        of_kind.map(ToString::to_string).collect::<Vec<_>>().join(" ; ")
    };
    let mut found = vec![("Conditions", conditions(false)), ("Asserts", conditions(true))];
    match &unit.body {
        Body::Timer(timer) => {
            let (calendar, monotonic): (Vec<_>, Vec<_>) = timer
                .triggers
                .iter()
                .partition(|trigger| matches!(trigger, TimerTrigger::Calendar(_) | TimerTrigger::Cron(_)));
            let one = |trigger: &&TimerTrigger| {
                let text = trigger.to_string();
                text.split_once('=')
                    .map_or_else(String::new, |(key, at)| format!("{{ {}={at} }}", in_usec(key)))
            };
            found.push(("TimersCalendar", calendar.iter().map(one).collect::<Vec<_>>().join(" ")));
            found.push(("TimersMonotonic", monotonic.iter().map(one).collect::<Vec<_>>().join(" ")));
        }
        Body::Socket(socket) => {
            let one = |listen: &Listen| {
                let kind = listen.kind.key().trim_start_matches("Listen");
                match &listen.address {
                    ListenAddress::Port(port) => format!("[::]:{port} ({kind})"),
                    address => format!("{address} ({kind})"),
                }
            };
            found.push(("Listen", socket.listen.iter().map(one).collect::<Vec<_>>().join(" ")));
        }
        Body::Path(path) => {
            let one = |(watch, path): &(PathWatch, PathBuf)| format!("{} ({})", path.display(), watch.key());
            found.push(("Paths", path.watches.iter().map(one).collect::<Vec<_>>().join(" ")));
        }
        _ => {}
    }
    found.into_iter()
}

/// What follows from the unit's name and type where nothing is said.
fn by_name(unit: &Unit) -> impl Iterator<Item = (&'static str, String)> {
    let mut found = Vec::new();
    if unit.unit.description.is_none() {
        found.push(("Description", unit.name.to_string()));
    }
    let stays = unit.unit.system.ignore_on_isolate.unwrap_or(matches!(unit.body, Body::Slice(_)));
    found.push(("IgnoreOnIsolate", printed::yes_no(stays)));
    match &unit.body {
        Body::Socket(socket) if socket.descriptor_name.is_none() => {
            found.push(("FileDescriptorName", unit.name.to_string()));
        }
        Body::Timer(_) | Body::Path(_) => {
            found.extend(unit.triggered().map(|service| ("Unit", service.to_string())));
        }
        _ => {}
    }
    found.into_iter()
}

/// The soft limits stand beside the hard ones.
fn soft_limits(draft: &Draft, sections: &[Section]) -> Vec<(String, String)> {
    let has_limits = sections.contains(&Section::Service);
    let keys =
        Section::Service.settings().iter().filter(|_| has_limits).filter(|s| s.key.starts_with("Limit"));
    keys.filter_map(|setting| {
        let name = format!("{}Soft", setting.key);
        printed::value(Section::Service, &name, draft).map(|value| (name, value))
    })
    .collect()
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

/// A value as systemctl shows it; `None`: it is shown together with others. `scratch` is like `draft`, and so again afterwards.
fn value(slot: &Slot, draft: &mut Draft, scratch: &mut Draft) -> Option<String> {
    Some(match slot {
        Slot::Text(field) | Slot::Principal(field) => field(draft).clone().unwrap_or_default(),
        Slot::Texts(field) => field(draft).join(" "),
        Slot::Bool(field) => printed::yes_no(*field(draft)),
        Slot::MaybeBool(field) => field(draft).map_or_else(String::new, printed::yes_no),
        Slot::Count(field) => field(draft).to_string(),
        Slot::Units(field) | Slot::Names(field) => units(field(draft)),
        Slot::UnitName(field) | Slot::Slice(field) => {
            field(draft).as_ref().map_or_else(String::new, ToString::to_string)
        }
        Slot::Span(field) => span::display(*field(draft)),
        Slot::Timeout(field) => printed::timeout(*field(draft)),
        Slot::BothTimeouts => String::new(),
        Slot::Choice(words, put) => {
            // The word that changes nothing is the one that counts; where all change something none was said.
            let found = words().into_iter().find(|word| put(scratch, word) && same(scratch, draft));
            if found.is_none() {
                scratch.clone_from(draft);
            }
            found.unwrap_or_default().to_owned()
        }
        // The bus has the number.
        Slot::Signal(field) => field(draft).number().to_string(),
        Slot::Commands(kind) => printed::commands(draft.service.commands(*kind)),
        Slot::Environment => {
            let pairs = draft
                .service
                .environment
                .iter()
                .map(|(name, value)| printed::quoted(&format!("{name}={value}")));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Slot::Path(field) => {
            field(draft).as_ref().map_or_else(String::new, |path| path.display().to_string())
        }
        Slot::Paths(field) | Slot::PathsBelow(field) | Slot::LinkedPathsBelow(field) => {
            field(draft).iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        }
        Slot::WorkingDirectory | Slot::Triggers(..) | Slot::Calendars | Slot::Crons | Slot::Own(..) => {
            return None;
        }
        Slot::Module => draft.agent.module.clone().unwrap_or_default(),
        Slot::Memory(field) => printed::memory_or(field(draft).as_ref(), "infinity"),
        Slot::Tasks(field) => printed::tasks(field(draft).as_ref()),
        // Hundredths of a percent of a second are 100 µs.
        Slot::CpuQuota(field) => {
            printed::timeout(field(draft).map(|quota| Duration::from_micros(quota.saturating_mul(100))))
        }
        Slot::Capabilities(field) => {
            capability::names(field(draft).unwrap_or(capability::ALL)).join(" ").to_lowercase()
        }
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

fn units(names: &UnitNames) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::UnitName;

    /// A key that nothing prints would be shown as empty, whatever a file says.
    #[test]
    fn every_key_that_is_shown_has_something_that_prints_it() {
        let mut draft = Draft::default();
        let mut scratch = draft.clone();
        let walls: Vec<&str> = effective::sandbox(&draft.service).iter().map(|(key, _)| *key).collect();
        let timer = Unit::without_file(UnitName::parse("a.timer").unwrap());
        let told: Vec<&str> = gathered(&timer).chain(by_name(&timer)).map(|(name, _)| name).collect();
        let mut silent = Vec::new();
        for section in Section::ALL {
            for setting in section.settings() {
                let Property::Shown(name) = property(section, setting.key) else { continue };
                let is_wall = section == Section::Service && walls.contains(&setting.key);
                let is_printed = printed::value(section, setting.key, &draft).is_some()
                    || value(&setting.slot, &mut draft, &mut scratch).is_some();
                if !is_wall && !is_printed && !told.contains(&name.as_str()) {
                    silent.push(format!("[{}] {}", section.as_str(), setting.key));
                }
            }
        }
        assert!(silent.is_empty(), "give them a line below schema/printed: {silent:?}");
    }
}
