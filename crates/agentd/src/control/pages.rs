//! Lists in answers: which of them a person asked for, and how they are sent in pages.

use agentd_protocol::{CallError, Serialize, text};
use agentd_unit::{UnitName, pattern};

use super::{Answer, continued, last};

/// Whether a unit is of one of the types and fits one of the patterns; an empty list asks for all.
#[must_use]
pub fn is_named(unit: &UnitName, types: &[String], patterns: &[String]) -> bool {
    let is_of_type = types.is_empty() || types.iter().any(|word| word == unit.unit_type().as_str());
    let fits = |one: &String| pattern::matches(one, unit.as_str());
    is_of_type && (patterns.is_empty() || patterns.iter().any(fits))
}

/// Sends a list in as many replies as it needs; `more`: whether several are welcome. Whether the client is still there.
pub fn send<T: Serialize, R: Serialize>(
    items: Vec<T>,
    more: bool,
    answer: &Answer,
    reply: impl Fn(Vec<T>) -> R,
) -> bool {
    let mut pages = match text::pages(items) {
        Ok(pages) => pages,
        Err(error) => return answer.result::<R>(Err(CallError::Failed { message: error.to_string() })),
    };
    let end = reply(pages.pop().unwrap_or_default());
    if !pages.is_empty() && !more {
        return answer.result::<R>(Err(CallError::ExpectedMore {}));
    }
    let pages = pages.into_iter().map(|page| continued(&reply(page)));
    answer.send_all(pages.chain([last(&end)]).collect())
}
