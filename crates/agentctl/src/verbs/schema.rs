//! `schema`: what unit files may say, as JSON Schema for editors, from the same table that reads them.

use std::io::Write;

use agentd_unit::UnitType;
use agentd_unit::schema::{Section, Setting};
use serde_json::{Map, Value, json};

use crate::exit::{Exit, Outcome};
use crate::print::json as print;

/// Where the schema of all unit types is installed; units name it in their `#:schema` line.
pub(crate) const INSTALLED: &str = "/usr/share/agentd/unit.schema.json";

/// `agentctl schema [TYPE]`.
pub(crate) fn schema(unit_type: Option<UnitType>, out: &mut impl Write) -> Outcome {
    print(&document(unit_type), out)?;
    Ok(Exit::Done)
}

/// The schema of the files of one type, or of all: then every section may stand in a file.
fn document(unit_type: Option<UnitType>) -> Value {
    let fits = |section: &Section| unit_type.is_none_or(|unit_type| section.fits(unit_type));
    let sections = Section::ALL.into_iter().filter(|section| fits(section) && !section.settings().is_empty());
    let properties: Map<String, Value> =
        sections.map(|section| (section.as_str().to_owned(), table(section))).collect();
    let title = match unit_type {
        Some(unit_type) => format!("A {unit_type} of agentd"),
        None => "A unit of agentd".to_owned(),
    };
    let mut schema = object(&properties);
    schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("title".to_owned(), json!(title));
    Value::Object(schema)
}

fn table(section: Section) -> Value {
    let properties = section.settings().iter().map(|one| (one.key.to_owned(), setting(one))).collect();
    let mut table = object(&properties);
    table.insert("description".to_owned(), json!(format!("[{}]", section.as_str())));
    Value::Object(table)
}

/// What begins with X- is for other programs.
fn object(properties: &Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties.clone())),
        ("patternProperties".to_owned(), json!({ "^X-": {} })),
        ("additionalProperties".to_owned(), json!(false)),
    ])
}

fn setting(setting: &Setting) -> Value {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "integer", "minimum": 0 });
    let list = |of: Value| json!({ "anyOf": [text(), { "type": "array", "items": of }] });
    let scalar = || json!({ "anyOf": [text(), number()] });
    let words = setting.words();
    let kind = setting.kind();
    let shape = match kind {
        "word" if words.contains(&"no") => json!({ "enum": with_false(&words) }),
        "word" => json!({ "enum": words }),
        "boolean" => {
            let words = ["yes", "no", "true", "false", "on", "off", "1", "0", "y", "n", "t", "f"];
            json!({ "anyOf": [{ "type": "boolean" }, { "enum": words }, { "enum": [0, 1] }] })
        }
        "whole number" | "signal" | "user or group" | "percentage" => scalar(),
        "command" => {
            let words = json!({ "type": "array", "items": text() });
            json!({ "anyOf": [text(), words, { "type": "array", "items": words }] })
        }
        "table of variables" => {
            let values = json!({ "type": ["string", "integer", "boolean", "number"] });
            json!({ "anyOf": [{ "type": "object", "additionalProperties": values }, list(text())] })
        }
        kind if kind.starts_with("list of ") => list(text()),
        kind if kind.contains("or a list of them") => {
            json!({ "anyOf": [text(), number(), { "type": "array", "items": scalar() }] })
        }
        kind if kind.starts_with("span of time")
            || kind.starts_with("size")
            || kind.starts_with("number") =>
        {
            json!({ "anyOf": [text(), { "type": "number", "minimum": 0 }] })
        }
        "text" | "unit" | "slice" | "absolute path" | "absolute path or dotted name" => text(),
        // A kind of value that this page does not know in particular: whatever a key may have.
        _ => json!({ "type": ["string", "integer", "number", "boolean", "array", "object"] }),
    };
    let mut shape = if let Value::Object(shape) = shape { shape } else { Map::new() };
    shape.insert("description".to_owned(), json!(format!("{} ({kind})", setting.doc)));
    Value::Object(shape)
}

/// `Restart = false` reads well and means no.
fn with_false(words: &[&str]) -> Vec<Value> {
    words.iter().map(|word| json!(word)).chain([json!(false)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_place_and_its_sentence() {
        let schema = document(None);
        for section in Section::ALL {
            for setting in section.settings() {
                let found = &schema["properties"][section.as_str()]["properties"][setting.key];
                let description = found["description"].as_str().unwrap_or_default();
                assert!(description.starts_with(setting.doc), "[{}] {}", section.as_str(), setting.key);
            }
        }
        assert!(document(Some(UnitType::Target))["properties"].get("Service").is_none());
        assert_eq!(schema["properties"]["Service"]["additionalProperties"], false);
    }

    #[test]
    fn every_unit_that_ships_names_the_schema_and_keeps_to_it() {
        let schema = document(None);
        let units = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units");
        let mut folders = vec![units.clone(), units.join("examples")];
        let mut count = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let shown = path.display();
                assert!(text.starts_with(&format!("#:schema {INSTALLED}\n")), "{shown}");
                let sections = schema["properties"].as_object().unwrap();
                let is_known =
                    |key: &str| sections.values().any(|section| section["properties"].get(key).is_some());
                for line in text.lines().filter(|line| !line.starts_with([' ', '#'])) {
                    let Some((key, _)) = line.split_once(" = ") else { continue };
                    // The keys of a table of variables are written in capitals.
                    assert!(is_known(key) || key == key.to_uppercase(), "{shown}: {key}");
                }
                count += 1;
            }
        }
        assert!(count > 10, "{count} units");
    }
}
