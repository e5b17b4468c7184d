//! Every section and key that a unit file may have: one table, which drives reading, suggestions and documentation.

mod actions;
mod agent;
mod agents;
mod apply;
mod conditions;
mod execution;
mod fields;
mod filters;
mod install;
mod keys;
mod life;
mod man;
mod page;
pub(crate) mod printed;
mod service;
mod show;
mod slice;
mod slot;
mod socket;
mod systemd;
mod timer;
mod triggers;
mod unit;

pub(crate) use apply::{ApplyContext, apply, resets};
pub use man::man_pages;
pub use page::keys_page;
pub use show::{Property, properties, property};
pub(crate) use slot::{Shape, Slot};
pub(crate) use systemd::{
    TYPES as SYSTEMD_TYPES, has_section as systemd_has_section, known, renamed, substitute,
};

use std::sync::LazyLock;

use crate::name::UnitType;
use keys::KeyTable;

/// A section of a unit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// `[Unit]`: every unit.
    Unit,
    /// `[Service]`: services.
    Service,
    /// `[Agent]`: services.
    Agent,
    /// `[Snapshot]`: services.
    Snapshot,
    /// `[Rollout]`: services.
    Rollout,
    /// `[Timer]`: timers, and services that bring their own.
    Timer,
    /// `[Socket]`: sockets.
    Socket,
    /// `[Path]`: paths.
    Path,
    /// `[Slice]`: slices.
    Slice,
    /// `[Install]`: every unit.
    Install,
}

impl Section {
    /// All, in the order in which files have them.
    pub const ALL: [Self; 10] = [
        Self::Unit,
        Self::Service,
        Self::Agent,
        Self::Snapshot,
        Self::Rollout,
        Self::Timer,
        Self::Socket,
        Self::Path,
        Self::Slice,
        Self::Install,
    ];

    /// The name between the brackets.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unit => "Unit",
            Self::Service => "Service",
            Self::Agent => "Agent",
            Self::Snapshot => "Snapshot",
            Self::Rollout => "Rollout",
            Self::Timer => "Timer",
            Self::Socket => "Socket",
            Self::Path => "Path",
            Self::Slice => "Slice",
            Self::Install => "Install",
        }
    }

    /// The section of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.as_str() == name)
    }

    /// Whether units of a type may have it.
    #[must_use]
    pub const fn fits(self, unit_type: UnitType) -> bool {
        match self {
            Self::Unit | Self::Install => true,
            Self::Service | Self::Agent | Self::Snapshot | Self::Rollout => {
                matches!(unit_type, UnitType::Service)
            }
            Self::Timer => matches!(unit_type, UnitType::Timer | UnitType::Service),
            Self::Socket => matches!(unit_type, UnitType::Socket | UnitType::Service),
            Self::Path => matches!(unit_type, UnitType::Path | UnitType::Service),
            Self::Slice => matches!(unit_type, UnitType::Slice),
        }
    }

    /// Its keys, in the order in which documentation lists them.
    #[must_use]
    pub const fn settings(self) -> &'static [Setting] {
        match self {
            Self::Unit => UNIT,
            Self::Service => SERVICE,
            Self::Agent => AGENT,
            Self::Snapshot => agents::SNAPSHOT_SETTINGS,
            Self::Rollout => agents::ROLLOUT_SETTINGS,
            Self::Timer => timer::SETTINGS,
            Self::Socket => socket::SOCKET_SETTINGS,
            Self::Path => socket::PATH_SETTINGS,
            Self::Slice => slice::SETTINGS,
            Self::Install => install::SETTINGS,
        }
    }

    /// Its key of this name.
    #[must_use]
    pub fn setting(self, key: &str) -> Option<&'static Setting> {
        static TABLES: LazyLock<[KeyTable; Section::ALL.len()]> =
            LazyLock::new(|| Section::ALL.map(|section| KeyTable::of(section.settings())));
        TABLES[self as usize].find(key)
    }
}

/// One key: its kind of value, which field it sets, and what it is for.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The name, as systemd spells it.
    pub key: &'static str,
    /// The kind of value and the field.
    pub(crate) slot: Slot,
    /// One sentence for people.
    pub doc: &'static str,
    /// Whether it is a resource limit, which the manager itself may set below `control/`.
    pub limit: bool,
    /// The part that will apply it, if this version only reads and checks it.
    pub later: Option<&'static str>,
}

impl Setting {
    /// The kind of value that it takes, for documentation.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.slot.kind()
    }

    /// The words of which its value is one; empty for values of other kinds.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        if let Slot::Choice(words, _) = &self.slot { words() } else { Vec::new() }
    }

    const fn new(key: &'static str, slot: Slot, doc: &'static str) -> Self {
        Self { key, slot, doc, limit: false, later: None }
    }

    const fn limit(key: &'static str, slot: Slot, doc: &'static str) -> Self {
        Self { key, slot, doc, limit: true, later: None }
    }

    /// A key that is read and checked, and that a part to come applies.
    const fn typed(key: &'static str, slot: Slot, doc: &'static str, part: &'static str) -> Self {
        Self { key, slot, doc, limit: false, later: Some(part) }
    }
}

/// Whether agentd has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It has its effect.
    Applied,
    /// Its value is read and checked, and kept for a part that this version does not have; which one.
    Typed(&'static str),
    /// systemd has it and agentd has not; why.
    NotSupported(&'static str),
    /// Neither has it.
    Unknown,
}

/// Whether agentd has the key of this name in the section of this name; old names of keys count as the new ones.
#[must_use]
pub fn support(section: &str, key: &str) -> Support {
    let Some(found) = Section::from_name(section) else {
        return match systemd_has_section(section) {
            true => Support::NotSupported("agentd has no units of that type"),
            false => Support::Unknown,
        };
    };
    let (home, name) = renamed(found, key).unwrap_or((found, key));
    match home.setting(name) {
        Some(setting) => setting.later.map_or(Support::Applied, Support::Typed),
        None => {
            known(home, name).map_or(Support::Unknown, |known| Support::NotSupported(known.reason.as_str()))
        }
    }
}

/// The keys of `[Service]`: what the service is, how it lives, and how its processes are executed.
static SERVICE: &[Setting] = &{
    const COUNT: usize =
        service::SETTINGS.len() + life::SETTINGS.len() + filters::SETTINGS.len() + execution::SETTINGS.len();
    const ALL: [Setting; COUNT] =
        joined(&[service::SETTINGS, life::SETTINGS, filters::SETTINGS, &execution::SETTINGS]);
    ALL
};

/// The keys of `[Unit]`: what concerns the unit, what must hold for it, and what concerns the whole system.
static UNIT: &[Setting] = &{
    const COUNT: usize = unit::SETTINGS.len() + conditions::SETTINGS.len() + actions::SETTINGS.len();
    const ALL: [Setting; COUNT] = joined(&[unit::SETTINGS, conditions::SETTINGS, actions::SETTINGS]);
    ALL
};

/// The keys of `[Agent]`: what the agent is, and how it lives.
static AGENT: &[Setting] = &{
    const COUNT: usize = agent::SETTINGS.len() + agents::AGENT_SETTINGS.len();
    const ALL: [Setting; COUNT] = joined(&[agent::SETTINGS, agents::AGENT_SETTINGS]);
    ALL
};

/// Tables one after the other; `N` is the sum of their lengths.
const fn joined<const N: usize>(tables: &[&[Setting]]) -> [Setting; N] {
    let mut all = [tables[0][0]; N];
    let (mut table, mut at) = (0, 0);
    while table < tables.len() {
        let mut index = 0;
        while index < tables[table].len() {
            all[at] = tables[table][index];
            at += 1;
            index += 1;
        }
        table += 1;
    }
    all
}

/// The first section that has this key.
#[must_use]
pub fn home_of(key: &str) -> Option<&'static str> {
    Section::ALL.into_iter().find(|section| section.setting(key).is_some()).map(Section::as_str)
}

/// Where a key that the section does not have was meant to go, or what was meant by it.
#[must_use]
pub fn suggestion(section: Section, key: &str) -> Option<String> {
    let nearest_in = |section: Section| {
        crate::diagnostic::nearest(key, section.settings().iter().map(|setting| setting.key))
    };
    let elsewhere = || {
        let mut others = Section::ALL.into_iter().filter(|other| *other != section);
        others.find_map(|other| Some(format!("did you mean {} of [{}]?", nearest_in(other)?, other.as_str())))
    };
    nearest_in(section).map(|near| format!("did you mean {near}?")).or_else(elsewhere)
}
