//! Parts of sections that most files leave alone.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// What a part of a section is where no file sets anything of it.
pub trait Unset: Default + 'static {
    /// One for the whole program.
    fn unset() -> &'static Self;
}

/// A part of a section that most files leave alone: it reads as its default, and takes the room of a pointer until
/// something of it is set. A thousand services that set nothing of it do not hold a thousand defaults.
#[derive(Clone)]
pub struct Rare<T>(Option<Box<T>>);

#[cfg(test)]
impl<T> Rare<T> {
    /// Whether something of it was written to, so that it takes its room.
    pub(crate) const fn has_room(&self) -> bool {
        self.0.is_some()
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Unset> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::unset())
    }
}

impl<T: Unset> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T> From<T> for Rare<T> {
    fn from(part: T) -> Self {
        Self(Some(Box::new(part)))
    }
}

/// Two are equal if they read the same.
impl<T: Unset + PartialEq> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.0.is_none() && other.0.is_none()) || **self == **other
    }
}

impl<T: Unset + fmt::Debug> fmt::Debug for Rare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Gives types the one that is there where nothing is set.
macro_rules! unset {
    ($($part:ty),* $(,)?) => {$(
        impl $crate::rare::Unset for $part {
            fn unset() -> &'static Self {
                static UNSET: std::sync::LazyLock<$part> = std::sync::LazyLock::new(<$part>::default);
                &UNSET
            }
        }
    )*};
}
pub(crate) use unset;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sections::Life;
    use crate::{LocalZone, SourceFile, SpecifierContext, parse::ParseContext, parse_unit};

    #[test]
    fn an_unset_part_reads_as_the_default_and_takes_a_pointer() {
        let mut part: Rare<Life> = Rare::default();
        assert_eq!(*part, Life::default());
        assert_eq!(size_of_val(&part), size_of::<usize>());
        part.root_start_only = true;
        assert!(part.root_start_only);
        assert_ne!(part, Rare::default());
        part.root_start_only = false;
        assert_eq!(part, Rare::default(), "what was set to the default is the default");
    }
    #[test]
    fn a_service_that_sets_nothing_rare_holds_nothing_of_it() {
        let text = "[Unit]\nDescription = \"one of a thousand\"\n[Service]\nExecStart = [\"/bin/a\", \"b\"]\n\
                    Restart = \"always\"\n[Install]\nWantedBy = [\"all.target\"]\n";
        let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
        let context = ParseContext { specifiers: &specifiers, zone: &zone };
        let file = Arc::new(SourceFile::new("/u/a.service.toml", text));
        let parsed = parse_unit(&"a.service".parse().unwrap(), &[file], &context);
        let unit = &parsed.unit;
        let service = &unit.as_service().unwrap().service;
        let rooms = [
            unit.unit.system.has_room(),
            service.execution.has_room(),
            service.life.has_room(),
            service.filters.has_room(),
            service.sandbox.has_room(),
            service.resources.has_room(),
        ];
        assert_eq!(rooms, [false; 6]);
    }
}
