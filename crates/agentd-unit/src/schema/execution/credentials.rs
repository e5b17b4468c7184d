//! The keys of secrets.

use super::super::{Setting, Slot};
use super::{list, unescaped};
use crate::assignment::{Raw, Value};
use crate::draft::Draft;
use crate::schema::apply::{ApplyContext, resets};
use crate::sections::{Credential, CredentialSource, Secret};
use crate::values::{Refused, path};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "LoadCredential",
        Slot::Own("list of name:path", |value, d, cx| {
            let mut loaded = Vec::new();
            list(&mut loaded, value, cx, "a list of name:path", load);
            let is_loaded =
                |c: &Credential| matches!(c.source, CredentialSource::File(_) | CredentialSource::Store(_));
            d.service.credentials.retain(|c| !resets(value) || !is_loaded(c));
            d.service.credentials.extend(loaded);
        }),
        "Secrets from files, or from all files of folders, which only its user can read, below $CREDENTIALS_DIRECTORY (%d); gone with the run.",
    ),
    Setting::new(
        "ImportCredential",
        Slot::Own("list of names, or of beginnings with a *", |value, d, cx| {
            let mut imported = Vec::new();
            list(&mut imported, value, cx, "a list of names", import);
            let is_import = |c: &Credential| matches!(c.source, CredentialSource::Import(_));
            d.service.credentials.retain(|c| !resets(value) || !is_import(c));
            d.service.credentials.extend(imported);
        }),
        "All secrets of these names that the machine has, where LoadCredential names none of that name.",
    ),
    Setting::new(
        "SetCredential",
        Slot::Own("table of secrets, or name:text", set_credential),
        "The same from the unit file itself, where LoadCredential of that name finds nothing.",
    ),
];

const HELP: &str = "a secret's name is a file's name, without slashes";

fn id(text: &str) -> Result<String, Refused> {
    if Credential::is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(Refused::of(text, "is no name of a secret", HELP))
    }
}

fn load(text: &str) -> Result<Credential, Refused> {
    let (name, source) = text.split_once(':').unwrap_or((text, ""));
    let id = id(name)?;
    let source = if source.starts_with('/') {
        CredentialSource::File(path::absolute(source)?)
    } else {
        CredentialSource::Store(if source.is_empty() { id.clone() } else { self::id(source)? })
    };
    Ok(Credential { id, source })
}

/// A name, or the beginning of some: systemd.exec(5) has a `*` at the end alone.
fn import(text: &str) -> Result<Credential, Refused> {
    let name = text.strip_suffix('*').unwrap_or(text);
    let is_all = name.is_empty() && text == "*";
    if name.contains(['*', '?', '[']) {
        return Err(Refused::of(text, "has a pattern within the name", "write NAME or NAME*"));
    }
    let id = if is_all { String::new() } else { id(name)? };
    Ok(Credential { id, source: CredentialSource::Import(text.to_owned()) })
}

/// No refusal here quotes the text.
fn set_credential(value: &Value<'_>, draft: &mut Draft, cx: &mut ApplyContext<'_>) {
    let credentials = &mut draft.service.credentials;
    if resets(value) {
        credentials.retain(|credential| !matches!(credential.source, CredentialSource::Text(_)));
        return;
    }
    let parts: Vec<&Value<'_>> = match &value.raw {
        Raw::List(list) => list.iter().collect(),
        Raw::Table(table) => {
            for (name, item) in table {
                let id = id(&name.text).map_err(|refused| cx.refuse(&name.span, refused));
                if let (Ok(id), Some(text)) = (id, cx.text(item, "a string")) {
                    put(credentials, id, text.into_owned().into_bytes());
                }
            }
            return;
        }
        _ => vec![value],
    };
    for part in parts {
        if let Some((id, secret)) = name_and_text(part, cx) {
            put(credentials, id, secret);
        }
    }
}

/// Both parts of `name:text`. In systemd's syntax the text has escapes, and no specifiers.
fn name_and_text(part: &Value<'_>, cx: &mut ApplyContext<'_>) -> Option<(String, Vec<u8>)> {
    let wanted = "a string \"name:text\"";
    let text = if cx.foreign { cx.scalar(part, wanted)? } else { cx.text(part, wanted)? };
    let Some((name, secret)) = text.split_once(':') else {
        cx.refuse(&part.span, Refused::with_help("has no ':'", "write name:text"));
        return None;
    };
    if !cx.foreign {
        return Some((cx.take(&part.span, id(name))?, secret.as_bytes().to_vec()));
    }
    let name = cx.expand(name, &part.span);
    let id = cx.take(&part.span, name.and_then(|name| id(&name)))?;
    Some((id, unescaped(secret, true, &part.span, cx)?))
}

fn put(credentials: &mut Vec<Credential>, id: String, secret: Vec<u8>) {
    credentials.retain(|c| c.id != id || !matches!(c.source, CredentialSource::Text(_)));
    credentials.push(Credential { id, source: CredentialSource::Text(Secret(secret)) });
}
