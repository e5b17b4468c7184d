//! What a service is kept from, and the secrets that it is given (their names alone).

use super::{text, words};
use crate::draft::Draft;
use crate::sections::{AddressRange, Bind, Credential, CredentialSource, DeviceRule};
use crate::values::capability;
use crate::values::syscalls::Denial;
use crate::words::Words;

pub(super) fn value(key: &str, draft: &Draft) -> Option<String> {
    let (sandbox, filters) = (&draft.service.sandbox, &draft.service.filters);
    Some(match key {
        "CapabilityBoundingSet" => {
            let mask = draft.service.capability_bounding_set.unwrap_or(capability::ALL);
            capability::names(mask & !sandbox.takes()).join(" ").to_lowercase()
        }
        "DevicePolicy" => draft.service.device_policy().as_word().to_owned(),
        // Numbers, as the bus has them; this one kills.
        "SystemCallErrorNumber" => match sandbox.system_call_error {
            Some(Denial::Errno(errno)) => errno.to_string(),
            Some(Denial::Kill) | None => "2147483646".to_owned(),
        },
        "DeviceAllow" => {
            draft.service.device_wall().map_or_else(String::new, |wall| words(&wall.rules, device))
        }
        "IPAddressAllow" => words(&filters.address_allow, range),
        "IPAddressDeny" => words(&filters.address_deny, range),
        "TemporaryFileSystem" => words(&sandbox.temporary, |folder| {
            let read_only = folder.read_only.then_some("ro");
            let options =
                read_only.into_iter().chain((!folder.options.is_empty()).then_some(&*folder.options));
            let options: Vec<&str> = options.collect();
            let gap = if options.is_empty() { "" } else { ":" };
            format!("{}{gap}{}", text(&folder.path), options.join(","))
        }),
        "BindPaths" => binds(draft, false),
        "BindReadOnlyPaths" => binds(draft, true),
        "LoadCredential" => credentials(draft, |secret| match &secret.source {
            CredentialSource::File(path) => Some(format!("{}:{}", secret.id, text(path))),
            CredentialSource::Store(name) if *name == secret.id => Some(secret.id.clone()),
            CredentialSource::Store(name) => Some(format!("{}:{name}", secret.id)),
            CredentialSource::Import(_) | CredentialSource::Text(_) => None,
        }),
        "ImportCredential" => credentials(draft, |secret| match &secret.source {
            CredentialSource::Import(pattern) => Some(pattern.clone()),
            _ => None,
        }),
        _ => return None,
    })
}

fn device(rule: &DeviceRule) -> String {
    let letter = |is: bool, letter: &'static str| if is { letter } else { "" };
    let (read, write, make) = (letter(rule.read, "r"), letter(rule.write, "w"), letter(rule.make, "m"));
    format!("{} {read}{write}{make}", rule.device)
}

fn range(range: &AddressRange) -> String {
    format!("{}/{}", range.address, range.bits)
}

fn binds(draft: &Draft, read_only: bool) -> String {
    let of_key: Vec<&Bind> =
        draft.service.sandbox.binds.iter().filter(|bind| bind.read_only == read_only).collect();
    words(&of_key, |bind| {
        let optional = if bind.optional { "-" } else { "" };
        let how = if bind.recursive { "rbind" } else { "norbind" };
        format!("{optional}{}:{}:{how}", text(&bind.source), text(&bind.target))
    })
}

fn credentials(draft: &Draft, one: impl Fn(&Credential) -> Option<String>) -> String {
    draft.service.credentials.iter().filter_map(one).collect::<Vec<_>>().join(" ")
}
