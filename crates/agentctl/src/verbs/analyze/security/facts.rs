//! What the checks look at: a service's keys, and what follows from them.

use agentd_unit::sections::{
    DevicePolicy, KeyringMode, NotifyAccess, ProtectHome, ProtectProc, ProtectSystem, Sandbox,
};
use agentd_unit::values::{capability, syscalls};
use agentd_unit::{ServiceSection, Unit};

/// A service, and what more than one check asks of it.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) service: &'a ServiceSection,
    /// It runs as root.
    pub(super) root: bool,
    /// It runs before the machine is up: `DefaultDependencies=no`.
    early: bool,
    /// The capabilities that it can have, with those taken that other keys take.
    capabilities: u64,
}

/// How a check decides: 0 is shut; none, that it does not matter.
#[derive(Debug)]
pub(super) enum Judge {
    /// By a rule of its own.
    Rule(fn(&Facts<'_>) -> Option<u64>),
    /// The same, for what makes no sense early in the boot.
    Late(fn(&Facts<'_>) -> Option<u64>),
    /// Whether it can have one of these capabilities.
    Capabilities(&'static [&'static str]),
    /// Whether it may make namespaces of this kind.
    Namespace(&'static str),
    /// Whether it may have sockets of one of these families; none named: of any that no other check names.
    Families(&'static [&'static str]),
    /// Whether it may make a call of this group.
    Calls(&'static str),
}

/// The families that have a check of their own.
const FAMILIES: [&str; 5] = ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"];

impl<'a> Facts<'a> {
    pub(super) fn of(unit: &'a Unit, service: &'a ServiceSection) -> Self {
        let user = service.user.as_deref();
        let named = user.is_some_and(|name| !matches!(name, "root" | "0"));
        let taken = service.sandbox.takes();
        Self {
            service,
            early: !unit.unit.default_dependencies,
            root: !named && !service.execution.dynamic_user,
            capabilities: service.capability_bounding_set.unwrap_or(capability::ALL) & !taken,
        }
    }

    /// Its keys are its alone: the default of a system's manager.
    pub(super) fn own_keys(&self) -> bool {
        matches!(self.service.execution.keyring, None | Some(KeyringMode::Private))
    }

    pub(super) fn sandbox(&self) -> &'a Sandbox {
        &self.service.sandbox
    }

    /// 10 for root, 9 for the user that many share.
    pub(super) fn user(&self) -> u64 {
        match self.service.user.as_deref() {
            _ if self.root => 10,
            Some("nobody" | "65534") if !self.service.execution.dynamic_user => 9,
            _ => 0,
        }
    }

    /// Whether what it mounts stays with it.
    pub(super) fn has_own_mounts(&self) -> bool {
        let s = self.sandbox();
        s.private_mounts
            || s.private_devices
            || s.private_tmp
            || s.protect_control_groups
            || s.protect_kernel_tunables
            || s.protect_kernel_modules
            || s.protect_home != ProtectHome::No
            || s.protect_system != ProtectSystem::No
    }

    pub(super) fn home(&self) -> u64 {
        match self.sandbox().protect_home {
            ProtectHome::No => 10,
            ProtectHome::ReadOnly => 5,
            ProtectHome::Tmpfs => 1,
            ProtectHome::Yes => 0,
        }
    }

    pub(super) fn system(&self) -> u64 {
        match self.sandbox().protect_system {
            ProtectSystem::No => 10,
            ProtectSystem::Yes => 5,
            ProtectSystem::Full => 3,
            ProtectSystem::Strict => 0,
        }
    }

    pub(super) fn processes(&self) -> u64 {
        match self.sandbox().protect_proc {
            ProtectProc::Default => 3,
            ProtectProc::NoAccess => 1,
            ProtectProc::Invisible | ProtectProc::Ptraceable => 0,
        }
    }

    /// 0 for pseudo devices alone, 5 for some others, 10 for all.
    pub(super) fn devices(&self) -> u64 {
        match (self.service.device_policy(), self.service.device_wall()) {
            (DevicePolicy::Auto, _) | (_, None) => 10,
            (_, Some(wall)) if wall.rules.is_empty() => 0,
            (_, Some(_)) => 5,
        }
    }

    /// 10 if not all are denied; else how far the exceptions reach.
    pub(super) fn addresses(&self) -> u64 {
        let filters = &self.service.filters;
        let denied = |v4: bool| {
            filters.address_deny.iter().any(|range| range.bits == 0 && range.address.is_ipv4() == v4)
        };
        match filters.address_allow.iter().all(|range| range.address.is_loopback()) {
            _ if !denied(true) || !denied(false) => 10,
            false => 5,
            true if filters.address_allow.is_empty() => 0,
            true => 2,
        }
    }

    /// Who else may do something with the files that it makes.
    pub(super) fn umask(&self) -> u64 {
        let umask = self.service.execution.umask;
        match () {
            () if umask & 0o002 == 0 => 10,
            () if umask & 0o004 == 0 => 5,
            () if umask & 0o020 == 0 => 2,
            () if umask & 0o040 == 0 => 1,
            () => 0,
        }
    }

    /// Whether processes but the main one can speak for it.
    pub(super) fn others_notify(&self) -> bool {
        self.service.notify_access == NotifyAccess::All
    }

    fn makes_namespaces(&self, kind: &str) -> bool {
        let flag = syscalls::namespace(kind).unwrap_or(0);
        self.sandbox().namespaces.is_none_or(|allowed| allowed & flag != 0)
    }

    /// As systemd-analyze counts: a list of what is denied shuts a check when it names one of its families.
    fn has_sockets(&self, named: &[&str]) -> bool {
        let Some(list) = &self.sandbox().address_families else { return true };
        let number = |name: &&str| syscalls::address_family(name).ok();
        let is_meant = |family: &u16| match named.is_empty() {
            false => named.iter().filter_map(number).any(|known| known == *family),
            true => !FAMILIES.iter().filter_map(number).any(|known| known == *family),
        };
        list.families.iter().any(is_meant) == list.allow
    }

    fn calls(&self, group: &str) -> u64 {
        let Some(list) = &self.sandbox().system_calls else { return 10 };
        let calls = syscalls::group(group).unwrap_or_default();
        let allowed = |call: &&str| match list.calls.get(call) {
            Some(denial) => list.allow && denial.is_none(),
            None => !list.allow,
        };
        match (calls.iter().any(allowed), list.allow) {
            (false, _) => 0,
            (true, true) => 9,
            (true, false) => 10,
        }
    }
}

fn mask(names: &[&str]) -> u64 {
    match capability::parse(names.iter().copied()) {
        Ok(capability::Set::Only(mask)) => mask,
        _ => 0,
    }
}

impl Judge {
    pub(super) fn badness(&self, facts: &Facts<'_>) -> Option<u64> {
        match self {
            Self::Rule(rule) => rule(facts),
            Self::Late(rule) => rule(facts).filter(|_| !facts.early),
            Self::Capabilities(names) => Some(u64::from(facts.capabilities & mask(names) != 0)),
            Self::Namespace(kind) => Some(u64::from(facts.makes_namespaces(kind))),
            Self::Families(families) => Some(u64::from(facts.has_sockets(families))),
            Self::Calls(group) => Some(facts.calls(group)),
        }
    }
}
