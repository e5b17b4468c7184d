//! The two kinds of message: a call and its replies, <https://varlink.org/Method-Call>.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::CallError;
use crate::frame::{FrameError, MAX_ANSWER, MAX_FRAME, seal};
use crate::object::Object;

/// Why bytes are no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The frame is not the JSON that it should be.
    #[error("message is not valid")]
    Json(#[from] serde_json::Error),
    /// The frame is something else than a JSON object.
    #[error("message is no JSON object")]
    NoObject,
    /// It is too long to be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// `oneway` asks for no answer, `more` for several.
    #[error("a call cannot be both 'oneway' and 'more'")]
    Contradiction,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The full name: `io.agentd.Manager.StartUnit`.
    pub method: String,
    /// The arguments by name; absent counts as empty.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "crate::manager::or_default")]
    pub parameters: Map<String, Value>,
    /// No reply is wanted, not even an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub oneway: bool,
    /// Several replies are welcome: all but the last have `continues`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
    /// The connection is to change its protocol after the reply; no method here does that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub upgrade: bool,
}

impl Call {
    /// Reads one frame.
    ///
    /// # Errors
    /// If it is no JSON object of this form, or contradicts itself.
    pub fn parse(frame: &[u8]) -> Result<Self, MessageError> {
        let call: Self = from_object(frame)?;
        if call.oneway && call.more { Err(MessageError::Contradiction) } else { Ok(call) }
    }

    /// The frame with its NUL, ready to be written.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if the arguments do not fit.
    pub fn to_frame(&self) -> Result<Vec<u8>, MessageError> {
        Ok(seal(serde_json::to_vec(self)?, MAX_FRAME)?)
    }

    /// The interface that the method is of: what stands before the last dot.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.method.rsplit_once('.').map_or("", |(interface, _)| interface)
    }
}

/// What the manager answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The results by name, or the error's.
    #[serde(default)]
    pub parameters: Object,
    /// Another reply to the same call follows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub continues: bool,
    /// The full name of the error, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Reply {
    /// The last or only reply to a call.
    ///
    /// # Errors
    /// If the value does not become a JSON object, which every type of this crate does.
    pub fn last<T: Serialize>(value: &T) -> Result<Self, MessageError> {
        Ok(Self { parameters: Object::of(value)?, continues: false, error: None })
    }

    /// A reply after which others come; only for a call with `more`.
    ///
    /// # Errors
    /// As [`Reply::last`].
    pub fn continued<T: Serialize>(value: &T) -> Result<Self, MessageError> {
        Ok(Self { continues: true, ..Self::last(value)? })
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// If it is no JSON object of this form.
    pub fn parse(frame: &[u8]) -> Result<Self, MessageError> {
        from_object(frame)
    }

    /// The frame with its NUL, ready to be written.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if the results do not fit.
    pub fn to_frame(&self) -> Result<Vec<u8>, MessageError> {
        Ok(seal(serde_json::to_vec(self)?, MAX_ANSWER)?)
    }

    /// The typed results, or the typed error.
    ///
    /// # Errors
    /// The error that the manager sent; [`CallError::Malformed`] if its answer is not of the type.
    pub fn into_result<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let malformed = |error: serde_json::Error| CallError::Malformed { message: error.to_string() };
        match self.error {
            Some(name) => Err(CallError::from_wire(name, self.parameters.read().map_err(malformed)?)),
            None => self.parameters.read().map_err(malformed),
        }
    }
}

/// A message is a JSON object; serde would take a list of the fields as well.
fn from_object<T: DeserializeOwned>(frame: &[u8]) -> Result<T, MessageError> {
    if frame.trim_ascii_start().first() != Some(&b'{') {
        return Err(MessageError::NoObject);
    }
    Ok(serde_json::from_slice(frame)?)
}

/// varlink calls carry objects only.
pub(crate) fn to_object<T: Serialize>(value: &T) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        other => serde_json::from_value(other),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_in_every_form_that_varlink_allows() {
        for (case, text, good) in [
            ("bare", r#"{"method":"a.B"}"#, true),
            ("null parameters", r#"{"method":"a.B","parameters":null}"#, true),
            ("unknown keys are of a later version", r#"{"method":"a.B","later":1}"#, true),
            ("no method", r#"{"parameters":{}}"#, false),
            ("list of parameters", r#"{"method":"a.B","parameters":[]}"#, false),
            ("method twice", r#"{"method":"a.B","method":"a.C"}"#, false),
            ("more and oneway", r#"{"method":"a.B","more":true,"oneway":true}"#, false),
            ("flag of another type", r#"{"method":"a.B","more":1}"#, false),
            ("empty frame", "", false),
            ("a list of the fields", r#"["a.B"]"#, false),
            ("two texts", "{\"method\":\"a.B\"}{}", false),
            ("no UTF-8", "{\"method\":\"\u{fffd}\"", false),
        ] {
            assert_eq!(Call::parse(text.as_bytes()).is_ok(), good, "{case}");
        }
    }

    #[test]
    fn a_bomb_of_brackets_is_an_error_and_not_a_stack_overflow() {
        let bomb = format!(r#"{{"method":"a.B","parameters":{{"x":{}"#, "[".repeat(500_000));
        assert!(Call::parse(bomb.as_bytes()).is_err());
    }

    #[test]
    fn printing_a_message_and_reading_it_back_gives_the_same() {
        let call = Call {
            method: "io.agentd.Unit.Get".into(),
            parameters: to_object(&serde_json::json!({"unit": "a\"\u{0}\n.service"})).unwrap(),
            oneway: false,
            more: true,
            upgrade: false,
        };
        let frame = call.to_frame().unwrap();
        assert_eq!(frame.iter().filter(|byte| **byte == 0).count(), 1, "the NUL in the text is escaped");
        assert_eq!(Call::parse(&frame[..frame.len() - 1]).unwrap(), call);
        assert_eq!(call.interface(), "io.agentd.Unit");

        let reply = Reply::continued(&serde_json::json!({"job": 7})).unwrap();
        let frame = reply.to_frame().unwrap();
        assert_eq!(Reply::parse(&frame[..frame.len() - 1]).unwrap(), reply);
    }
}
