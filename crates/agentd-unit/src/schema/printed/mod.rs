//! The values of keys with a reader of their own, as systemctl(1) prints them: what counts, in the words and numbers of
//! org.freedesktop.systemd1(5).

mod execution;
mod life;
mod limits;
mod sockets;
mod walls;

use std::path::Path;
use std::time::Duration;

use super::Section;
use crate::draft::Draft;
use crate::exec::ExecCommand;
use crate::sections::{MemoryLimit, TasksLimit};
use crate::values::limit::percent;
use crate::values::span;

/// What systemctl prints of a number that nobody set.
pub(super) const NOT_SET: &str = "[not set]";

/// The value of a key; `None`: the key has no reader of its own.
pub(super) fn value(section: Section, key: &str, draft: &Draft) -> Option<String> {
    match section {
        Section::Unit => unit(key, draft),
        Section::Service => execution::process(key, draft)
            .or_else(|| execution::streams(key, draft))
            .or_else(|| limits::resources(key, &draft.service.resources))
            .or_else(|| limits::limit(key, draft))
            .or_else(|| life::service(key, draft))
            .or_else(|| walls::value(key, draft)),
        Section::Socket => sockets::value(key, &draft.socket),
        Section::Path => (key == "DirectoryMode").then(|| octal(draft.path.directory_mode)),
        Section::Slice => limits::resources(key, &draft.slice.resources),
        Section::Agent | Section::Snapshot => life::agent(key, draft),
        Section::Timer | Section::Rollout | Section::Install => None,
    }
}

fn unit(key: &str, draft: &Draft) -> Option<String> {
    let system = &draft.unit.system;
    let status = match key {
        // Without it the whole bound is the bound.
        "JobRunningTimeoutSec" => {
            return Some(timeout(system.job_running_timeout.or(draft.unit.job_timeout)));
        }
        "SuccessActionExitStatus" => system.success_exit_status,
        "FailureActionExitStatus" => system.failure_exit_status,
        _ => return None,
    };
    Some(number_or(status, NOT_SET))
}

/// A switch.
pub(crate) fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// A span; none has no end.
pub(super) fn timeout(bound: Option<Duration>) -> String {
    bound.map_or_else(|| "infinity".to_owned(), span::display)
}

/// Bytes, or a share of the machine; `unset` where nothing was said.
pub(super) fn memory_or(limit: Option<&MemoryLimit>, unset: &str) -> String {
    match limit {
        Some(MemoryLimit::Bytes(bytes)) => bytes.to_string(),
        Some(MemoryLimit::Permyriad(share)) => percent(u64::from(*share)),
        Some(MemoryLimit::Infinity) => "infinity".to_owned(),
        None => unset.to_owned(),
    }
}

/// A number of tasks, or a share of what the machine may have.
pub(crate) fn tasks(limit: Option<&TasksLimit>) -> String {
    match limit {
        Some(TasksLimit::Count(count)) => count.to_string(),
        Some(TasksLimit::Permyriad(share)) => percent(u64::from(*share)),
        Some(TasksLimit::Infinity) | None => "infinity".to_owned(),
    }
}

/// Command lines; the program, its arguments, and what its prefixes say.
pub(super) fn commands(commands: &[ExecCommand]) -> String {
    words(commands, |command| {
        let argv = words(&command.argv, |word| quoted(word));
        let ignored = yes_no(command.ignore_failure);
        let flags = [
            (command.full_privileges, "privileged"),
            (command.no_setuid, "no-setuid"),
            (!command.expand_environment, "no-env-expand"),
        ];
        let flags: Vec<&str> = flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).collect();
        let flags = if flags.is_empty() { String::new() } else { format!(" ; flags={}", flags.join(" ")) };
        format!("{{ path={} ; argv[]={argv} ; ignore_errors={ignored}{flags} }}", command.program)
    })
}

/// A word in which a space can be told from one between words, in systemd's quoting: it can be pasted into a file.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%${}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = "\"".to_owned();
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The mode of a file.
pub(crate) fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

fn number_or(number: Option<impl ToString>, unset: &str) -> String {
    number.map_or_else(|| unset.to_owned(), |number| number.to_string())
}

/// A path as it is read.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Items with a space between them.
fn words<T>(items: &[T], one: impl Fn(&T) -> String) -> String {
    items.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Sorted numbers as `0-3 7`.
fn ranges(numbers: &[u32]) -> String {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => found.push((*number, *number)),
        }
    }
    words(&found, |(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        for (numbers, text) in
            [(&[][..], ""), (&[3], "3"), (&[0, 1, 2, 5, 7, 8], "0-2 5 7-8"), (&[u32::MAX], "4294967295")]
        {
            assert_eq!(ranges(numbers), text);
        }
    }
}
