//! `docs/man/agentctl.1`: the manual page, made from what the command line takes.

#![allow(clippy::unwrap_used, reason = "a page that cannot be written ends the test")]

use std::path::Path;

use agentd_unit::roff::Page;
use clap::{Arg, Command, CommandFactory};

use super::Cli;

#[test]
fn the_manual_is_what_the_command_line_takes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/agentctl.1");
    let page = manual();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/man/agentctl.1 is stale; run: UPDATE=1 cargo test -p agentctl manual");
}

#[test]
fn the_manual_has_every_verb_and_every_option() {
    let page = manual();
    for entry in [
        "\\fBstart\\fR",
        "\\fBanalyze\\~condition\\fR",
        "\\fBkey\\~generate\\fR",
        "\\fB\\-\\-kill\\-whom\\fR",
    ] {
        assert!(page.contains(entry), "{entry}");
    }
}

fn manual() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = Page::new("agentctl", 1, "control agentd, the init system for AI agents");
    page.heading("SYNOPSIS");
    page.paragraph("`agentctl` [FLAG...] VERB [ARGUMENT...]");
    page.heading("DESCRIPTION");
    page.paragraph(
        "`agentctl` asks agentd to start, stop and show units, and looks at unit files. Verbs, words and exit codes are \
         those of systemctl(1). Anyone may look; root, the manager's own user and the group `agentd` may act. A unit \
         that is named without a type is a service.",
    );
    page.heading("OPTIONS");
    let flags = command.get_arguments().filter(|argument| !argument.is_positional());
    flags.for_each(|argument| page.item(&tag(argument), &help(argument)));
    page.heading("VERBS");
    command.get_subcommands().for_each(|verb| entry(&mut page, "", verb));
    page.heading("EXIT STATUS");
    page.paragraph(
        "0 is success. 1 is a failure, 2 a wrong command line, 3 a unit that is not active, 4 no such unit or no \
         permission, 5 a unit that is not installed, 6 one whose files could not be loaded, 7 a manager that cannot be \
         reached, and 124 that it took too long.",
    );
    page.heading("SEE ALSO");
    page.paragraph(
        "agentd(8), agentd.unit(5), agentd.agent(5), agentd.toml(5), systemctl(1), systemd-analyze(1)",
    );
    page.finish()
}

fn entry(page: &mut Page, before: &str, verb: &Command) {
    let name = format!("{before}{}", verb.get_name());
    let mut inner = verb.get_subcommands().peekable();
    if inner.peek().is_some() {
        return inner.for_each(|verb| entry(page, &format!("{name} "), verb));
    }
    let positional: Vec<String> = verb.get_positionals().map(value).collect();
    let mut text = format!("{}.", verb.get_about().map(ToString::to_string).unwrap_or_default());
    let own = |argument: &&Arg| !argument.is_global_set() && argument.get_id() != "help";
    for argument in verb.get_arguments().filter(own) {
        let what = if argument.is_positional() { value(argument) } else { tag(argument) };
        text.push_str(&format!(" {what}: {}", help(argument)));
    }
    page.item(&format!("`{name}` {}", positional.join(" ")), &text);
}

fn tag(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("`-{short}`"));
    let long = argument.get_long().map(|long| format!("`--{long}`"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let takes = argument.get_action().takes_values();
    let value = if takes { format!(" {}", value(argument)) } else { String::new() };
    format!("{}{value}", names.join(", "))
}

fn value(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let name =
        names.first().map_or_else(|| argument.get_id().to_string().to_uppercase(), ToString::to_string);
    let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    if many { format!("{name}...") } else { name }
}

fn help(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let hidden = argument.is_hide_possible_values_set() || !argument.get_action().takes_values();
    let words: Vec<String> =
        argument.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect();
    if !words.is_empty() && !hidden {
        text.push_str(&format!(" ({})", words.join(", ")));
    }
    if let Some(default) =
        argument.get_default_values().first().filter(|_| argument.get_action().takes_values())
    {
        text.push_str(&format!("; default {}", default.to_string_lossy()));
    }
    text.push('.');
    text
}
