//! Policy enforce: what was changed after it was signed does not run, and everything else does.

use std::fs;

use super::context::Context;
use super::guest::{active, code, console_lines, ok};
use super::{Scenario, expect, expect_eq};
use crate::error::{During, Error, Result};
use crate::image::product::ADMIN_UNITS;
use crate::image::tree::Tree;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "vm::what-is-signed-runs", run: signed },
    Scenario { name: "vm::one-changed-byte-stops-that-unit-and-only-it", run: changed },
];

/// The units, the file of each in which a byte is changed, and what a start then ends with.
const TRUSTED: [(&str, &str, u8); 3] = [
    ("trusted-unit.service", "etc/agentd/units/trusted-unit.service.toml", NOT_LOADED),
    ("trusted-go.service", "usr/lib/agentd-test/library", JOB_FAILED),
    ("trusted-python.service", "usr/lib/agentd-test/trusted.py", JOB_FAILED),
];

/// `agentctl start` of a unit whose file is not accepted.
const NOT_LOADED: u8 = 6;

/// `agentctl start` of a unit that may not be executed.
const JOB_FAILED: u8 = 1;

fn signed(context: &mut Context) -> Result<()> {
    let machine = context.shared()?;
    for (unit, _, _) in TRUSTED {
        active(machine, &[unit])?;
    }
    ok(machine, "agentctl verify /etc/agentd/units/trusted-*.service.toml").map(|_| ())
}

fn changed(context: &mut Context) -> Result<()> {
    let spec =
        context.product_disk(|tree| TRUSTED.iter().try_for_each(|(_, file, _)| change_a_byte(tree, file)))?;
    let machine = context.boot(&spec)?;
    for (unit, file, refused) in TRUSTED {
        expect_eq(unit, &code(machine, &format!("agentctl is-active {unit}"))?, &3)?;
        // By no other way either.
        expect_eq("start", &code(machine, &format!("agentctl start {unit}"))?, &refused)?;
        let told = console_lines(machine, unit);
        let name = file.rsplit('/').next().unwrap_or(file);
        expect(told.iter().any(|line| line.contains(name)), || {
            format!("no line on the console names {unit} and {name}: {told:?}")
        })?;
        expect(code(machine, &format!("agentctl verify /{ADMIN_UNITS}/{unit}.toml"))? != 0, || {
            format!("agentctl verify accepts {unit}")
        })?;
    }
    expect_eq("nothing of them ran", &console_lines(machine, "TRUSTED"), &vec![])?;
    expect_eq("port of the Go agent", &code(machine, "curl -s http://127.0.0.1:8181/healthz")?, &7)?;
    active(machine, &["library.service", "summarizer.service", "order-third.service", "default.target"])
}

/// Changes one byte, to one that leaves a text a text and a program a program: the signature alone shall find it.
fn change_a_byte(tree: &Tree, name: &str) -> Result<()> {
    let path = tree.path().join(name);
    let cannot = || format!("cannot change {}", path.display());
    let mut bytes = fs::read(&path).during(cannot)?;
    let last = match bytes.iter().rposition(|byte| *byte == b'T') {
        // A word in a text or a string.
        Some(at) => &mut bytes[at],
        None => return Err(Error::new(format!("{name} has no byte that can be changed unseen"))),
    };
    *last = b'X';
    fs::write(&path, bytes).during(cannot)
}
