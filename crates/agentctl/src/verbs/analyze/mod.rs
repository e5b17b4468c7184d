//! `analyze`: what can be said of unit files and expressions without a manager.

mod condition;
mod dot;
mod findings;
mod programs;
mod security;
mod times;
mod verify;

use std::io::Write;

use crate::args::analyze::{Analyze, AnalyzeVerb};
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::offline;
use crate::print::{json, one_line};

pub(crate) use dot::Picture;
pub(crate) use findings::Finding;
pub(crate) use verify::of_texts;

/// `agentctl analyze VERB …`.
pub(crate) fn analyze(context: &Context, analyze: &Analyze, out: &mut impl Write) -> Outcome {
    match &analyze.verb {
        AnalyzeVerb::Verify(verify) => verify::verify(context, verify, out),
        AnalyzeVerb::UnitPaths => unit_paths(context, out),
        AnalyzeVerb::Calendar(calendar) => times::calendar(context, calendar, out),
        AnalyzeVerb::Timespan(timespan) => times::timespan(context, timespan, out),
        AnalyzeVerb::Security(arguments) => security::security(context, arguments, out),
        AnalyzeVerb::Condition(arguments) => condition::condition(context, arguments, out),
        AnalyzeVerb::Dot(arguments) => dot::dot(context, arguments, out),
    }
}

/// `agentctl analyze unit-paths`.
fn unit_paths(context: &Context, out: &mut impl Write) -> Outcome {
    let search = offline::search_path(context)?;
    let paths: Vec<String> = search.tiers.iter().map(|tier| tier.path.display().to_string()).collect();
    if context.is_json() {
        json(&paths, out)?;
    } else {
        for path in &paths {
            writeln!(out, "{}", one_line(path))?;
        }
    }
    Ok(Exit::Done)
}
