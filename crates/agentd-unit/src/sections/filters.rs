//! What a service may reach, systemd.resource-control(5).

use crate::words::Words;

/// Filters of devices and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// `DeviceAllow`: devices that it may use, in order.
    pub device_allow: Vec<DeviceRule>,
    /// `DevicePolicy`: which it may use besides.
    pub device_policy: DevicePolicy,
    /// `IPAddressAllow`: addresses that it may talk to, as written.
    pub address_allow: Vec<String>,
    /// `IPAddressDeny`: addresses that it may not talk to, as written.
    pub address_deny: Vec<String>,
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
