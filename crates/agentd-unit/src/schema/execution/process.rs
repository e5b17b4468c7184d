//! What the kernel holds of a process: scheduling, identity, root, signals.

use super::super::slot::names;
use super::super::{Setting, Slot};
use super::{list, octal, processors, scalar};
use crate::schema::apply::{resets, set};
use crate::sections::{CpuPolicy, IoClass, KeyringMode};
use crate::values::{numbers, principal};
use crate::words::Words;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "UMask",
        Slot::Own("octal digits", |value, d, cx| set(&mut d.service.execution.umask, octal(value, cx))),
        "File mode bits that are taken away at creation; default 0022.",
    ),
    Setting::new(
        "Nice",
        Slot::Own("number from -20 to 19", |value, d, cx| {
            let nice = scalar(value, cx, "a whole number", |text| numbers::between(text, -20, 19));
            set(&mut d.service.execution.nice, nice.map(Some));
        }),
        "How readily it gives way to others on the processor; default 0.",
    ),
    Setting::new(
        "OOMScoreAdjust",
        Slot::Own("number from -1000 to 1000", |value, d, cx| {
            let score = scalar(value, cx, "a whole number", |text| numbers::between(text, -1000, 1000));
            set(&mut d.service.execution.oom_score_adjust, score.map(Some));
        }),
        "How readily the kernel kills it when memory is short; -1000 never.",
    ),
    Setting::new(
        "CPUSchedulingPolicy",
        Slot::Choice(names::<CpuPolicy>, |d, word| put_some(&mut d.service.execution.cpu_policy, word)),
        "How the kernel gives it the processor, sched(7); default other.",
    ),
    Setting::new(
        "CPUSchedulingPriority",
        Slot::Own("number from 1 to 99", |value, d, cx| {
            let priority = scalar(value, cx, "a whole number", |text| numbers::between(text, 1, 99));
            set(&mut d.service.execution.cpu_priority, priority.map(|number| Some(number.unsigned_abs())));
        }),
        "Its rank under fifo and rr; default 1, the lowest.",
    ),
    Setting::new(
        "CPUSchedulingResetOnFork",
        Slot::Bool(|d| &mut d.service.execution.cpu_reset_on_fork),
        "Its children begin with the default policy; default no.",
    ),
    Setting::new(
        "CPUAffinity",
        Slot::Own("numbers and ranges of processors", |value, d, cx| {
            processors(&mut d.service.execution.cpu_affinity, value, cx);
        }),
        "The processors that it may run on; default all.",
    ),
    Setting::new(
        "IOSchedulingClass",
        Slot::Choice(names::<IoClass>, |d, word| put_some(&mut d.service.execution.io_class, word)),
        "Its rank at the disks, ioprio_set(2); default none, by the nice value.",
    ),
    Setting::new(
        "IOSchedulingPriority",
        Slot::Own("number from 0 to 7", |value, d, cx| {
            let priority = scalar(value, cx, "a whole number", |text| numbers::between(text, 0, 7));
            set(&mut d.service.execution.io_priority, priority.map(|number| Some(number.unsigned_abs())));
        }),
        "Its rank within its class; 0 is the highest, default 4.",
    ),
    Setting::new(
        "DynamicUser",
        Slot::Bool(|d| &mut d.service.execution.dynamic_user),
        "A user of its own while it runs, with the walls that it needs; default no.",
    ),
    Setting::new(
        "KeyringMode",
        Slot::Choice(names::<KeyringMode>, |d, word| put_some(&mut d.service.execution.keyring, word)),
        "The ring of its keys in the kernel: the manager's, one of its own, or one of its own with its user's keys; \
         default private, and inherit in a user manager.",
    ),
    Setting::new(
        "SupplementaryGroups",
        Slot::Own("list of groups", |value, d, cx| {
            let field = &mut d.service.execution.supplementary_groups;
            list(field, value, cx, "a list of groups", principal::parse);
        }),
        "Groups besides those that its user is in.",
    ),
    Setting::new(
        "RootDirectory",
        Slot::Path(|d| &mut d.service.execution.root_directory),
        "What its processes see as /; its programs are looked up there.",
    ),
    Setting::new(
        "IgnoreSIGPIPE",
        Slot::Bool(|d| &mut d.service.execution.ignore_sigpipe),
        "Writing where nobody reads is an error and not its end; default yes.",
    ),
    Setting::new(
        "SecureBits",
        Slot::Own("list of secure bits", |value, d, cx| {
            let mut bits = Vec::new();
            list(&mut bits, value, cx, "a list of secure bits", numbers::secure_bit);
            let field = &mut d.service.execution.secure_bits;
            *field = if resets(value) { 0 } else { bits.into_iter().fold(*field, |all, bit| all | bit) };
        }),
        "How the kernel treats root and changes of user, capabilities(7); default none.",
    ),
];

/// Sets a choice that may be unset; whether there is such a word.
pub(super) fn put_some<T: Words>(field: &mut Option<T>, word: &str) -> bool {
    let value = T::from_word(word);
    *field = value.or(*field);
    value.is_some()
}
