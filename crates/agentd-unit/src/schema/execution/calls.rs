//! The walls: system calls.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Setting, Slot};
use super::scalar;
use crate::assignment::{Raw, Value};
use crate::draft::Draft;
use crate::schema::apply::{ApplyContext, PlacedWord, resets, set};
use crate::sections::{AddressFamilies, SystemCalls};
use crate::values::syscalls::{self, ALL_NAMESPACES, Denial};
use crate::values::{Refused, boolean};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "RestrictNamespaces",
        Slot::Own("boolean or list of kinds", namespaces),
        "The kinds of namespaces that it may make and enter; true allows none, ~ all but these; default all.",
    ),
    Setting::new(
        "RestrictSUIDSGID",
        Slot::Bool(|d| &mut d.service.sandbox.restrict_suid_sgid),
        "It gives no file the set-user-id or set-group-id bit; default no.",
    ),
    Setting::new(
        "RestrictRealtime",
        Slot::Bool(|d| &mut d.service.sandbox.restrict_realtime),
        "It cannot ask for real-time scheduling; default no.",
    ),
    Setting::new(
        "LockPersonality",
        Slot::Bool(|d| &mut d.service.sandbox.lock_personality),
        "It cannot change its execution domain, personality(2); default no.",
    ),
    Setting::new(
        "MemoryDenyWriteExecute",
        Slot::Bool(|d| &mut d.service.sandbox.deny_write_execute),
        "It has no memory that is both written and executed; default no.",
    ),
    Setting::new(
        "RestrictAddressFamilies",
        Slot::Own("list of address families, none or ~", families),
        "The address families that its sockets may have; ~ all but these; default all.",
    ),
    Setting::new(
        "SystemCallFilter",
        Slot::Own("list of system calls and groups", calls),
        "The system calls that it may make, such as @system-service; ~ all but these; default all.",
    ),
    Setting::new(
        "SystemCallLog",
        Slot::Own("list of system calls and groups", |value, d, cx| {
            listed(value, &mut d.service.sandbox.logged_calls, None, cx);
        }),
        "The system calls that the kernel's audit log tells of, where it has one; ~ all but these; default none.",
    ),
    Setting::new(
        "SystemCallErrorNumber",
        Slot::Own("error or kill", |value, d, cx| {
            let denial = scalar(value, cx, "an error", syscalls::denial);
            set(&mut d.service.sandbox.system_call_error, denial.map(Some));
        }),
        "What a call gives that SystemCallFilter denies; default kill.",
    ),
    Setting::new(
        "SystemCallArchitectures",
        Slot::Own("native", |value, d, cx| {
            if resets(value) {
                d.service.sandbox.native_calls = false;
                return;
            }
            for (span, word) in cx.words(value, "the word native").unwrap_or_default() {
                let help = "native is the only one; it shuts out x32 and 32-bit calls";
                match &*word {
                    "native" => d.service.sandbox.native_calls = true,
                    _ => cx.refuse(&span, Refused::of(&word, "is no architecture here", help)),
                }
            }
        }),
        "The calling conventions that it may use: native alone; default all.",
    ),
];

/// A list whose first word may begin with `~`, which turns the whole round.
type Words<'v> = (bool, Vec<PlacedWord<'v>>);

fn words<'v>(value: &'v Value<'_>, cx: &mut ApplyContext<'_>, wanted: &str) -> Option<Words<'v>> {
    let mut words = cx.words(value, wanted)?;
    let mut inverted = false;
    if let Some((_, first)) = words.first_mut()
        && let Some(rest) = first.strip_prefix('~')
    {
        inverted = true;
        *first = rest.to_owned().into();
    }
    words.retain(|(_, word)| !word.is_empty());
    Some((inverted, words))
}

fn namespaces(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let field = &mut draft.service.sandbox.namespaces;
    let said = match &value.raw {
        Raw::Bool(yes) => Some(*yes),
        Raw::Text(text) => boolean::parse(text.trim()).ok(),
        _ => None,
    };
    match said {
        Some(restrict) => *field = restrict.then_some(0),
        None if resets(value) => *field = None,
        None => {
            let Some((inverted, words)) = words(value, cx, "a list of kinds") else { return };
            let mut flags = 0;
            for (span, word) in words {
                flags |= cx.take(&span, syscalls::namespace(&word)).unwrap_or(0);
            }
            *field = Some(match (*field, inverted) {
                (None, false) => flags,
                (None, true) => ALL_NAMESPACES & !flags,
                (Some(before), false) => before | flags,
                (Some(before), true) => before & !flags,
            });
        }
    }
}

fn families(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let field = &mut draft.service.sandbox.address_families;
    if resets(value) {
        *field = None;
        return;
    }
    let Some((inverted, words)) = words(value, cx, "a list of address families") else { return };
    if let [(_, word)] = words.as_slice()
        && word == "none"
    {
        *field = Some(AddressFamilies { allow: true, families: [].into() });
        return;
    }
    let list = field.get_or_insert_with(|| AddressFamilies { allow: !inverted, families: [].into() });
    for (span, word) in words {
        let Some(family) = cx.take(&span, syscalls::address_family(&word)) else { continue };
        if list.allow == inverted {
            list.families.remove(&family);
        } else {
            list.families.insert(family);
        }
    }
}

/// A list that allows has what no program can do without.
fn calls(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let mut always = syscalls::group("@default").unwrap_or_default();
    // What executes a program that was verified is the same as execve, by descriptor.
    always.insert("execveat");
    listed(value, &mut draft.service.sandbox.system_calls, Some(&always), cx);
}

/// As in systemd: the first assignment says whether the list allows or denies; later ones add to it or, the other way
/// round, take away. `always` is in each list that allows; without, the list is not of what is denied.
fn listed(
    value: &Value<'_>,
    field: &mut Option<SystemCalls>,
    always: Option<&BTreeSet<&'static str>>,
    cx: &mut ApplyContext<'_>,
) {
    if resets(value) {
        *field = None;
        return;
    }
    let Some((inverted, words)) = words(value, cx, "a list of system calls") else { return };
    let rules = known(words, always.is_some(), cx);
    if always.is_none() && rules.is_empty() {
        return;
    }
    let list = field.get_or_insert_with(|| SystemCalls { allow: !inverted, calls: BTreeMap::new() });
    if list.allow && list.calls.is_empty() {
        list.calls.extend(always.into_iter().flatten().map(|call| (*call, None)));
    }
    for (calls, denial) in rules {
        for call in calls {
            if list.allow == inverted {
                list.calls.remove(call);
            } else {
                list.calls.insert(call, denial);
            }
        }
    }
}

/// What each word means. As in systemd, a list goes on without what is not known: a newer kernel may have it.
fn known(
    words: Vec<PlacedWord<'_>>,
    may_deny: bool,
    cx: &mut ApplyContext<'_>,
) -> Vec<(BTreeSet<&'static str>, Option<Denial>)> {
    let mut rules = Vec::new();
    for (span, word) in words {
        match syscalls::rule(&word) {
            Err(unknown) if cx.foreign && !syscalls::is_known(&word) => cx.warn(&span, unknown),
            Ok((_, Some(_))) if !may_deny => {
                cx.refuse(
                    &span,
                    Refused::of(&word, "denies nothing here", "leave out the colon and the error"),
                );
            }
            rule => rules.extend(cx.take(&span, rule)),
        }
    }
    rules
}
