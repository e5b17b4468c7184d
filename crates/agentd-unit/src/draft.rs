//! A unit's sections while its files are applied to them.

use std::ops::Range;

use crate::schema::Section;
use crate::sections::{
    AgentSection, CapabilityMask, InstallSection, PathSection, RolloutSection, ServiceSection, SliceSection,
    SnapshotSection, SocketSection, TimerSection, UnitSection,
};

/// Where a key was last set: what a finding about it points at.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The file: its place among those of the unit.
    pub file: usize,
    /// The key in it.
    pub span: Range<usize>,
}

/// All sections at their defaults, with what is needed to merge and to cross-check them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    /// `[Unit]`.
    pub unit: UnitSection,
    /// `[Install]`.
    pub install: InstallSection,
    /// `[Service]`.
    pub service: ServiceSection,
    /// `[Agent]`.
    pub agent: AgentSection,
    /// `[Timer]`.
    pub timer: TimerSection,
    /// `[Snapshot]`.
    pub snapshot: SnapshotSection,
    /// `[Rollout]`.
    pub rollout: RolloutSection,
    /// `[Socket]`.
    pub socket: SocketSection,
    /// `[Path]`.
    pub path: PathSection,
    /// `[Slice]`.
    pub slice: SliceSection,
    /// `AmbientCapabilities` so far; `None`: never set.
    pub ambient: Option<CapabilityMask>,
    sections: [Option<Place>; Section::ALL.len()],
    /// A few dozen at most in nearly every file: one after the other they are found sooner than in a tree.
    keys: Keys,
}

/// Keys that were set, and where.
pub(crate) type Keys = Vec<(Section, &'static str, Place)>;

impl Draft {
    /// An empty one that notes the keys in this list.
    pub(crate) fn noting_in(mut keys: Keys) -> Self {
        keys.clear();
        Self { keys, ..Self::default() }
    }

    /// The list that the keys were noted in.
    pub(crate) fn into_keys(self) -> Keys {
        self.keys
    }

    /// Notes that a file has a section.
    pub(crate) fn saw_section(&mut self, section: Section, place: Place) {
        self.sections[section as usize].get_or_insert(place);
    }

    /// Notes where a key was set.
    pub(crate) fn saw_key(&mut self, section: Section, key: &'static str, place: Place) {
        match self.keys.iter_mut().find(|(of, known, _)| (*of, *known) == (section, key)) {
            Some((.., known)) => *known = place,
            None => self.keys.push((section, key, place)),
        }
    }

    /// Takes back that a key was set: an empty value made it what it is by default.
    pub(crate) fn forget_key(&mut self, section: Section, key: &'static str) {
        self.keys.retain(|(of, known, _)| (*of, *known) != (section, key));
    }

    /// Where a section stands first, if any file has it.
    #[must_use]
    pub(crate) fn section(&self, section: Section) -> Option<&Place> {
        self.sections[section as usize].as_ref()
    }

    /// Where a key was set last, if it was.
    #[must_use]
    pub(crate) fn key(&self, section: Section, key: &'static str) -> Option<&Place> {
        self.keys.iter().find(|(of, known, _)| (*of, *known) == (section, key)).map(|(.., place)| place)
    }
}
