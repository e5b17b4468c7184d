//! `[Agent] Sandbox = "strict"`, and what `DynamicUser` brings with it: keys that are set where the unit does not set
//! them itself.

use crate::assignment::{Raw, Value};
use crate::draft::Draft;
use crate::name::UnitName;
use crate::parse::ParseContext;
use crate::schema::{self, ApplyContext, Section};
use crate::sections::{AgentSandbox, ProtectHome, ProtectSystem};

/// What strict means: keys of `[Service]` with their values, as a unit file would have them. A key that stands here
/// twice gets both.
pub const KEYS: [(&str, &str); 32] = [
    // Who it is.
    ("DynamicUser", "yes"),
    ("NoNewPrivileges", "yes"),
    ("CapabilityBoundingSet", ""),
    ("AmbientCapabilities", ""),
    ("UMask", "0077"),
    // Where it may write.
    ("StateDirectory", "%N"),
    ("StateDirectoryMode", "0700"),
    ("ProtectSystem", "strict"),
    ("ProtectHome", "yes"),
    ("PrivateTmp", "yes"),
    ("PrivateDevices", "yes"),
    // What it sees of the machine.
    ("PrivateIPC", "yes"),
    ("ProtectProc", "invisible"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectHostname", "yes"),
    // What it may ask of the kernel.
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service"),
    ("SystemCallFilter", "~@privileged @resources @keyring @pkey"),
    (
        "SystemCallFilter",
        "~io_uring_setup io_uring_enter io_uring_register process_vm_readv process_vm_writev",
    ),
    ("SystemCallErrorNumber", "EPERM"),
    // How much there may be of it.
    ("LimitNPROC", "512"),
    ("TasksMax", "512"),
];

/// Sets what the unit leaves open. Keys that the unit has, in whichever of its files, stay as they are.
pub(crate) fn expand(unit: &UnitName, context: &ParseContext<'_>, draft: &mut Draft) {
    if draft.agent.sandbox == AgentSandbox::Strict {
        strict(unit, context, draft);
        draft.agent.landlock.get_or_insert(true);
    }
    // Only then: what is written to takes its room, and nearly all units have no sandbox.
    if draft.agent.landlock == Some(true) {
        draft.service.sandbox.landlock = true;
    }
    if draft.service.execution.dynamic_user {
        dynamic_user(draft);
    }
}

fn strict(unit: &UnitName, context: &ParseContext<'_>, draft: &mut Draft) {
    let has_user = draft.service.user.is_some();
    for (key, text) in KEYS {
        let own = draft.key(Section::Service, key).is_some() || key == "DynamicUser" && has_user;
        let Some(setting) = Section::Service.setting(key).filter(|_| !own) else { continue };
        let raw = if text.is_empty() { Raw::List(Vec::new()) } else { Raw::Text(text.into()) };
        let value = Value { raw, span: 0..0, line: None };
        let mut cx = ApplyContext::new(unit, context, &value);
        schema::apply(setting, &value, draft, &mut cx);
        debug_assert!(cx.refused.is_empty(), "{key}={text} is right, as a test shows");
    }
}

/// A user that goes must leave nothing behind that the next one of its number would own, systemd.exec(5).
fn dynamic_user(draft: &mut Draft) {
    let sandbox = &mut draft.service.sandbox;
    sandbox.private_tmp = true;
    sandbox.restrict_suid_sgid = true;
    sandbox.remove_ipc = true;
    if sandbox.protect_system != ProtectSystem::Strict {
        sandbox.protect_system = ProtectSystem::Strict;
    }
    if sandbox.protect_home == ProtectHome::No {
        sandbox.protect_home = ProtectHome::ReadOnly;
    }
    draft.service.no_new_privileges = true;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::{LoadState, LocalZone, SourceFile, SpecifierContext, effective, parse_unit};

    /// The effective values of `web@1.service` with these lines.
    fn read(agent: &str, service: &str) -> BTreeMap<&'static str, String> {
        let specifiers = SpecifierContext::system();
        let zone = LocalZone::utc();
        let context = ParseContext { specifiers: &specifiers, zone: &zone };
        let text = format!("[Agent]\n{agent}\n[Service]\nExecStart = \"/bin/a\"\n{service}\n");
        let file = SourceFile::new("/u/web@.service.toml", text);
        let name = UnitName::parse("web@1.service").unwrap();
        let parsed = parse_unit(&name, &[Arc::new(file)], &context);
        assert_eq!(parsed.unit.load, LoadState::Loaded, "{:?}", parsed.diagnostics);
        effective::sandbox(&parsed.unit.as_service().unwrap().service).into_iter().collect()
    }

    const STRICT: &str = "Sandbox = \"strict\"";

    #[test]
    fn strict_sets_every_one_of_its_keys() {
        let (open, strict) = (read("", ""), read(STRICT, ""));
        for (key, text) in KEYS {
            if !matches!(key, "AmbientCapabilities") {
                assert_ne!(open[key], strict[key], "{key}");
            }
            let value = strict[key].as_str();
            match (key, text) {
                ("SystemCallFilter", _) => assert!(value.contains(" openat ") && !value.contains("keyctl")),
                ("RestrictNamespaces", _) => assert_eq!(value, "yes"),
                (_, "%N") => assert_eq!(value, "web@1"),
                _ => assert_eq!(value, text, "{key}"),
            }
        }
    }

    #[test]
    fn a_key_that_the_unit_has_wins() {
        let own = read(
            STRICT,
            "User = \"daemon\"\nProtectHome = \"no\"\nSystemCallFilter = \"@system-service\"\nCapabilityBoundingSet = \"CAP_NET_RAW\"",
        );
        for (key, value) in [
            ("DynamicUser", "no"),
            ("User", "daemon"),
            ("ProtectHome", "no"),
            ("CapabilityBoundingSet", "CAP_NET_RAW"),
            ("PrivateTmp", "yes"),
        ] {
            assert_eq!(own[key], value, "{key}");
        }
        assert!(own["SystemCallFilter"].contains(" keyctl "));
        assert_eq!(read(STRICT, "PrivateTmp = false\nDynamicUser = false")["PrivateTmp"], "no");
    }

    #[test]
    fn strict_asks_landlock_unless_the_unit_says_otherwise() {
        for (agent, asks) in [
            ("", false),
            (STRICT, true),
            ("Landlock = true", true),
            ("Sandbox = \"strict\"\nLandlock = false", false),
        ] {
            let specifiers = SpecifierContext::system();
            let zone = LocalZone::utc();
            let context = ParseContext { specifiers: &specifiers, zone: &zone };
            let text = format!("[Agent]\n{agent}\n[Service]\nExecStart = \"/bin/a\"\n");
            let file = SourceFile::new("/u/web.service.toml", text);
            let parsed = parse_unit(&UnitName::parse("web.service").unwrap(), &[Arc::new(file)], &context);
            assert_eq!(parsed.unit.as_service().unwrap().service.sandbox.landlock, asks, "{agent}");
        }
    }

    #[test]
    fn a_dynamic_user_leaves_nothing_behind() {
        let dynamic = read("", "DynamicUser = true\nPrivateTmp = false\nProtectHome = \"tmpfs\"");
        for (key, value) in [
            ("PrivateTmp", "yes"),
            ("ProtectSystem", "strict"),
            ("ProtectHome", "tmpfs"),
            ("NoNewPrivileges", "yes"),
            ("RestrictSUIDSGID", "yes"),
        ] {
            assert_eq!(dynamic[key], value, "{key}");
        }
    }
}
