//! What a service may reach, systemd.resource-control(5).

use std::net::IpAddr;

use super::apply::{ApplyContext, resets};
use super::execution::scalar;
use super::slot::{names, put};
use super::{Setting, Slot};
use crate::assignment::Value;
use crate::sections::{AddressRange, DevicePolicy, DeviceRule};
use crate::values::Refused;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "DeviceAllow",
        Slot::Own("device with letters of rwm, or a list of them", |value, d, cx| {
            devices(&mut d.service.filters.device_allow, value, cx);
        }),
        "Devices that it may use: a path below /dev, char-NAME or block-NAME.",
    ),
    Setting::new(
        "DevicePolicy",
        Slot::Choice(names::<DevicePolicy>, |d, word| put(&mut d.service.filters.device_policy, word)),
        "Which devices it may use besides; default auto, all if DeviceAllow names none.",
    ),
    Setting::new(
        "IPAddressAllow",
        Slot::Own("list of addresses", |value, d, cx| {
            addresses(&mut d.service.filters.address_allow, value, cx);
        }),
        "Addresses that it may talk to, also where IPAddressDeny names them.",
    ),
    Setting::new(
        "IPAddressDeny",
        Slot::Own("list of addresses", |value, d, cx| {
            addresses(&mut d.service.filters.address_deny, value, cx);
        }),
        "Addresses that it may not talk to: any, localhost, link-local, multicast or ADDRESS/BITS.",
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

fn addresses(field: &mut Vec<AddressRange>, value: &Value<'_>, cx: &mut ApplyContext<'_>) {
    if resets(value) {
        return field.clear();
    }
    for (span, word) in cx.words(value, "a list of addresses").unwrap_or_default() {
        field.extend(cx.take(&span, address(&word)).into_iter().flatten());
    }
}

/// What each word stands for, systemd.resource-control(5).
const RANGES: [(&str, [&str; 2]); 4] = [
    ("any", ["0.0.0.0/0", "::/0"]),
    ("localhost", ["127.0.0.0/8", "::1/128"]),
    ("link-local", ["169.254.0.0/16", "fe80::/64"]),
    ("multicast", ["224.0.0.0/4", "ff00::/8"]),
];

fn address(text: &str) -> Result<Vec<AddressRange>, Refused> {
    match RANGES.iter().find(|(word, _)| *word == text) {
        Some((_, ranges)) => ranges.iter().map(|text| range(text)).collect(),
        None => range(text).map(|range| vec![range]),
    }
}

fn range(text: &str) -> Result<AddressRange, Refused> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let (address, most) = match address.parse() {
        Ok(address @ IpAddr::V4(_)) => (address, 32),
        Ok(address @ IpAddr::V6(_)) => (address, 128),
        Err(_) => return Err(Refused::of(text, "is no address", "write ADDRESS/BITS, any or localhost")),
    };
    match bits.map_or(Ok(most), str::parse::<u8>) {
        Ok(bits) if bits <= most => Ok(AddressRange { address, bits }),
        _ => Err(Refused::of(text, "has no such number of bits", "write for example 10.0.0.0/8")),
    }
}
