//! `analyze security`: how much of the machine a service could reach if it turned against it, by its keys. The checks, their
//! weights and the scale are those of `systemd-analyze security`, so that numbers can be compared; what agentd does not
//! enforce counts as open, whatever the file says.

mod checks;
mod facts;
mod score;

use std::io::Write;
use std::path::Path;

use agentd_unit::{LoadState, OpenGate, Unit, UnitName, UnitType};
use serde::Serialize;

use crate::args::analyze::Security;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::offline;
use crate::print::table::{Cell, Table};
use crate::print::{json, one_line};
use crate::verbs::closure::{Definition, parse};

use score::{Assessment, word};

/// One service in the list of all.
#[derive(Debug, Serialize)]
struct Line {
    unit: String,
    exposure: String,
    predicate: &'static str,
}

/// One check of a service, with the names that systemd-analyze's JSON has.
#[derive(Debug, Serialize)]
struct Row<'a> {
    set: Option<bool>,
    name: &'a str,
    json_field: &'a str,
    description: &'a str,
    exposure: Option<String>,
}

/// `agentctl analyze security [UNIT|FILE]…`: 1 if a service is more exposed than `--threshold`.
pub(crate) fn security(context: &Context, arguments: &Security, out: &mut impl Write) -> Outcome {
    let units = units(context, &arguments.units)?;
    let assessed: Vec<(String, Assessment)> = units
        .iter()
        .filter_map(|unit| Some((unit.name.to_string(), Assessment::of(unit, &unit.as_service()?.service))))
        .collect();
    if arguments.units.is_empty() {
        list(context, &assessed, out)?;
    } else {
        for (index, (name, assessment)) in assessed.iter().enumerate() {
            if index > 0 && !context.is_json() {
                writeln!(out)?;
            }
            one(context, name, assessment, out)?;
        }
    }
    let most = assessed.iter().map(|(_, assessment)| assessment.overall).max().unwrap_or(0);
    Ok(if most > arguments.threshold { Exit::Failed } else { Exit::Done })
}

/// The services that were named, by name or by file; all of the search path if none was.
fn units(context: &Context, names: &[String]) -> Result<Vec<Unit>, Failure> {
    let loader = offline::loader(context)?;
    if names.is_empty() {
        let set = loader.load(&OpenGate).set;
        let services = set
            .iter()
            .filter(|unit| unit.name.unit_type() == UnitType::Service && unit.load == LoadState::Loaded);
        return Ok(services.map(|unit| Unit::clone(unit)).collect());
    }
    names.iter().map(|name| find(&loader, name)).collect()
}

fn find(loader: &agentd_unit::Loader, name: &str) -> Result<Unit, Failure> {
    let failed = |exit, message: String| Failure::Other { exit, message };
    // A program or folder that happens to be called like the unit is no unit file.
    let is_file = || Path::new(name).is_file() && UnitName::of_file(Path::new(name)).is_ok();
    if name.contains('/') || is_file() {
        let path = std::path::absolute(name)?;
        let read = Definition::read(&path, Path::new("/")).and_then(|definition| parse(&definition));
        let unit = read.map_err(|error| failed(Exit::Failed, error.to_string()))?;
        return match unit.as_service() {
            Some(_) => Ok(unit),
            None => Err(Failure::Usage(format!("{} is no service", one_line(name)))),
        };
    }
    let full = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let unit_name = UnitName::parse(&full).map_err(|error| Failure::Usage(error.to_string()))?;
    let unit = loader.load_unit(&unit_name, &OpenGate);
    match (&unit.load, unit.as_service()) {
        (LoadState::Loaded, Some(_)) => Ok(unit),
        (LoadState::Loaded, None) => Err(Failure::Usage(format!("{unit_name} is no service"))),
        (LoadState::NotFound, _) => Err(failed(
            Exit::NoSuchUnit,
            format!(
                "there is no unit {unit_name}; 'agentctl analyze unit-paths' lists where it is looked for"
            ),
        )),
        (other, _) => {
            let why = other.reason().unwrap_or("it is masked");
            Err(failed(Exit::Failed, format!("{unit_name} cannot be loaded: {why}")))
        }
    }
}

fn list(context: &Context, assessed: &[(String, Assessment)], out: &mut impl Write) -> std::io::Result<()> {
    let lines = assessed.iter().map(|(unit, assessment)| Line {
        unit: unit.clone(),
        exposure: tenths(assessment.overall),
        predicate: word(assessment.overall),
    });
    if context.is_json() {
        return json(&lines.collect::<Vec<_>>(), out);
    }
    let mut table = Table::new(["UNIT", "EXPOSURE", "PREDICATE"]);
    for (line, (_, assessment)) in lines.zip(assessed) {
        let bad = assessment.overall >= score::EXPOSED;
        table.row([
            one_line(&line.unit).into_owned().into(),
            Cell::bad(format!("{:>8}", line.exposure), bad),
            line.predicate.into(),
        ]);
    }
    table.write(context.style, out)
}

fn one(context: &Context, unit: &str, assessment: &Assessment, out: &mut impl Write) -> std::io::Result<()> {
    if context.is_json() {
        let rows = assessment.findings.iter().map(|finding| Row {
            set: finding.badness.map(|badness| badness == 0),
            name: finding.check.name,
            json_field: finding.check.id,
            description: finding.description(),
            exposure: finding.badness.filter(|badness| *badness > 0).map(|_| tenths(finding.exposure)),
        });
        return json(&rows.collect::<Vec<_>>(), out);
    }
    let mut table = Table::new(["", "NAME", "DESCRIPTION", "EXPOSURE"]);
    for finding in &assessment.findings {
        let (mark, bad) = match finding.badness {
            None => ("", false),
            Some(0) => ("✓", false),
            Some(_) => ("✗", true),
        };
        let exposure = if bad { tenths(finding.exposure) } else { String::new() };
        table.row([
            Cell::bad(mark, bad),
            finding.check.name.into(),
            finding.description().into(),
            exposure.into(),
        ]);
    }
    table.write(context.style, out)?;
    let overall = assessment.overall;
    writeln!(out, "\n→ Overall exposure level for {}: {} {}", one_line(unit), tenths(overall), word(overall))
}

/// 96 as 9.6.
fn tenths(number: u64) -> String {
    format!("{}.{}", number / 10, number % 10)
}
