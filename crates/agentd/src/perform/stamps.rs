//! Keeping when timers fired.

use std::sync::{Arc, mpsc};

use agentd_state::StateDir;
use agentd_unit::{Realtime, UnitName};

/// The thread that writes when timers fired, so that the main loop waits for no disk.
#[derive(Debug)]
pub struct Stamps {
    way: Option<mpsc::Sender<(UnitName, Realtime)>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Stamps {
    /// Starts it. It ends when this is dropped.
    #[must_use]
    pub fn start(state: Arc<StateDir>) -> Self {
        let (way, receiver) = mpsc::channel::<(UnitName, Realtime)>();
        let write = move || {
            for (timer, at) in receiver {
                if let Err(error) = state.save_stamp(&timer, at) {
                    tracing::error!(unit = %timer, %error, "the last time of the timer cannot be kept");
                }
            }
        };
        let thread = std::thread::Builder::new().name("stamps".into()).spawn(write);
        if let Err(error) = &thread {
            tracing::error!(%error, "the writer of timers' last times cannot be started");
        }
        Self { way: Some(way), thread: thread.ok() }
    }

    /// Has a stamp written; false if the thread has ended.
    pub fn save(&self, timer: &UnitName, at: Realtime) -> bool {
        self.way.as_ref().is_some_and(|way| way.send((timer.clone(), at)).is_ok())
    }

    /// Waits until all is written. What is said afterwards is lost.
    pub fn finish(&mut self) {
        self.way = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writer of timers' last times has ended before its work was done");
        }
    }
}
