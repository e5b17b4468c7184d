//! Finding a key by its name.

use super::Setting;

/// The keys of one section by a hash of their names. What is looked for may be anybody's, what stands in the table is
/// ours alone: a name that was made to collide finds a chain as short as every other.
pub(super) struct KeyTable(Vec<Option<&'static Setting>>);

impl KeyTable {
    /// Of these settings, whose names differ.
    pub(super) fn of(settings: &'static [Setting]) -> Self {
        // At most a quarter is taken, so that chains are short and end.
        let mut table = Self(vec![None; (settings.len() * 4).next_power_of_two()]);
        for setting in settings {
            let mut place = table.first(setting.key);
            while table.0[place].is_some() {
                place = table.next(place);
            }
            table.0[place] = Some(setting);
        }
        table
    }

    /// The key of this name.
    pub(super) fn find(&self, key: &str) -> Option<&'static Setting> {
        let mut place = self.first(key);
        while let Some(setting) = self.0[place] {
            if setting.key == key {
                return Some(setting);
            }
            place = self.next(place);
        }
        None
    }

    /// Where a name's chain begins.
    fn first(&self, key: &str) -> usize {
        // The first and the last eight letters, and how many there are, tell our keys apart.
        let bytes = key.as_bytes();
        let (first, last) = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
        };
        let mixed = (first ^ last.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize & (self.0.len() - 1)
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Section;

    #[test]
    fn every_key_is_found_and_no_other() {
        for section in Section::ALL {
            let table = KeyTable::of(section.settings());
            for setting in section.settings() {
                let key = setting.key;
                assert!(table.find(key).is_some_and(|found| std::ptr::eq(found, setting)), "{key}");
                for other in [format!("{key}x"), format!("x{key}"), key[1..].to_owned(), key.to_lowercase()] {
                    let known = section.settings().iter().any(|setting| setting.key == other);
                    assert_eq!(table.find(&other).is_some(), known, "{other}");
                }
            }
            assert!(table.find("").is_none());
        }
    }

    #[test]
    fn no_chain_is_long() {
        for section in Section::ALL {
            let table = KeyTable::of(section.settings());
            let taken: Vec<bool> = table.0.iter().map(Option::is_some).collect();
            let longest = taken.split(|taken| !taken).map(<[bool]>::len).max();
            assert!(longest <= Some(12), "[{}]: {longest:?}", section.as_str());
        }
    }
}
