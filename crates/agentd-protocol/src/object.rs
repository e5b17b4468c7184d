//! The parameters of a reply: a JSON object, kept as its text.
//!
//! An answer about a thousand units is written once and read once. As a tree of values it would be made, copied and taken
//! apart again on either side, which takes several times as long.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON object as text. Two are equal if their texts are.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Object(Box<RawValue>);

impl Object {
    /// What a value is as JSON.
    ///
    /// # Errors
    /// If it does not become an object.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        let text = to_raw_value(value)?;
        if is_object(&text) { Ok(Self(text)) } else { Err(no_object()) }
    }

    /// The value of a type.
    ///
    /// # Errors
    /// If the object is not of the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

fn no_object() -> serde_json::Error {
    <serde_json::Error as serde::ser::Error>::custom("it is no object")
}

fn is_object(text: &RawValue) -> bool {
    text.get().starts_with('{')
}

impl Default for Object {
    fn default() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<'de> Deserialize<'de> for Object {
    /// Null counts as no parameters, as varlink has it.
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        match Option::<Box<RawValue>>::deserialize(source)? {
            None => Ok(Self::default()),
            Some(text) if is_object(&text) => Ok(Self(text)),
            Some(_) => Err(D::Error::custom("parameters are no object")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_and_read_as_it_is_and_nothing_else_is_one() {
        let read = |text: &str| serde_json::from_str::<Object>(text);
        for (text, object) in [
            (r#"{"a":[1,{"b":null}]}"#, Some(r#"{"a":[1,{"b":null}]}"#)),
            (" { \"a\" : 1 } ", Some("{ \"a\" : 1 }")),
            ("null", Some("{}")),
            ("[]", None),
            ("7", None),
            ("{\"a\":}", None),
            ("{\"a\":1", None),
        ] {
            assert_eq!(read(text).ok().as_ref().map(Object::as_str), object, "{text}");
        }
        assert_eq!(Object::of(&serde_json::json!({"a": 1})).unwrap().as_str(), r#"{"a":1}"#);
        assert!(Object::of(&[1]).is_err() && Object::of("{").is_err() && Object::of(&()).is_err());
        assert_eq!(Object::default(), read("{}").unwrap());
    }
}
