//! What the log hands on over a re-execution, as blocks of the list of [`super::handover`].

use std::fmt::Write as _;
use std::time::Duration;

use agentd_unit::UnitName;

use super::definition::{bytes, hex};
use crate::log::{Carried, Counted, Unfinished};

/// How the block of an unfinished line begins.
pub const LINE: &str = "kind=line\n";

/// How the block of a count begins.
pub const COUNT: &str = "kind=count\n";

/// As blocks, with an empty line behind each.
#[must_use]
pub fn encode(carried: &Carried) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    for line in &carried.unfinished {
        let _never = writeln!(text, "{LINE}unit={}\nrun={}\ntext={}", line.unit, line.run, hex(&line.text));
        if let Some(priority) = line.continued {
            let _never = writeln!(text, "continued={priority}");
        }
        text.push('\n');
    }
    for counted in &carried.counted {
        let Counted { unit, age, admitted, suppressed } = counted;
        let age = age.as_nanos();
        let _never =
            writeln!(text, "{COUNT}unit={unit}\nage={age}\nadmitted={admitted}\nsuppressed={suppressed}\n");
    }
    text
}

/// An unfinished line. None: something is missing.
#[must_use]
pub fn line(block: &str) -> Option<Unfinished> {
    Some(Unfinished {
        unit: UnitName::parse(get(block, "unit")?).ok()?,
        run: get(block, "run")?.parse().ok()?,
        text: bytes(get(block, "text")?)?,
        continued: get(block, "continued").and_then(|priority| priority.parse().ok()),
    })
}

/// A count. None: something is missing.
#[must_use]
pub fn count(block: &str) -> Option<Counted> {
    Some(Counted {
        unit: UnitName::parse(get(block, "unit")?).ok()?,
        age: Duration::from_nanos(get(block, "age")?.parse().ok()?),
        admitted: get(block, "admitted")?.parse().ok()?,
        suppressed: get(block, "suppressed")?.parse().ok()?,
    })
}

/// The value of a line of a block.
pub(super) fn get<'b>(block: &'b str, key: &str) -> Option<&'b str> {
    let mut pairs = block.lines().filter_map(|line| line.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use agentd_engine::InvocationId;

    use super::super::handover::Handover;
    use super::*;

    #[test]
    fn what_the_log_hands_on_comes_back_as_it_was() {
        let unit = UnitName::parse("web@1.service").unwrap();
        let line = |text: &[u8], continued| Unfinished {
            unit: unit.clone(),
            run: InvocationId(9),
            text: text.to_vec(),
            continued,
        };
        let carried = Carried {
            unfinished: vec![line(b"a=\n\n\xff\0", None), line(b"", Some(3))],
            counted: vec![Counted {
                unit: unit.clone(),
                age: Duration::from_millis(1),
                admitted: 2,
                suppressed: 3,
            }],
        };
        assert_eq!(Handover::decode(&encode(&carried)).lines, carried);
    }
}
