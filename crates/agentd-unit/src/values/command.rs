//! Command lines, systemd.service(5) "COMMAND LINES".

use std::borrow::Cow;

use super::{Refused, words};
use crate::exec::ExecCommand;

/// What resolves specifiers in one word. It is asked for words with a percent sign alone.
pub type Expand<'a> = &'a dyn Fn(&str) -> Result<String, Refused>;

/// Room for so many arguments is made at first; few commands have more.
const ARGUMENTS: usize = 32;

const HELP: &str = "write ExecStart = [\"/usr/bin/program\", \"argument\"]";

/// A string in systemd's quoting: one command, or several between words that are just `;`.
///
/// # Errors
/// Broken quoting or escapes, no command at all, a program that is neither absolute nor a bare name.
pub fn parse_line(
    text: &str,
    escapes: words::Escapes,
    expand: Expand<'_>,
) -> Result<Vec<ExecCommand>, Refused> {
    let mut words = words::split_with(text, escapes)?.into_iter();
    let separates = |word: &words::Word<'_>| word.plain && word.text == ";";
    // Nearly always there is one.
    let mut commands = Vec::with_capacity(1);
    while let Some(first) = words.next() {
        if !separates(&first) {
            let arguments = words.by_ref().take_while(|word| !separates(word));
            commands.push(command(first.text, arguments.map(|word| word.text), expand)?);
        }
    }
    if commands.is_empty() {
        return Err(Refused::with_help("there is no command", HELP));
    }
    Ok(commands)
}

/// A list of arguments, the program first, taken as they are: no quoting. The first may carry systemd's prefixes.
///
/// # Errors
/// No program, one that is neither absolute nor a bare name, a specifier that is not known.
pub fn parse_argv<S: AsRef<str>>(argv: &[S], expand: Expand<'_>) -> Result<ExecCommand, Refused> {
    let mut words = argv.iter().map(|word| Cow::Borrowed(word.as_ref()));
    let first = words.next().ok_or_else(|| Refused::with_help("the command is empty", HELP))?;
    command(first, words, expand)
}

/// A command of its first word and its arguments.
fn command<'w>(
    first: Cow<'w, str>,
    arguments: impl Iterator<Item = Cow<'w, str>>,
    expand: Expand<'_>,
) -> Result<ExecCommand, Refused> {
    let first = &*first;
    let mut command = ExecCommand {
        program: String::new(),
        argv: Vec::new(),
        ignore_failure: false,
        full_privileges: false,
        no_setuid: false,
        expand_environment: true,
    };
    let (program, separate_argv0) = prefixes(first, &mut command)?;
    command.program = program_path(&expanded(Cow::Borrowed(program), expand)?)?;
    let at_most = arguments.size_hint().1.unwrap_or_default();
    command.argv.reserve_exact(1 + at_most.min(ARGUMENTS));
    if !separate_argv0 {
        command.argv.push(command.program.clone());
    }
    for argument in arguments {
        command.argv.push(expanded(argument, expand)?);
    }
    if command.argv.is_empty() {
        let help = "with @ the second word is the name that the program sees";
        return Err(Refused::of(first, "has @ but no second word", help));
    }
    command.argv.shrink_to_fit();
    Ok(command)
}

/// A word with its specifiers resolved.
fn expanded(word: Cow<'_, str>, expand: Expand<'_>) -> Result<String, Refused> {
    if word.contains('%') { expand(&word) } else { Ok(word.into_owned()) }
}

/// Takes the prefixes off: the program as written, and whether `@` was among them.
fn prefixes<'t>(first: &'t str, command: &mut ExecCommand) -> Result<(&'t str, bool), Refused> {
    let mut rest = first;
    let mut separate_argv0 = false;
    loop {
        let already = match rest.chars().next() {
            Some('-') => std::mem::replace(&mut command.ignore_failure, true),
            Some('@') => std::mem::replace(&mut separate_argv0, true),
            Some(':') => !std::mem::replace(&mut command.expand_environment, false),
            Some('+') => std::mem::replace(&mut command.full_privileges, true),
            // `!!` is `!` for kernels without ambient capabilities, which agentd does not run on.
            Some('!') if rest.starts_with("!!") => {
                rest = &rest[1..];
                false
            }
            Some('!') => std::mem::replace(&mut command.no_setuid, true),
            _ => break,
        };
        if already {
            return Err(Refused::of(first, "has one prefix twice", "each of - @ : + ! may stand once"));
        }
        rest = &rest[1..];
    }
    if command.full_privileges && command.no_setuid {
        return Err(Refused::of(
            first,
            "has both + and !",
            "+ runs with full privileges, ! keeps the sandbox",
        ));
    }
    Ok((rest, separate_argv0))
}

fn program_path(program: &str) -> Result<String, Refused> {
    if program.is_empty() {
        return Err(Refused::with_help("the program is empty", HELP));
    }
    // Also what only says so once its dots are resolved, such as `/.`.
    if ["/", "/.", "/.."].iter().any(|end| program.ends_with(end)) {
        return Err(Refused::of(program, "names a folder", HELP));
    }
    if program.starts_with('/') {
        return super::path::absolute_text(program);
    }
    if program.contains('/') {
        let help = "write the whole path from /, or a bare name that is looked up along PATH";
        return Err(Refused::of(program, "is a relative path", help));
    }
    if matches!(program, "." | "..") {
        return Err(Refused::of(program, "is no program", HELP));
    }
    Ok(program.to_owned())
}
