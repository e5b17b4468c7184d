//! What a service or a slice may use, systemd.resource-control(5) and setrlimit(2).

use super::{NOT_SET, memory_or, number_or, ranges, text, timeout, yes_no};
use crate::draft::Draft;
use crate::sections::{IoBound, LimitedResource, Resources};
use crate::words::Words;

pub(super) fn resources(key: &str, bounds: &Resources) -> Option<String> {
    Some(match key {
        "MemoryMin" => memory_or(bounds.memory_min.as_ref(), "0"),
        "MemoryLow" => memory_or(bounds.memory_low.as_ref(), "0"),
        "DefaultMemoryMin" => memory_or(bounds.default_memory_min.as_ref(), "0"),
        "DefaultMemoryLow" => memory_or(bounds.default_memory_low.as_ref(), "0"),
        "MemorySwapMax" => memory_or(bounds.memory_swap_max.as_ref(), "infinity"),
        "MemoryZSwapMax" => memory_or(bounds.memory_zswap_max.as_ref(), "infinity"),
        "CPUQuotaPeriodSec" => timeout(bounds.cpu_period),
        "CPUWeight" if bounds.cpu_weight == Some(0) => "idle".to_owned(),
        "CPUWeight" => number_or(bounds.cpu_weight, NOT_SET),
        "IOWeight" => number_or(bounds.io_weight, NOT_SET),
        "IODeviceWeight" => disks(bounds, IoBound::Weight),
        "IOReadBandwidthMax" => disks(bounds, IoBound::ReadBytes),
        "IOWriteBandwidthMax" => disks(bounds, IoBound::WriteBytes),
        "IOReadIOPSMax" => disks(bounds, IoBound::ReadOperations),
        "IOWriteIOPSMax" => disks(bounds, IoBound::WriteOperations),
        "AllowedCPUs" => ranges(&bounds.allowed_cpus),
        "AllowedMemoryNodes" => ranges(&bounds.allowed_nodes),
        "OOMPolicy" => bounds.oom_policy().as_word().to_owned(),
        "Delegate" => yes_no(bounds.delegate),
        _ => return None,
    })
}

/// `LimitNOFILE` is the hard limit, and `LimitNOFILESoft` the soft one. Without either the manager's own count.
pub(super) fn limit(key: &str, draft: &Draft) -> Option<String> {
    let (key, soft) = key.strip_suffix("Soft").map_or((key, false), |key| (key, true));
    let resource = resource(key)?;
    let limit = draft.service.execution.limits.iter().find(|limit| limit.resource == resource);
    let bound = limit.map(|limit| if soft { limit.soft } else { limit.hard });
    Some(bound.map_or_else(String::new, |bound| {
        if bound == u64::MAX { "infinity".to_owned() } else { bound.to_string() }
    }))
}

fn resource(key: &str) -> Option<LimitedResource> {
    use LimitedResource as R;
    Some(match key {
        "LimitCPU" => R::Cpu,
        "LimitFSIZE" => R::Fsize,
        "LimitDATA" => R::Data,
        "LimitSTACK" => R::Stack,
        "LimitCORE" => R::Core,
        "LimitRSS" => R::Rss,
        "LimitNOFILE" => R::Nofile,
        "LimitAS" => R::As,
        "LimitNPROC" => R::Nproc,
        "LimitMEMLOCK" => R::Memlock,
        "LimitLOCKS" => R::Locks,
        "LimitSIGPENDING" => R::Sigpending,
        "LimitMSGQUEUE" => R::Msgqueue,
        "LimitNICE" => R::Nice,
        "LimitRTPRIO" => R::Rtprio,
        "LimitRTTIME" => R::Rttime,
        _ => return None,
    })
}

fn disks(bounds: &Resources, what: IoBound) -> String {
    let bounds = bounds.io_devices.iter().filter(|device| device.what == what);
    bounds.map(|device| format!("{} {}", text(&device.path), device.value)).collect::<Vec<_>>().join(" ")
}
