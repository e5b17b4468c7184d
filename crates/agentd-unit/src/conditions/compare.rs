//! Comparisons of numbers and versions, as conditions write them: `>= 5`, `6.1`, `!= 7`.

use std::cmp::Ordering;

use crate::pattern;

/// Whether an order of two things is what was wanted.
pub(super) type Holds = fn(Ordering) -> bool;

/// The operators, the longer ones first.
const OPERATORS: [(&str, Holds); 8] = [
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<>", Ordering::is_ne),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
    ("=", Ordering::is_eq),
];

/// An operator at the beginning, and the rest.
pub(super) fn operator(text: &str) -> Option<(Holds, &str)> {
    OPERATORS.iter().find_map(|(sign, holds)| Some((*holds, text.strip_prefix(sign)?.trim_start())))
}

/// A number against a comparison; without an operator it must be at least that.
pub(super) fn number(found: u64, wanted: &str, parse: impl Fn(&str) -> Option<u64>) -> bool {
    let (holds, text) = operator(wanted).unwrap_or((Ordering::is_ge, wanted));
    parse(text).is_some_and(|wanted| holds(found.cmp(&wanted)))
}

/// A version against several comparisons or patterns, all of which must hold.
pub(super) fn version(found: &str, wanted: &str) -> bool {
    let mut words = wanted.split_ascii_whitespace();
    let mut any = false;
    while let Some(word) = words.next() {
        any = true;
        let holds = match operator(word) {
            // The operator may stand apart from its version.
            Some((holds, "")) => words.next().is_some_and(|word| holds(order(found, word))),
            Some((holds, version)) => holds(order(found, version)),
            None => pattern::matches(word, found),
        };
        if !holds {
            return false;
        }
    }
    any
}

/// Which of two versions is older, by the Version Format Specification of uapi-group.org: digits as numbers, letters as
/// letters, `~` before everything, a longer one after its own beginning.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let skipped = |text: &'_ str| -> usize {
            text.find(|c: char| c.is_ascii_alphanumeric() || c == '~').unwrap_or(text.len())
        };
        (a, b) = (&a[skipped(a)..], &b[skipped(b)..]);
        match (a.starts_with('~'), b.starts_with('~')) {
            (true, true) => (a, b) = (&a[1..], &b[1..]),
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        if a.is_empty() || b.is_empty() {
            return a.len().cmp(&b.len());
        }
        let digits =
            a.starts_with(|c: char| c.is_ascii_digit()) || b.starts_with(|c: char| c.is_ascii_digit());
        let fits = |c: char| if digits { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
        let end = |text: &str| text.find(|c| !fits(c)).unwrap_or(text.len());
        let ((x, rest_a), (y, rest_b)) = (a.split_at(end(a)), b.split_at(end(b)));
        let by_part = if digits {
            let (x, y) = (x.trim_start_matches('0'), y.trim_start_matches('0'));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            x.cmp(y)
        };
        if by_part != Ordering::Equal {
            return by_part;
        }
        (a, b) = (rest_a, rest_b);
    }
}
