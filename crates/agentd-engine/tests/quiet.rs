//! How much the engine says.

#![forbid(unsafe_code)]

mod desk;

use agentd_engine::{Config, Effect, Level};
use desk::*;

#[test]
fn what_is_quieter_than_was_asked_for_is_not_said() {
    for (quietest, has_debug) in [(Level::Debug, true), (Level::Info, false)] {
        let config = Config { quietest, ..Config::default() };
        let mut desk = Desk::with(config, [service("a.service", |_| {})]);
        desk.run("a.service");
        let says =
            |level| desk.effects.iter().any(|e| matches!(e, Effect::Log(record) if record.level == level));
        assert_eq!((says(Level::Info), says(Level::Debug)), (true, has_debug), "{quietest:?}");
    }
}
