//! Slices, systemd.slice(5): where units lie in the cgroup tree, and the slices that are there without a file.
//!
//! # Invariants
//! - Every name of a slice stands for a slice: a file only adds to it.
//! - A slice lies in the one that its name begins with: `a-b.slice` in `a.slice`, and that in the root slice, `-.slice`.

use crate::escape;
use crate::name::{UnitName, UnitType};
use crate::search_path::Scope;
use crate::unit::{Body, LoadState, Unit};

/// The slice that all others lie in.
const ROOT: &str = "-.slice";
/// Where the machine's units lie by default.
const SYSTEM: &str = "system.slice";
/// Where a user's units lie by default.
const USER: &str = "app.slice";

impl UnitName {
    /// Whether a slice can have this name: no dash stands at its ends or beside another, and it is no template.
    #[must_use]
    pub fn is_slice(&self) -> bool {
        let stem = self.stem();
        let is_path = || !stem.contains('@') && stem.split('-').all(|part| !part.is_empty());
        self.unit_type() == UnitType::Slice && (self.as_str() == ROOT || is_path())
    }

    /// The slice that a slice lies in: `a.slice` for `a-b.slice`. The root slice lies in none.
    #[must_use]
    pub fn parent_slice(&self) -> Option<Self> {
        if !self.is_slice() || self.as_str() == ROOT {
            return None;
        }
        let above = self.stem().rsplit_once('-').map(|(above, _)| format!("{above}.slice"));
        Self::parse(above.as_deref().unwrap_or(ROOT)).ok()
    }

    /// Whether it is a slice that is active as long as the manager is there: the root slice and `system.slice`.
    #[must_use]
    pub fn is_perpetual(&self) -> bool {
        matches!(self.as_str(), ROOT | SYSTEM)
    }

    /// Where units lie that name no slice.
    pub(crate) fn default_slice(scope: Scope) -> Option<Self> {
        Self::parse(if scope == Scope::User { USER } else { SYSTEM }).ok()
    }
}

impl Unit {
    /// What a name without a file stands for: a slice, or nothing that was found.
    #[must_use]
    pub fn without_file(name: UnitName) -> Self {
        let mut unit = Self::not_found(name);
        if unit.name.is_slice() {
            unit.load = LoadState::Loaded;
            unit.describe_slice();
        }
        unit
    }

    /// Whether it is a slice that is there because of its name alone.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        self.name.is_slice() && self.load == LoadState::Loaded && self.fragment.is_none()
    }

    /// The slice that it lies in. A unit without processes lies in none, and one that no loader has placed may not
    /// say.
    #[must_use]
    pub fn slice(&self) -> Option<UnitName> {
        match &self.body {
            Body::Service(body) => body.service.slice.clone(),
            Body::Slice(_) => self.name.parent_slice(),
            Body::Timer(_) | Body::Socket(_) | Body::Path(_) | Body::Target => None,
        }
    }

    /// Gives it what does not stand in its file: a service its slice, below `default`, where all instances of a template
    /// lie together as in systemd; a slice its description.
    pub(crate) fn place(&mut self, default: &UnitName) {
        let instances = || {
            let escaped = escape::escape(self.name.prefix());
            UnitName::parse(&format!("{}-{escaped}.slice", default.stem())).ok()
        };
        match &mut self.body {
            Body::Service(body) if body.service.slice.is_none() => {
                let own = self.name.instance().and_then(|_| instances());
                body.service.slice = Some(own.unwrap_or_else(|| default.clone()));
            }
            Body::Slice(_) => self.describe_slice(),
            _ => {}
        }
    }

    fn describe_slice(&mut self) {
        // It is there before everything and to the end.
        self.unit.default_dependencies &= !self.name.is_perpetual();
        let description = match self.name.as_str() {
            ROOT => "Root Slice".to_owned(),
            SYSTEM => "System Slice".to_owned(),
            _ => match escape::unescape_path(self.name.stem()) {
                Ok(path) => format!("Slice {path}"),
                Err(_) => return,
            },
        };
        self.unit.description.get_or_insert(description);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that ends where it cannot go on")]
mod tests {
    use super::*;

    fn name(text: &str) -> UnitName {
        UnitName::parse(text).unwrap()
    }

    #[test]
    fn a_slice_lies_in_the_one_that_its_name_begins_with() {
        for (slice, parent) in [
            ("a-b-c.slice", Some("a-b.slice")),
            ("a-b.slice", Some("a.slice")),
            ("a.slice", Some("-.slice")),
            ("-.slice", None),
            ("a.service", None),
            ("a--b.slice", None),
            ("-a.slice", None),
            ("a-.slice", None),
            ("a@b.slice", None),
        ] {
            assert_eq!(name(slice).parent_slice(), parent.map(name), "{slice}");
        }
    }

    #[test]
    fn a_slice_needs_no_file() {
        for (slice, load, description) in [
            ("-.slice", LoadState::Loaded, "Root Slice"),
            ("system.slice", LoadState::Loaded, "System Slice"),
            ("system-some\\x2dthing.slice", LoadState::Loaded, "Slice /system/some-thing"),
            ("a--b.slice", LoadState::NotFound, "a--b.slice"),
            ("a.target", LoadState::NotFound, "a.target"),
        ] {
            let unit = Unit::without_file(name(slice));
            assert_eq!((&unit.load, unit.description()), (&load, description), "{slice}");
            assert_eq!(unit.is_implied(), load == LoadState::Loaded, "{slice}");
        }
    }

    #[test]
    fn a_service_lies_in_its_slice_or_in_the_usual_one() {
        for (service, scope, own, slice) in [
            ("a.service", Scope::System, None, "system.slice"),
            ("a.service", Scope::User, None, "app.slice"),
            ("a.service", Scope::System, Some("b.slice"), "b.slice"),
            ("a@1.service", Scope::System, None, "system-a.slice"),
            ("a-b@1.service", Scope::User, None, "app-a\\x2db.slice"),
            ("a@1.service", Scope::System, Some("b.slice"), "b.slice"),
        ] {
            let mut unit = Unit::not_found(name(service));
            if let Body::Service(body) = &mut unit.body {
                body.service.slice = own.map(name);
            }
            unit.place(&UnitName::default_slice(scope).unwrap());
            assert_eq!(unit.slice(), Some(name(slice)), "{service}");
        }
    }
}
