//! The disks that `IOReadBandwidthMax` and the like name, as the kernel numbers them.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use agentd_linux::cgroup::{Device, IoBounds};
use agentd_unit::UnitName;
use agentd_unit::sections::{IoBound, IoDevice, Resources};

/// `IODeviceWeight`. A disk that is not there is told of and left out, as in systemd.
#[must_use]
pub fn weights(unit: &UnitName, resources: &Resources) -> Vec<(Device, u64)> {
    let weights = resources.io_devices.iter().filter(|device| device.what == IoBound::Weight);
    weights.filter_map(|device| Some((numbers(unit, device)?, device.value))).collect()
}

/// The bounds, a line of io.max for each disk: of two for the same the later counts.
#[must_use]
pub fn bounds(unit: &UnitName, resources: &Resources) -> Vec<(Device, IoBounds)> {
    let mut all: Vec<(Device, IoBounds)> = Vec::new();
    for device in resources.io_devices.iter().filter(|device| device.what != IoBound::Weight) {
        let Some(numbers) = numbers(unit, device) else { continue };
        let place = all.iter().position(|(known, _)| *known == numbers).unwrap_or_else(|| {
            all.push((numbers, IoBounds::default()));
            all.len() - 1
        });
        let bounds = &mut all[place].1;
        *match device.what {
            IoBound::ReadBytes => &mut bounds.rbps,
            IoBound::WriteBytes => &mut bounds.wbps,
            IoBound::ReadOperations => &mut bounds.riops,
            IoBound::WriteOperations | IoBound::Weight => &mut bounds.wiops,
        } = Some(device.value);
    }
    all
}

fn numbers(unit: &UnitName, device: &IoDevice) -> Option<Device> {
    let found = disk(&device.path);
    if let Err(error) = &found {
        tracing::warn!(unit = %unit, "{} names no disk, and bounds nothing: {error}", device.path.display());
    }
    found.ok()
}

/// The whole disk of a device, or of the file system in which a path lies.
fn disk(path: &Path) -> std::io::Result<Device> {
    let meta = fs::metadata(path)?;
    let number = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    let (major, minor) = agentd_linux::descriptor::device_numbers(number);
    let entry = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))?;
    // A partition lies in the folder of its disk.
    let whole = if entry.join("partition").exists() { entry.parent().unwrap_or(&entry) } else { &entry };
    let text = fs::read_to_string(whole.join("dev"))?;
    let numbers = text.trim().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers.ok_or_else(|| std::io::Error::other(format!("{} has no numbers", whole.display())))
}
