//! Sets of unit names, as sections have them.

use std::borrow::Borrow;
use std::fmt;

use crate::name::UnitName;

/// Unit names, each once, in order. A section has twenty such sets, nearly all empty: an empty one takes the room of a
/// pointer, and one with a few names little more than these.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UnitNames(
    #[expect(clippy::box_collection, reason = "an empty set is a third of the size")]
    Option<Box<Vec<UnitName>>>,
);

impl UnitNames {
    /// No name.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// The names, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[UnitName] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The names, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, UnitName> {
        self.as_slice().iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// Whether the name is among them.
    #[must_use]
    pub fn contains<N: Ord + ?Sized>(&self, name: &N) -> bool
    where
        UnitName: Borrow<N>,
    {
        self.as_slice().binary_search_by(|known| known.borrow().cmp(name)).is_ok()
    }

    /// Adds a name; whether it is new.
    pub fn insert(&mut self, name: UnitName) -> bool {
        match self.as_slice().binary_search(&name) {
            Ok(_) => false,
            Err(place) => {
                self.0.get_or_insert_with(|| Box::new(Vec::with_capacity(1))).insert(place, name);
                true
            }
        }
    }

    /// Takes a name out; whether it was there.
    pub fn remove(&mut self, name: &UnitName) -> bool {
        let Some(names) = &mut self.0 else { return false };
        let place = names.binary_search(name);
        place.map(|place| names.remove(place)).is_ok()
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl Extend<UnitName> for UnitNames {
    fn extend<I: IntoIterator<Item = UnitName>>(&mut self, names: I) {
        names.into_iter().for_each(|name| {
            self.insert(name);
        });
    }
}

impl FromIterator<UnitName> for UnitNames {
    fn from_iter<I: IntoIterator<Item = UnitName>>(names: I) -> Self {
        let mut set = Self::new();
        set.extend(names);
        set
    }
}

impl<const N: usize> From<[UnitName; N]> for UnitNames {
    fn from(names: [UnitName; N]) -> Self {
        names.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a UnitNames {
    type Item = &'a UnitName;
    type IntoIter = std::slice::Iter<'a, UnitName>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for UnitNames {
    type Item = UnitName;
    type IntoIter = std::vec::IntoIter<UnitName>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(|names| *names).unwrap_or_default().into_iter()
    }
}

impl fmt::Debug for UnitNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_in_order() {
        let name = |name: &str| UnitName::parse(name).unwrap();
        let mut names: UnitNames =
            ["c.service", "a.service", "b.service", "a.service"].map(name).into_iter().collect();
        assert_eq!(names.as_slice(), ["a.service", "b.service", "c.service"].map(name));
        assert!(!names.insert(name("b.service")));
        assert!(names.remove(&name("b.service")) && !names.remove(&name("b.service")));
        assert!(names.contains(&name("c.service")) && !names.contains("b.service"));
        names.clear();
        assert_eq!(names, UnitNames::new());
    }
}
