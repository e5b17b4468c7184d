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
    use super::*;
    use crate::sections::Life;

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
}
