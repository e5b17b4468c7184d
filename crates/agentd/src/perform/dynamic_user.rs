//! `DynamicUser`: which number and name a unit's own user has. Pure: the same unit tries the same numbers.

use agentd_unit::UnitName;

/// The ids that systemd sets aside for dynamic users, systemd.exec(5): 61184 to 65519.
const FIRST: u32 = 61_184;
const COUNT: u32 = 65_519 - FIRST + 1;

/// All numbers, beginning with the unit's own: so that its folders mostly have the right owner already.
pub fn candidates(unit: &UnitName) -> impl Iterator<Item = u32> {
    let start = hash(unit.as_str()) % COUNT;
    (0..COUNT).map(move |step| FIRST + (start + step) % COUNT)
}

/// Whether a number is one of them.
#[must_use]
pub fn is_one(uid: u32) -> bool {
    (FIRST..FIRST + COUNT).contains(&uid)
}

/// FNV-1a, 32 bits: it spreads names, and never changes.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What the user is called: as the unit, if a user can be called so; else after its number, as in systemd.
#[must_use]
pub fn name(unit: &UnitName, uid: u32) -> String {
    let prefix = unit.prefix();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let begins = prefix.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    match begins && prefix.len() <= 31 && prefix.bytes().all(plain) {
        true => prefix.to_owned(),
        false => format!("_du{uid:x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str) -> UnitName {
        UnitName::parse(name).unwrap()
    }

    #[test]
    fn every_number_is_tried_once_and_each_unit_begins_with_its_own() {
        let mut all: Vec<u32> = candidates(&unit("web.service")).collect();
        assert_eq!(all, candidates(&unit("web.service")).collect::<Vec<_>>());
        assert_ne!(all.first(), candidates(&unit("api.service")).collect::<Vec<_>>().first());
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), all.first(), all.last()), (4336, Some(&61_184), Some(&65_519)));
    }

    #[test]
    fn a_user_is_called_as_its_unit_where_that_is_a_name() {
        assert_eq!(name(&unit("web@1.service"), 61_184), "web");
        assert_eq!(name(&unit("9web.service"), 61_184), "_duef00");
        assert_eq!(name(&unit("a.b.service"), 61_185), "_duef01");
    }
}
