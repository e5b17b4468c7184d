//! Timers on a real clock.

use super::context::Context;
use super::guest::{ok, show};
use super::{Scenario, expect, expect_eq};
use crate::error::Result;
use crate::vm::COMMAND_TIMEOUT;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[Scenario { name: "vm::a-timer-in-a-service-file-ticks", run: ticks }];

fn ticks(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    let mark = machine.console().mark();
    ok(machine, "agentctl start ticker.timer")?;
    machine.console().wait(mark, COMMAND_TIMEOUT, "three ticks", |text| {
        (text.matches("TICK").count() >= 3).then_some(())
    })?;
    let listed = ok(machine, "agentctl list-timers")?;
    expect(listed.contains("ticker.timer"), || format!("list-timers does not tell of it:\n{listed}"))?;
    ok(machine, "agentctl stop ticker.timer")?;
    let properties = show(machine, "ticker.timer")?;
    expect_eq("ActiveState", &properties["ActiveState"].as_str(), &Some("inactive"))
}
