//! The definitions that units live by, as lines of `key=value`: their files may say something else by now, or be gone.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use agentd_unit::{Origin, Remembered, SourceFile, UnitName};

/// As lines; None where a path is no UTF-8.
pub fn encode(of: &Remembered) -> Option<String> {
    let mut text =
        format!("unit={}\nenabled={}\nmain={}\n", of.unit, u8::from(of.enabled), u8::from(of.has_main));
    let mut put = |key: &str, value: &[u8]| {
        text.push_str(key);
        text.push_str(&hex(value));
        text.push('\n');
    };
    put("digest=", &of.digest);
    if let Some(signature) = &of.signature {
        put("signature=", signature);
    }
    for source in &of.sources {
        source.path().to_str()?;
        put("path=", source.path().as_os_str().as_encoded_bytes());
        put(if source.origin() == Origin::Control { "control=" } else { "text=" }, source.text().as_bytes());
    }
    of.aliases.iter().for_each(|alias| {
        let _never = writeln!(text, "alias={alias}");
    });
    Some(text)
}

/// From lines. None: something is missing.
pub fn decode(block: &str) -> Option<Remembered> {
    let fields: Vec<(&str, &str)> = block.lines().filter_map(|line| line.split_once('=')).collect();
    let get = |key: &str| fields.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let mut sources = Vec::new();
    let mut path = None;
    for (key, value) in &fields {
        match *key {
            "path" => path = Some(PathBuf::from(text(value)?)),
            "text" => sources.push(Arc::new(SourceFile::new(path.take()?, text(value)?))),
            "control" => {
                let source = SourceFile::new(path.take()?, text(value)?).with_origin(Origin::Control);
                sources.push(Arc::new(source));
            }
            _ => {}
        }
    }
    let aliases = fields.iter().filter(|(key, _)| *key == "alias");
    Some(Remembered {
        unit: UnitName::parse(get("unit")?).ok()?,
        aliases: aliases.filter_map(|(_, alias)| UnitName::parse(alias).ok()).collect(),
        enabled: get("enabled")? == "1",
        digest: bytes(get("digest")?)?.try_into().ok()?,
        sources,
        has_main: get("main")? == "1",
        signature: match get("signature") {
            Some(signature) => Some(bytes(signature)?.into()),
            None => None,
        },
    })
}

fn text(digits: &str) -> Option<String> {
    String::from_utf8(bytes(digits)?).ok()
}

/// Two digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a text cannot fail.
        let _never = write!(text, "{byte:02x}");
        text
    })
}

/// From what [`hex`] makes.
pub(super) fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_comes_back_as_it_was() {
        let of = Remembered {
            unit: UnitName::parse("web@1.service").unwrap(),
            aliases: vec![UnitName::parse("www.service").unwrap()],
            enabled: true,
            digest: [0xfe; 32],
            sources: vec![
                Arc::new(SourceFile::new("/etc/a b/web@.service.toml", "[Service]\n\nExecStart = \"/ü\"\n")),
                Arc::new(SourceFile::new("/run/control/x.toml", "[Service]\n").with_origin(Origin::Control)),
            ],
            has_main: true,
            signature: Some(Arc::from(&b"\x00\n="[..])),
        };
        assert_eq!(decode(&encode(&of).unwrap()), Some(of.clone()));
        let plain = Remembered { aliases: Vec::new(), signature: None, has_main: false, ..of };
        assert_eq!(decode(&encode(&plain).unwrap()), Some(plain));
        for text in [
            "",
            "unit=a.service\nenabled=1\nmain=1\ndigest=00\n",
            "unit=a.service\nenabled=1\nmain=1\ntext=zz\n",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
