//! The command line of agentd: systemctl's verbs, words and exit codes.
//!
//! Each verb is a function that takes what it needs, writes to the `out` it is given and hands back an exit code or
//! an error; this page parses, chooses and reports.
#![forbid(unsafe_code)]

mod args;
mod client;
mod context;
mod exit;
mod offline;
mod place;
mod print;
mod report;
mod verbs;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Format, KeyVerb, Verb};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::report::with_causes;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let cli = args::quick::parse(&words).unwrap_or_else(|| Cli::parse_from(words));
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = run(&cli, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Done.into(),
        Err(failure) => {
            eprintln!("agentctl: {}", with_causes(&failure));
            failure.exit().into()
        }
    }
}

fn run(cli: &Cli, out: &mut impl Write) -> Outcome {
    let context = &Context::new(&cli.global)?;
    if context.format == Format::Dot && !matches!(cli.verb, Verb::ListDependencies(_)) {
        return Err(Failure::Usage(
            "only list-dependencies prints -o dot; 'analyze dot' draws all units".into(),
        ));
    }
    match &cli.verb {
        Verb::Start(jobs) => verbs::jobs::start(context, jobs, out),
        Verb::Stop(jobs) => verbs::jobs::stop(context, jobs, out),
        Verb::Restart(jobs) => verbs::jobs::restart(context, jobs, out),
        Verb::TryRestart(jobs) => verbs::jobs::try_restart(context, jobs, out),
        Verb::Reload(jobs) => verbs::jobs::reload(context, jobs, out),
        Verb::ReloadOrRestart(jobs) => verbs::jobs::reload_or_restart(context, jobs, out),
        Verb::Isolate(one) => verbs::jobs::isolate(context, one.unit.as_str(), out),
        Verb::Default => verbs::jobs::isolate(context, "default.target", out),
        Verb::Rescue => verbs::jobs::isolate(context, "rescue.target", out),
        Verb::Emergency => verbs::jobs::isolate(context, "emergency.target", out),
        Verb::Kill(kill) => verbs::act::kill(context, kill),
        Verb::Freeze(units) => verbs::act::freeze(context, &units.units),
        Verb::Thaw(units) => verbs::act::thaw(context, &units.units),
        Verb::Cancel(cancel) => verbs::act::cancel(context, cancel),
        Verb::IsSystemRunning => verbs::overview::is_system_running(context, out),
        Verb::ResetFailed(units) => verbs::act::reset_failed(context, &units.units),
        Verb::DaemonReload => verbs::act::daemon_reload(context, out),
        Verb::DaemonReexec => verbs::act::daemon_reexec(context),
        Verb::Poweroff | Verb::Reboot | Verb::Halt | Verb::Exit(_) => {
            verbs::act::shutdown(context, &cli.verb)
        }
        Verb::Status(status) if status.units.is_empty() => verbs::overview::overview(context, out),
        Verb::Status(status) => verbs::status::status(context, status, out),
        Verb::List(list) => verbs::list::units(context, list, out),
        Verb::ListTimers => verbs::list::timers(context, out),
        Verb::ListSockets => verbs::triggers::sockets(context, out),
        Verb::ListPaths => verbs::triggers::paths(context, out),
        Verb::ListJobs => verbs::list::jobs(context, out),
        Verb::ListUnitFiles(list) => verbs::unit_files::list(context, list, out),
        Verb::Enable(mark) => verbs::unit_files::enable(context, mark, out),
        Verb::Disable(mark) => verbs::unit_files::disable(context, mark, out),
        Verb::Mask(mark) => verbs::unit_files::mask(context, mark, out),
        Verb::Unmask(unmask) => verbs::unit_files::unmask(context, unmask, out),
        Verb::IsEnabled(units) => verbs::unit_files::is_enabled(context, &units.units, out),
        Verb::SetProperty(set) => verbs::unit_files::set_property(context, set, out),
        Verb::Top(top) => verbs::top::top(context, top, out),
        Verb::Show(show) => verbs::show::show(context, show, out),
        Verb::ListDependencies(list) => verbs::dependencies::list(context, list, out),
        Verb::Analyze(analyze) => verbs::analyze::analyze(context, analyze, out),
        Verb::Schema(schema) => verbs::schema::schema(schema.unit_type, out),
        Verb::Diff(units) => verbs::diff::diff(context, &units.units, out),
        Verb::Edit(edit) => verbs::edit::edit(context, edit, out),
        Verb::Revert(units) => verbs::revert::revert(context, &units.units, out),
        Verb::Apply(apply) => verbs::apply::apply(context, apply, out),
        Verb::New(new) => verbs::new::new(context, new, out),
        Verb::Import(import) => verbs::import::import(context, import, out),
        Verb::Cat(units) => verbs::cat::cat(context, &units.units, out),
        Verb::Logs(logs) => verbs::logs::logs(context, logs, out),
        Verb::IsActive(units) => verbs::query::is_active(context, &units.units, out),
        Verb::IsFailed(units) => verbs::query::is_failed(context, &units.units, out),
        Verb::Version => verbs::overview::version(context, out),
        Verb::Key(key) => match &key.verb {
            KeyVerb::Generate(generate) => verbs::key::generate(context, generate, out),
            KeyVerb::List(folders) => verbs::key::list(context, folders, out),
        },
        Verb::Sign(sign) => verbs::sign::sign(context, sign, out),
        Verb::Verify(verify) => verbs::verify::verify(context, verify, out),
    }
}
