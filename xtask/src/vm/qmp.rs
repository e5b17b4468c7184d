//! QEMU's machine protocol: orders to the machine, events from it. One JSON object a line.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::feed::Feed;
use crate::error::{During, Error, Result};

/// QEMU answers from its own loop, which an emulated processor can hold up for a while.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that speaks QMP.
pub struct Qmp {
    stream: UnixStream,
    feed: Feed,
    next_id: u64,
}

impl Qmp {
    /// Greets QEMU on a new connection.
    ///
    /// # Errors
    /// It does not answer.
    pub fn new(stream: UnixStream) -> Result<Self> {
        let reader = stream.try_clone().during(|| "cannot copy the QMP socket".into())?;
        let mut qmp = Self { stream, feed: Feed::new("QMP socket", reader, false), next_id: 1 };
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Gives an order and returns its answer.
    ///
    /// # Errors
    /// QEMU refuses, or is gone.
    pub fn execute(&mut self, order: &str, arguments: Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let mut message = json!({ "execute": order, "id": id });
        if arguments.as_object().is_some_and(|map| !map.is_empty()) {
            message["arguments"] = arguments;
        }
        writeln!(self.stream, "{message}").during(|| format!("cannot send {order} to QEMU"))?;
        let answer = self.feed.wait(0, ANSWER_TIMEOUT, &format!("the answer to {order}"), |text| {
            messages(text).find(|message| message["id"] == id)
        })?;
        match answer.get("error") {
            None => Ok(answer["return"].clone()),
            Some(error) => Err(Error::new(format!("QEMU refuses {order}: {}", error["desc"]))),
        }
    }

    /// Waits for an event, which may have come already, and returns its data.
    ///
    /// # Errors
    /// It does not come in time.
    pub fn event(&self, name: &str, timeout: Duration) -> Result<Value> {
        self.feed.wait(0, timeout, &format!("event {name}"), |text| {
            messages(text).find(|message| message["event"] == name).map(|message| message["data"].clone())
        })
    }
}

fn messages(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}
