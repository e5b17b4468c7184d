//! The interface descriptions and the types are of one mind: each method, parameter, result and error.
//!
//! A small reader of varlink's language builds one example of each type; the typed structs must take it and give
//! back the same, so that no field is missing on either side.

#![expect(clippy::expect_used, reason = "a description that cannot be read must fail the test")]

use std::collections::{BTreeMap, BTreeSet};

use agentd_protocol::introspect::INTERFACES;
use agentd_protocol::{Call, CallError, Request};
use serde_json::{Map, Value, json};

/// Words that a field of this name takes where not any text will do.
const WORDS: [(&str, &str); 17] = [
    ("mode", "isolate"),
    ("result", "canceled"),
    ("whom", "main"),
    ("kind", "exit"),
    ("source", "journal"),
    ("LoadState", "masked"),
    ("ActiveState", "failed"),
    ("UnitFileState", "disabled"),
    ("Trust", "refused"),
    ("SystemState", "degraded"),
    ("State", "running"),
    ("Type", "removed"),
    ("Action", "keep"),
    ("Stream", "manager"),
    ("parameter", "x"),
    ("interface", "x.y"),
    ("method", "x.y.Z"),
];

#[derive(Debug, Default)]
struct Description {
    name: String,
    types: BTreeMap<String, Vec<(String, String)>>,
    methods: BTreeMap<String, [Vec<(String, String)>; 2]>,
    errors: BTreeMap<String, Vec<(String, String)>>,
}

/// `(a: int, b: []string)` as pairs; the rest of the text after it.
fn fields(text: &str) -> (Vec<(String, String)>, &str) {
    let text = text.trim_start().strip_prefix('(').expect("an opening parenthesis");
    let (inside, rest) = text.split_once(')').expect("a closing parenthesis");
    let pairs = inside.split(',').map(str::trim).filter(|field| !field.is_empty());
    let split = |field: &str| {
        let (name, kind) = field.split_once(':').expect("a field has a type");
        (name.trim().to_owned(), kind.trim().to_owned())
    };
    (pairs.map(split).collect(), rest)
}

fn read(text: &str) -> Description {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let code = code.join("\n");
    let mut rest = code.trim();
    let mut description = Description::default();
    while !rest.is_empty() {
        let (keyword, after) = rest.split_once(' ').expect("a keyword and a name");
        let end = after.find([' ', '(', '\n']).expect("something after the name");
        let (name, after) = after.split_at(end);
        rest = match keyword {
            "interface" => {
                description.name = name.to_owned();
                after
            }
            "type" | "error" => {
                let (fields, after) = fields(after);
                let table = if keyword == "type" { &mut description.types } else { &mut description.errors };
                table.insert(name.to_owned(), fields);
                after
            }
            "method" => {
                let (parameters, after) = fields(after);
                let after = after.trim_start().strip_prefix("->").expect("an arrow");
                let (results, after) = fields(after);
                description.methods.insert(name.to_owned(), [parameters, results]);
                after
            }
            other => panic!("{other} is no keyword of varlink"),
        }
        .trim_start();
    }
    description
}

fn descriptions() -> Vec<Description> {
    INTERFACES.iter().map(|interface| read(interface.description)).collect()
}

/// One value of a type; of optional ones the value, as that shows more than `null`.
fn example(description: &Description, field: &str, kind: &str) -> Value {
    if let Some(inner) = kind.strip_prefix('?') {
        return example(description, field, inner);
    }
    if let Some(inner) = kind.strip_prefix("[]") {
        return json!([example(description, field, inner)]);
    }
    if let Some(inner) = kind.strip_prefix("[string]") {
        return json!({"SomeName": example(description, field, inner)});
    }
    match kind {
        "int" => json!(7),
        "bool" => json!(true),
        "string" => {
            json!(WORDS.iter().find(|(name, _)| *name == field).map_or("some text", |(_, word)| word))
        }
        name => object(description, &description.types[name]),
    }
}

fn object(description: &Description, fields: &[(String, String)]) -> Value {
    let example = |(name, kind): &(String, String)| (name.clone(), example(description, name, kind));
    Value::Object(fields.iter().map(example).collect::<Map<_, _>>())
}

#[test]
fn every_method_that_is_described_is_served_and_the_other_way_round() {
    let described: BTreeSet<String> = descriptions()
        .iter()
        .flat_map(|one| one.methods.keys().map(|name| format!("{}.{name}", one.name)).collect::<Vec<_>>())
        .collect();
    assert_eq!(described, Request::METHODS.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn every_parameter_and_result_that_is_described_is_typed_and_comes_back() {
    for description in descriptions() {
        for (name, [parameters, results]) in &description.methods {
            let method = format!("{}.{name}", description.name);
            let sides = (object(&description, parameters), object(&description, results));
            let back = Request::round_trip(&method, sides.0.clone(), sides.1.clone());
            assert_eq!(back.unwrap_or_else(|error| panic!("{method}: {error}")), sides, "{method}");
        }
    }
}

#[test]
fn every_optional_parameter_may_be_left_out_or_null() {
    for description in descriptions() {
        for (name, [parameters, _]) in &description.methods {
            let method = format!("{}.{name}", description.name);
            let full = object(&description, parameters);
            for (optional, _) in parameters.iter().filter(|(_, kind)| kind.starts_with('?')) {
                for value in [None, Some(Value::Null)] {
                    let mut parameters = full.as_object().unwrap().clone();
                    parameters.remove(optional);
                    parameters.extend(value.map(|value| (optional.clone(), value)));
                    let call = json!({"method": method, "parameters": parameters}).to_string();
                    let read = Request::from_call(Call::parse(call.as_bytes()).unwrap());
                    assert!(read.is_ok(), "{method} without {optional}: {read:?}");
                }
            }
        }
    }
}

#[test]
fn every_error_that_is_described_is_typed() {
    // Standard errors that this service never sends.
    let never = ["MethodNotImplemented", "PermissionDenied"];
    for description in descriptions() {
        for (name, fields) in description.errors.iter().filter(|(name, _)| !never.contains(&name.as_str())) {
            let full = format!("{}.{name}", description.name);
            let parameters = object(&description, fields).as_object().unwrap().clone();
            let error = CallError::from_wire(full.clone(), parameters.clone());
            assert!(!matches!(error, CallError::Other { .. }), "{full}");
            let reply = error.to_reply();
            assert_eq!((reply.error, reply.parameters.read().unwrap()), (Some(full), parameters));
        }
    }
}
