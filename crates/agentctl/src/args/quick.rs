//! The short way to the verbs that people and scripts call most: of the command line only that verb is built. To build
//! all fifty takes longer than to ask the manager.
//!
//! What the short way does not take, right or wrong, is for the whole command line, which alone knows help and errors.

use std::ffi::OsString;

use clap::{Args, Command, FromArgMatches as _};

use super::{Cli, Global, Jobs, Kill, List, Logs, Show, Starts, Status, Units, Verb};

/// The command line, if its verb is one of these and nothing is wrong with it.
pub(crate) fn parse(words: &[OsString]) -> Option<Cli> {
    let read = words.iter().skip(1).find_map(|word| reader(word.to_str()?))?;
    read(words)
}

/// Reads a command line of one verb.
type Reader = fn(&[OsString]) -> Option<Cli>;

fn reader(verb: &str) -> Option<Reader> {
    Some(match verb {
        "start" => |words| of::<Starts>(words, "start", Verb::Start),
        "stop" => |words| of::<Jobs>(words, "stop", Verb::Stop),
        "restart" => |words| of::<Starts>(words, "restart", Verb::Restart),
        "kill" => |words| of::<Kill>(words, "kill", Verb::Kill),
        "status" => |words| of::<Status>(words, "status", Verb::Status),
        "show" => |words| of::<Show>(words, "show", Verb::Show),
        "list" => |words| of::<List>(words, "list", Verb::List),
        "logs" => |words| of::<Logs>(words, "logs", Verb::Logs),
        "is-active" => |words| of::<Units>(words, "is-active", Verb::IsActive),
        "is-failed" => |words| of::<Units>(words, "is-failed", Verb::IsFailed),
        _ => return None,
    })
}

/// A word before the verb that is the value of a flag is no verb here either: what is left then is an unknown one.
fn of<A: Args>(words: &[OsString], verb: &'static str, make: fn(A) -> Verb) -> Option<Cli> {
    let command = Global::augment_args(Command::new("agentctl")).disable_help_subcommand(true);
    let command = command.subcommand(A::augment_args(Command::new(verb)));
    let matches = command.try_get_matches_from(words).ok()?;
    let (_, of_verb) = matches.subcommand()?;
    let verb = make(A::from_arg_matches(of_verb).ok()?);
    Some(Cli { global: Global::from_arg_matches(&matches).ok()?, verb })
}
