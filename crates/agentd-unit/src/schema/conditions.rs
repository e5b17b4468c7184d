//! `Condition…` and `Assert…`, systemd.unit(5).

use super::apply::{ApplyContext, resets};
use super::{Setting, Slot};
use crate::assignment::{Raw, Value};
use crate::draft::Draft;
use crate::sections::{Condition, Test};
use crate::values::{self, Refused};

macro_rules! conditions {
    ($($test:ident: $doc:literal,)*) => {
        &[$(
            Setting::new(
                concat!("Condition", stringify!($test)),
                Slot::Own(KIND, |value, d, cx| conditions(Test::$test, false, value, d, cx)),
                concat!("Where this does not hold, the start is left out: ", $doc),
            ),
            Setting::new(
                concat!("Assert", stringify!($test)),
                Slot::Own(KIND, |value, d, cx| conditions(Test::$test, true, value, d, cx)),
                concat!("Where this does not hold, the start fails: ", $doc),
            ),
        )*]
    };
}

const KIND: &str = "condition, or a list of them";

/// The keys.
pub(super) const SETTINGS: &[Setting] = conditions! {
    PathExists: "a file or folder is there.",
    PathExistsGlob: "a file or folder that fits a pattern is there.",
    PathIsDirectory: "a folder is there.",
    PathIsSymbolicLink: "a symbolic link is there.",
    PathIsMountPoint: "a file system is mounted there.",
    PathIsReadWrite: "it is on a file system that can be written.",
    DirectoryNotEmpty: "a folder is there and holds something.",
    FileNotEmpty: "a regular file is there and holds something.",
    FileIsExecutable: "a regular file is there and may be executed.",
    Host: "the machine has this host name (or pattern) or machine id.",
    Architecture: "the processor is of this architecture.",
    Virtualization: "yes, no, vm, container, or the name of what the machine runs in.",
    KernelCommandLine: "a word or name=value of the kernel command line.",
    KernelVersion: "the kernel's release fits a pattern or a comparison.",
    KernelModuleLoaded: "a module is loaded or built in.",
    Environment: "a variable or NAME=value of the manager's environment.",
    User: "the manager's user: a name, a number or @system.",
    Group: "a group of the manager: a name, a number or @system.",
    Memory: "the machine's memory, compared with a size.",
    CPUs: "the processors that the manager may use, compared with a number.",
    OSRelease: "fields of os-release, compared.",
    ControlGroupController: "controllers of the control groups, or v2.",
    Capability: "a capability that the manager has in its bounding set.",
    ACPower: "yes: the machine is not known to run on a battery; no: it is.",
    CPUFeature: "a flag of the processor, as /proc/cpuinfo has it.",
};

/// An empty value takes back all conditions (or all asserts), of whatever key.
fn conditions(test: Test, assert: bool, value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        draft.unit.conditions.retain(|condition| condition.assert != assert);
        return;
    }
    let items = match &value.raw {
        Raw::List(list) => list.as_slice(),
        _ => std::slice::from_ref(value),
    };
    for item in items {
        let Some(text) = cx.scalar(item, "a string") else { continue };
        let expanded = cx.expand(&text, &item.span);
        let Some(text) = cx.take(&item.span, expanded) else { continue };
        let parsed = cx.take(&item.span, parse(test, assert, &text));
        draft.unit.conditions.extend(parsed);
    }
}

/// `|` and `!` stand in front, in this order.
fn parse(test: Test, assert: bool, text: &str) -> Result<Condition, Refused> {
    let rest = text.trim();
    let (trigger, rest) = rest.strip_prefix('|').map_or((false, rest), |rest| (true, rest.trim_start()));
    let (negate, rest) = rest.strip_prefix('!').map_or((false, rest), |rest| (true, rest.trim_start()));
    if rest.is_empty() {
        return Err(Refused::of(text, "says nothing to look for", "write it behind the = sign"));
    }
    match test {
        Test::Capability => drop(values::capability::parse([rest])?),
        Test::ACPower => drop(values::boolean::parse(rest)?),
        _ => {}
    }
    let parameter =
        if test.takes_path() { values::path::absolute(rest)?.display().to_string() } else { rest.to_owned() };
    Ok(Condition { test, parameter, negate, trigger, assert })
}
