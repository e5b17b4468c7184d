//! `LimitCPU` to `LimitRTTIME`: setrlimit(2).

use super::super::{Setting, Slot};
use super::scalar;
use crate::assignment::Value;
use crate::draft::Draft;
use crate::schema::apply::{ApplyContext, resets};
use crate::sections::LimitedResource;
use crate::values::rlimit;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    limit("LimitCPU", |v, d, cx| put(LimitedResource::Cpu, v, d, cx), "Seconds of processor time."),
    limit("LimitFSIZE", |v, d, cx| put(LimitedResource::Fsize, v, d, cx), "Bytes of a file."),
    limit("LimitDATA", |v, d, cx| put(LimitedResource::Data, v, d, cx), "Bytes of data."),
    limit("LimitSTACK", |v, d, cx| put(LimitedResource::Stack, v, d, cx), "Bytes of stack."),
    limit("LimitCORE", |v, d, cx| put(LimitedResource::Core, v, d, cx), "Bytes of a core dump."),
    limit("LimitRSS", |v, d, cx| put(LimitedResource::Rss, v, d, cx), "Without effect since Linux 2.4.30."),
    limit("LimitNOFILE", |v, d, cx| put(LimitedResource::Nofile, v, d, cx), "Open descriptors."),
    limit("LimitAS", |v, d, cx| put(LimitedResource::As, v, d, cx), "Bytes of address space."),
    limit("LimitNPROC", |v, d, cx| put(LimitedResource::Nproc, v, d, cx), "Processes of its user."),
    limit("LimitMEMLOCK", |v, d, cx| put(LimitedResource::Memlock, v, d, cx), "Bytes locked into memory."),
    limit(
        "LimitLOCKS",
        |v, d, cx| put(LimitedResource::Locks, v, d, cx),
        "Without effect since Linux 2.4.25.",
    ),
    limit("LimitSIGPENDING", |v, d, cx| put(LimitedResource::Sigpending, v, d, cx), "Signals that wait."),
    limit("LimitMSGQUEUE", |v, d, cx| put(LimitedResource::Msgqueue, v, d, cx), "Bytes in message queues."),
    limit(
        "LimitNICE",
        |v, d, cx| put(LimitedResource::Nice, v, d, cx),
        "The lowest nice value, as +5 or -5.",
    ),
    limit(
        "LimitRTPRIO",
        |v, d, cx| put(LimitedResource::Rtprio, v, d, cx),
        "The highest real-time priority.",
    ),
    limit("LimitRTTIME", |v, d, cx| put(LimitedResource::Rttime, v, d, cx), "Real time without a pause."),
];

const fn limit(key: &'static str, apply: super::super::slot::Apply, doc: &'static str) -> Setting {
    Setting::new(key, Slot::Own("limit, soft:hard or \"infinity\"", apply), doc)
}

fn put(resource: LimitedResource, value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let limits = &mut draft.service.execution.limits;
    let parsed = if resets(value) {
        None
    } else {
        match scalar(value, cx, "a limit", |text| rlimit::parse(resource, text)) {
            Some(limit) => Some(limit),
            None => return,
        }
    };
    limits.retain(|limit| limit.resource != resource);
    limits.extend(parsed);
}
