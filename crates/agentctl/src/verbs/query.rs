//! `is-active` and `is-failed`: a word for each unit, and an exit code that scripts branch on.

use std::io::Write;

use agentd_protocol::{ActiveState, LoadState, UnitProperties};
use agentd_unit::UnitName;
use serde::Serialize;

use crate::context::{Context, properties_if_any};
use crate::exit::{Exit, Outcome};
use crate::print::json;

/// What is printed for each unit with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    id: String,
    load_state: LoadState,
    active_state: ActiveState,
}

/// `agentctl is-active UNIT…`: 0 if one of them is active, else 3, or 4 if none of them is known.
pub(crate) fn is_active(context: &Context, units: &[UnitName], out: &mut impl Write) -> Outcome {
    let known = ask(context, units, out)?;
    Ok(active_exit(&known))
}

/// `agentctl is-failed UNIT…`: 0 if one of them has failed, else 1.
pub(crate) fn is_failed(context: &Context, units: &[UnitName], out: &mut impl Write) -> Outcome {
    let known = ask(context, units, out)?;
    let failed = known.iter().any(|unit| unit.active_state == ActiveState::Failed);
    Ok(if failed { Exit::Done } else { Exit::Failed })
}

fn active_exit(known: &[UnitProperties]) -> Exit {
    let active =
        |unit: &UnitProperties| matches!(unit.active_state, ActiveState::Active | ActiveState::Reloading);
    if known.iter().any(active) {
        Exit::Done
    } else if known.iter().all(is_unknown) {
        Exit::NoSuchUnit
    } else {
        Exit::NotActive
    }
}

/// Nothing defines the unit, and it does not run either (it might, if its file was removed meanwhile).
pub(crate) fn is_unknown(unit: &UnitProperties) -> bool {
    unit.load_state == LoadState::NotFound && unit.active_state == ActiveState::Inactive
}

fn ask(
    context: &Context,
    units: &[UnitName],
    out: &mut impl Write,
) -> Result<Vec<UnitProperties>, crate::exit::Failure> {
    let mut client = context.connect()?;
    let mut known = Vec::new();
    for unit in units {
        known.push(properties_if_any(&mut client, unit)?);
    }
    if context.is_json() {
        let answer = |unit: &UnitProperties| Answer {
            id: unit.id.clone(),
            load_state: unit.load_state,
            active_state: unit.active_state,
        };
        json(&known.iter().map(answer).collect::<Vec<_>>(), out)?;
    } else if !context.quiet {
        for unit in &known {
            writeln!(out, "{}", unit.active_state)?;
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_active_unit_is_enough() {
        let unit = |load_state, active_state| UnitProperties {
            load_state,
            active_state,
            ..UnitProperties::default()
        };
        let (active, reloading) = (ActiveState::Active, ActiveState::Reloading);
        let (inactive, starting) = (ActiveState::Inactive, ActiveState::Activating);
        for (case, units, exit) in [
            ("active", vec![unit(LoadState::Loaded, active)], 0),
            ("reloading", vec![unit(LoadState::Loaded, reloading)], 0),
            ("activating", vec![unit(LoadState::Loaded, starting)], 3),
            ("inactive", vec![unit(LoadState::Loaded, inactive)], 3),
            ("unknown", vec![unit(LoadState::NotFound, inactive)], 4),
            ("removed but running", vec![unit(LoadState::NotFound, active)], 0),
            ("one of two", vec![unit(LoadState::Loaded, inactive), unit(LoadState::Loaded, active)], 0),
            ("one unknown", vec![unit(LoadState::Loaded, inactive), unit(LoadState::NotFound, inactive)], 3),
        ] {
            assert_eq!(active_exit(&units) as u8, exit, "{case}");
        }
    }
}
