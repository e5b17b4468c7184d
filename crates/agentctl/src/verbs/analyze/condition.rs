//! `analyze condition`: whether conditions and asserts hold, by what agentctl itself sees of the machine.

use std::io::Write;
use std::sync::Arc;

use agentd_unit::conditions::{self, Machine};
use agentd_unit::sections::Condition;
use agentd_unit::{LoadState, OpenGate, ParseContext, SourceFile, UnitName, parse_unit};
use serde::Serialize;

use super::Finding;
use crate::args::analyze::AnalyzeCondition;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::offline;
use crate::print::{json, one_line};

/// What is printed with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    conditions: Vec<Single>,
    /// Whether a start would go on.
    condition_result: bool,
    /// Whether a start would not fail.
    assert_result: bool,
}

/// One condition by itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Single {
    condition: String,
    holds: bool,
}

/// `agentctl analyze condition CONDITION…|--unit UNIT`: 0 only if the start would go on.
pub(crate) fn condition(context: &Context, arguments: &AnalyzeCondition, out: &mut impl Write) -> Outcome {
    let conditions = match &arguments.unit {
        Some(unit) => of_unit(context, unit)?,
        None => of_lines(&arguments.conditions, context.style.is_coloured())?,
    };
    let machine = Machine::default();
    let single =
        |one: &Condition| Single { condition: one.to_string(), holds: conditions::holds(one, &machine) };
    let verdicts = conditions::check(&conditions, &machine);
    let report = Report {
        conditions: conditions.iter().map(single).collect(),
        condition_result: verdicts.condition.is_ok(),
        assert_result: verdicts.assertion.is_ok(),
    };
    if context.is_json() {
        json(&report, out)?;
    } else {
        let word = |holds: bool| if holds { "succeeded" } else { "failed" };
        for one in &report.conditions {
            writeln!(out, "{} {}.", one_line(&one.condition), word(one.holds))?;
        }
        writeln!(out, "Asserts {}.", word(report.assert_result))?;
        writeln!(out, "Conditions {}.", word(report.condition_result))?;
    }
    Ok(if report.condition_result && report.assert_result { Exit::Done } else { Exit::Failed })
}

/// Those of a unit of the search path.
fn of_unit(context: &Context, name: &UnitName) -> Result<Vec<Condition>, Failure> {
    let unit = offline::loader(context)?.load_unit(name, &OpenGate);
    match &unit.load {
        LoadState::Loaded | LoadState::Masked => Ok(unit.unit.conditions),
        LoadState::NotFound => Err(Failure::Other {
            exit: Exit::NoSuchUnit,
            message: format!("Unit {name} could not be found."),
        }),
        LoadState::Error(why) | LoadState::BadSetting(why) => {
            Err(Failure::Other { exit: Exit::NotLoaded, message: format!("{name}: {why}") })
        }
    }
}

/// Those of lines as they would stand in systemd's syntax below [Unit].
fn of_lines(lines: &[String], colour: bool) -> Result<Vec<Condition>, Failure> {
    for line in lines {
        let key = line.split('=').next().unwrap_or_default().trim();
        if !(key.starts_with("Condition") || key.starts_with("Assert")) || line.contains('\n') {
            return Err(Failure::Usage(format!(
                "'{}' is no condition; write for example 'ConditionPathExists=/etc/fstab'",
                line.escape_debug()
            )));
        }
    }
    let name = UnitName::parse("condition.target").map_err(|error| Failure::Usage(error.to_string()))?;
    let source = SourceFile::new("condition.target", format!("[Unit]\n{}\n", lines.join("\n")));
    let (specifiers, zone) = (offline::specifiers(), offline::zone());
    let parsed =
        parse_unit(&name, &[Arc::new(source)], &ParseContext { specifiers: &specifiers, zone: &zone });
    // A key that nobody knows is a warning in a file, and here all that was asked for.
    match parsed.diagnostics.first() {
        Some(found) => {
            // More than a line, with the place in what was typed.
            eprintln!("{}", Finding::of_text(&name, found, colour).text());
            Err(Failure::Usage(format!("'{}' cannot be checked", lines.join(" ").escape_debug())))
        }
        None => Ok(parsed.unit.unit.conditions),
    }
}
