//! What few programs need of the kernel: memory nodes, timers, core dumps, another machine's name.

use super::super::slot::names;
use super::super::{Setting, Slot};
use super::process::put_some;
use super::{list, processors, scalar};
use crate::assignment::Value;
use crate::draft::Draft;
use crate::schema::apply::{ApplyContext, resets, set};
use crate::sections::{NumaPolicy, Personality};
use crate::values::{memory_kinds, numbers, path};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "CoredumpFilter",
        Slot::Own("list of kinds of memory", |value, d, cx| {
            let mut bits = Vec::new();
            list(&mut bits, value, cx, "a list of kinds of memory", memory_kinds::parse);
            let field = &mut d.service.execution.coredump_filter;
            *field = field.filter(|_| !resets(value));
            *field = bits.into_iter().fold(*field, |all, bits| Some(all.unwrap_or(0) | bits));
        }),
        "The kinds of memory that a core dump has, core(5), by name or as bits in hexadecimal; default the manager's.",
    ),
    Setting::new(
        "TimerSlackNSec",
        Slot::Own("span of time", |value, d, cx| {
            let slack = scalar(value, cx, "a span of time", numbers::nanoseconds);
            set(&mut d.service.execution.timer_slack, slack.map(Some));
        }),
        "How much later than asked its timers may fire; a number alone is in nanoseconds; default the manager's.",
    ),
    Setting::new(
        "Personality",
        Slot::Choice(names::<Personality>, |d, word| put_some(&mut d.service.execution.personality, word)),
        "What uname(2) tells it that the machine is; default what it is.",
    ),
    Setting::new(
        "NUMAPolicy",
        Slot::Choice(names::<NumaPolicy>, |d, word| put_some(&mut d.service.execution.numa_policy, word)),
        "Which memory nodes its memory comes from, set_mempolicy(2); default the manager's.",
    ),
    Setting::new(
        "NUMAMask",
        Slot::Own("numbers and ranges of memory nodes", |value, d, cx| {
            processors(&mut d.service.execution.numa_nodes, value, cx);
        }),
        "The nodes of NUMAPolicy.",
    ),
    Setting::new(
        "ExecSearchPath",
        Slot::Own("list of absolute paths, between colons", search_path),
        "Where programs without a path are looked for, and PATH where nothing else sets it.",
    ),
];

fn search_path(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let field = &mut draft.service.execution.search_path;
    if resets(value) {
        return field.clear();
    }
    for (span, word) in cx.words(value, "a list of paths").unwrap_or_default() {
        for part in word.split(':').filter(|part| !part.is_empty()) {
            let path = cx.take(&span, path::absolute(part));
            field.extend(path);
        }
    }
}
