//! What a service may reach, systemd.resource-control(5).

use std::net::IpAddr;

use super::ServiceSection;
use crate::words::Words;

/// Filters of devices and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// `DeviceAllow`: devices that it may use, in order.
    pub device_allow: Vec<DeviceRule>,
    /// `DevicePolicy`: which it may use besides.
    pub device_policy: DevicePolicy,
    /// `IPAddressAllow`: addresses that it may talk to, whatever `address_deny` says.
    pub address_allow: Vec<AddressRange>,
    /// `IPAddressDeny`: addresses that it may not talk to.
    pub address_deny: Vec<AddressRange>,
}

/// Addresses with the same beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// One of them.
    pub address: IpAddr,
    /// How many bits they have in common.
    pub bits: u8,
}

/// One `DeviceAllow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRule {
    /// A path below `/dev`, or `char-NAME` or `block-NAME` as `/proc/devices` names them.
    pub device: String,
    /// Whether it may be read.
    pub read: bool,
    /// Whether it may be written.
    pub write: bool,
    /// Whether its node may be made.
    pub make: bool,
}

/// `DevicePolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DevicePolicy {
    /// All, unless `DeviceAllow` names some.
    #[default]
    Auto,
    /// `/dev/null` and its kind.
    Closed,
    /// None.
    Strict,
}

impl Words for DevicePolicy {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("closed", Self::Closed), ("strict", Self::Strict)];
}

/// What of its devices a service may use in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceWall {
    /// `/dev/null` and its kind, and pseudo terminals.
    pub pseudo: bool,
    /// These besides.
    pub rules: Vec<DeviceRule>,
    /// The key that asks for it; none: it comes along with others.
    pub key: Option<&'static str>,
}

impl ServiceSection {
    /// The devices that it may use; `None`: all. As in systemd `PrivateDevices` brings `DevicePolicy=closed` along, and where
    /// there is a wall `ProtectClock` lets the clock of the machine be read.
    #[must_use]
    pub fn device_wall(&self) -> Option<DeviceWall> {
        let filters = &self.filters;
        let mut rules = filters.device_allow.clone();
        let key = match filters.device_policy {
            DevicePolicy::Closed | DevicePolicy::Strict => Some("DevicePolicy"),
            DevicePolicy::Auto if !rules.is_empty() => Some("DeviceAllow"),
            DevicePolicy::Auto => None,
        };
        if key.is_none() && !self.sandbox.private_devices {
            return None;
        }
        if self.sandbox.protect_clock {
            rules.push(DeviceRule { device: "char-rtc".to_owned(), read: true, write: false, make: false });
        }
        let pseudo = filters.device_policy != DevicePolicy::Strict;
        Some(DeviceWall { pseudo, rules, key })
    }

    /// `DevicePolicy`, with what other keys bring along.
    #[must_use]
    pub fn device_policy(&self) -> DevicePolicy {
        match self.filters.device_policy {
            DevicePolicy::Auto if self.sandbox.private_devices => DevicePolicy::Closed,
            policy => policy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_an_exception_from_a_wall_and_no_wall() {
        for (clock, private, policy, rules) in [
            (true, false, DevicePolicy::Auto, None),
            (false, true, DevicePolicy::Auto, Some(0)),
            (true, true, DevicePolicy::Auto, Some(1)),
            (true, false, DevicePolicy::Strict, Some(1)),
            (false, false, DevicePolicy::Closed, Some(0)),
        ] {
            let mut service = ServiceSection::default();
            service.sandbox.protect_clock = clock;
            service.sandbox.private_devices = private;
            service.filters.device_policy = policy;
            assert_eq!(
                service.device_wall().map(|wall| wall.rules.len()),
                rules,
                "{clock} {private} {policy:?}"
            );
        }
    }
}
