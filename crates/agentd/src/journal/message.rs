//! One message of the manager, taken out of its tracing event so that another thread can send it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use agentd_engine::{InvocationId, Record};
use agentd_unit::{Realtime, UnitName};
use tracing::field::{Field, Visit};

use super::level::LogLevel;

/// The longest text that is kept, in bytes; what is longer is cut and says so.
const MAX_TEXT: usize = 1 << 20;

/// A message and what is known with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) level: LogLevel,
    pub(crate) realtime: Realtime,
    pub(crate) text: String,
    /// The unit that it is about.
    pub(crate) unit: Option<About>,
    /// The invocation of that unit.
    pub(crate) invocation: Option<InvocationId>,
    /// What kind of message it is, 32 hex digits: `journalctl --catalog` and machines go by it.
    pub(crate) message_id: Option<Cow<'static, str>>,
    /// The module that says it.
    pub(crate) target: &'static str,
    /// Where in the source.
    pub(crate) code: Option<(&'static str, u32)>,
    /// Every other field, in its order.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// The name of a unit: the engine's own, which costs nothing to keep, or what an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum About {
    Unit(UnitName),
    Said(Box<str>),
}

impl About {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Unit(name) => name.as_str(),
            Self::Said(name) => name,
        }
    }
}

impl Message {
    /// A message of this module's own.
    pub(crate) fn own(level: LogLevel, text: String) -> Self {
        Self {
            level,
            realtime: crate::log::now(),
            text,
            unit: None,
            invocation: None,
            message_id: None,
            target: module_path!(),
            code: Some((file!(), line!())),
            fields: Vec::new(),
        }
    }

    /// What the engine says.
    pub(crate) fn of_engine(record: Record) -> Self {
        Self {
            unit: record.unit.map(About::Unit),
            invocation: record.run,
            message_id: record.message_id.map(Cow::Borrowed),
            ..Self::own(LogLevel::from(record.level), record.text)
        }
    }

    /// All that an event says.
    pub(crate) fn of(event: &tracing::Event<'_>) -> Self {
        let meta = event.metadata();
        let mut message = Self {
            level: LogLevel::of(meta.level()),
            target: meta.target(),
            code: meta.file().zip(meta.line()),
            ..Self::own(LogLevel::Info, String::new())
        };
        event.record(&mut message);
        if message.text.len() > MAX_TEXT {
            let cut = (0..=MAX_TEXT).rev().find(|at| message.text.is_char_boundary(*at)).unwrap_or(0);
            let missing = message.text.len() - cut;
            message.text.truncate(cut);
            // Writing to a String cannot fail.
            let _infallible = write!(message.text, "… ({missing} more bytes are cut off)");
        }
        message
    }

    /// The text as a person reads it: with the unit where it does not name it, and with what else is known.
    pub(crate) fn line(&self) -> String {
        let mut line = match &self.unit {
            Some(unit) if !self.text.contains(unit.as_str()) => format!("{}: {}", unit.as_str(), self.text),
            _ => self.text.clone(),
        };
        for (name, value) in &self.fields {
            // An error is the rest of the sentence; anything else is named.
            let separator = if *name == "error" { ": ".to_owned() } else { format!(", {name}=") };
            line.push_str(&separator);
            line.push_str(value);
        }
        line
    }

    /// Roughly what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let fields: usize = self.fields.iter().map(|(_, value)| value.len() + 40).sum();
        size_of::<Self>() + self.text.len() + fields + 128
    }

    fn set(&mut self, name: &'static str, value: String) {
        match name {
            "message" => self.text = value,
            "unit" => self.unit = Some(About::Said(value.into())),
            "invocation_id" => match value.parse() {
                Ok(run) => self.invocation = Some(run),
                Err(_) => self.fields.push((name, value)),
            },
            "message_id" => self.message_id = Some(value.into()),
            _ => self.fields.push((name, value)),
        }
    }
}

impl Visit for Message {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "priority" => self.level = LogLevel::from_number(value),
            name => self.set(name, value.to_string()),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Display values (`%x`) come this way too, with their Display text.
        self.set(field.name(), format!("{value:?}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            // Writing to a String cannot fail.
            let _infallible = write!(text, ": {error}");
            cause = error.source();
        }
        self.set(field.name(), text);
    }
}
