//! Rules without conditions as a search: a list of 300 calls is no chain of 300 comparisons.
//!
//! The kernel runs a filter for each of its calls when the filter is set, to note down those that it always allows
//! (seccomp(2)), and for each denied call. So the length of the way through it counts at every start.

use std::collections::BTreeMap;

use super::{Action, Rule, give, jump, statement};

/// So many ranges are compared one by one.
const LEAF: usize = 3;

/// Numbers that follow each other, and what becomes of all of them.
struct Range {
    from: u32,
    to: u32,
    action: Action,
}

/// The code for rules without conditions; a number that none of them names comes out at its end.
pub(super) fn compile(rules: &[Rule]) -> Vec<libc::sock_filter> {
    search(&ranges(rules), 0)
}

/// The numbers of the rules in order; of two rules for one number the first counts.
fn ranges(rules: &[Rule]) -> Vec<Range> {
    let mut actions = BTreeMap::new();
    for rule in rules {
        actions.entry(u32::try_from(rule.call).unwrap_or(u32::MAX)).or_insert(rule.action);
    }
    let mut ranges: Vec<Range> = Vec::new();
    for (number, action) in actions {
        match ranges.last_mut() {
            Some(last) if last.action == action && last.to + 1 == number => last.to = number,
            _ => ranges.push(Range { from: number, to: number, action }),
        }
    }
    ranges
}

/// The code for these ranges. A number in none of them goes over so many instructions behind it.
fn search(ranges: &[Range], over: usize) -> Vec<libc::sock_filter> {
    if ranges.len() <= LEAF {
        let code = ranges.iter().flat_map(compare);
        return code.chain((over > 0).then(|| go(over))).collect();
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let first = high.first().map_or(u32::MAX, |range| range.from);
    let high = search(high, over);
    let low = search(low, over + high.len());
    // A comparison reaches 255 instructions far, a jump any distance.
    let fork = [jump(libc::BPF_JGE, first, 0, 1), go(low.len())];
    fork.into_iter().chain(low).chain(high).collect()
}

fn compare(range: &Range) -> Vec<libc::sock_filter> {
    if range.from == range.to {
        return vec![jump(libc::BPF_JEQ, range.from, 0, 1), give(range.action)];
    }
    let (from, to) = (jump(libc::BPF_JGE, range.from, 0, 2), jump(libc::BPF_JGT, range.to, 1, 0));
    vec![from, to, give(range.action)]
}

/// Goes on behind so many instructions.
fn go(over: usize) -> libc::sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JA, u32::try_from(over).unwrap_or(u32::MAX))
}
