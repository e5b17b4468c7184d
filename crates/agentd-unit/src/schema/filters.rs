//! What a service may reach, systemd.resource-control(5).

use super::apply::{ApplyContext, resets};
use super::execution::scalar;
use super::slot::{names, put};
use super::{Setting, Slot};
use crate::assignment::Value;
use crate::sections::{DevicePolicy, DeviceRule};
use crate::values::Refused;

const DEVICES: &str = "device filters come with a later version";
const ADDRESSES: &str = "address filters come with a later version";

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::typed(
        "DeviceAllow",
        Slot::Own("device with letters of rwm, or a list of them", |value, d, cx| {
            devices(&mut d.service.filters.device_allow, value, cx);
        }),
        "Devices that it may use: a path below /dev, char-NAME or block-NAME.",
        DEVICES,
    ),
    Setting::typed(
        "DevicePolicy",
        Slot::Choice(names::<DevicePolicy>, |d, word| put(&mut d.service.filters.device_policy, word)),
        "Which devices it may use besides; default auto, all if DeviceAllow names none.",
        DEVICES,
    ),
    Setting::typed(
        "IPAddressAllow",
        Slot::Own("list of addresses", |value, d, cx| {
            addresses(&mut d.service.filters.address_allow, value, cx);
        }),
        "Addresses that it may talk to, also where IPAddressDeny names them.",
        ADDRESSES,
    ),
    Setting::typed(
        "IPAddressDeny",
        Slot::Own("list of addresses", |value, d, cx| {
            addresses(&mut d.service.filters.address_deny, value, cx);
        }),
        "Addresses that it may not talk to: any, localhost, link-local, multicast or ADDRESS/BITS.",
        ADDRESSES,
    ),
];

fn devices(field: &mut Vec<DeviceRule>, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        return field.clear();
    }
    for part in value.parts() {
        field.extend(scalar(part, cx, "a device", device));
    }
}

fn device(text: &str) -> Result<DeviceRule, Refused> {
    const HELP: &str = "write for example \"/dev/fuse rw\" or \"char-pts r\"";
    let mut words = text.split_ascii_whitespace();
    let device = words.next().unwrap_or_default();
    let letters = words.next().unwrap_or("rwm");
    let known = device.starts_with("/dev/") || device.starts_with("char-") || device.starts_with("block-");
    if !known || words.next().is_some() || !letters.bytes().all(|letter| b"rwm".contains(&letter)) {
        return Err(Refused::of(text, "is no device with letters of rwm", HELP));
    }
    let has = |letter: char| letters.contains(letter);
    Ok(DeviceRule { device: device.to_owned(), read: has('r'), write: has('w'), make: has('m') })
}

fn addresses(field: &mut Vec<String>, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        return field.clear();
    }
    for (span, word) in cx.words(value, "a list of addresses").unwrap_or_default() {
        field.extend(cx.take(&span, address(&word)));
    }
}

fn address(text: &str) -> Result<String, Refused> {
    if matches!(text, "any" | "localhost" | "link-local" | "multicast") {
        return Ok(text.to_owned());
    }
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let most = match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return Err(Refused::of(text, "is no address", "write ADDRESS/BITS, any or localhost")),
    };
    match bits.map(str::parse::<u32>) {
        None => Ok(text.to_owned()),
        Some(Ok(bits)) if bits <= most => Ok(text.to_owned()),
        Some(_) => Err(Refused::of(text, "has no such number of bits", "write for example 10.0.0.0/8")),
    }
}
