//! `diff`: the definitions that units live by against their files as they are now.

use std::collections::BTreeMap;
use std::io::{self, Write};

use agentd_protocol::method;
use agentd_protocol::unit::GetFilesRequest;
use agentd_unit::UnitName;
use serde::Serialize;

use super::cat::joined;
use crate::client::{ANSWER, Client, ClientError};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::print::{Style, json, one_line, plain};
use crate::report::only_this_unit;

/// How many lines are shown around a change.
const AROUND: usize = 3;

/// The most cells of the table that finds common lines. Beyond it, a text is shown as wholly changed.
const CELLS: usize = 4_000_000;

/// One file that differs; `null`: there is none on that side.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Difference {
    unit: String,
    path: String,
    running: Option<String>,
    disk: Option<String>,
}

/// `agentctl diff UNIT…`: as diff(1), 0 if nothing differs, else 1.
pub(crate) fn diff(context: &Context, units: &[UnitName], out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let (mut exit, mut all) = (Exit::Done, Vec::new());
    for unit in units {
        let running = files(&mut client, unit, true)?;
        match (running, files(&mut client, unit, false)?) {
            (Ok(running), Ok(disk)) => all.extend(differences(unit, running, disk)),
            (Err(error), _) => {
                eprintln!("No files found for {unit}: {}", one_line(&error));
                exit = Exit::NoSuchUnit;
            }
            (_, Err(error)) => {
                eprintln!("The files of {unit} cannot be read: {}", one_line(&error));
                exit = exit.max(Exit::Failed);
            }
        }
    }
    if context.is_json() {
        json(&all, out)?;
    } else {
        all.iter().try_for_each(|one| write_difference(context.style, one, out))?;
    }
    Ok(if all.is_empty() { exit } else { exit.max(Exit::Failed) })
}

/// The texts of a unit's files by path, or why there are none.
fn files(
    client: &mut Client,
    unit: &UnitName,
    running: bool,
) -> Result<Result<BTreeMap<String, String>, String>, Failure> {
    let request = GetFilesRequest { unit: unit.to_string(), running };
    let mut pieces = Vec::new();
    let answer = client.stream::<method::GetFiles, ClientError>(&request, Some(ANSWER), |page| {
        pieces.extend(page.files);
        Ok(())
    });
    match answer.map_err(only_this_unit) {
        Ok(()) => Ok(Ok(joined(pieces).into_iter().map(|file| (file.path, file.content)).collect())),
        Err(error) => Ok(Err(error?.to_string())),
    }
}

fn differences(
    unit: &UnitName,
    mut running: BTreeMap<String, String>,
    disk: BTreeMap<String, String>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for (path, disk) in disk {
        let running = running.remove(&path);
        if running.as_ref() != Some(&disk) {
            found.push(Difference { unit: unit.to_string(), path, running, disk: Some(disk) });
        }
    }
    let gone = running.into_iter();
    found.extend(gone.map(|(path, running)| Difference {
        unit: unit.to_string(),
        path,
        running: Some(running),
        disk: None,
    }));
    found
}

/// The unified format of diff(1).
fn write_difference(style: Style, one: &Difference, out: &mut impl Write) -> io::Result<()> {
    let side = |content: &Option<String>, name: &str| match content {
        Some(_) => format!("{} ({name})", one_line(&one.path)),
        None => "/dev/null".to_owned(),
    };
    writeln!(out, "--- {}", side(&one.running, "running"))?;
    writeln!(out, "+++ {}", side(&one.disk, "on disk"))?;
    let old: Vec<&str> = one.running.as_deref().unwrap_or_default().lines().collect();
    let new: Vec<&str> = one.disk.as_deref().unwrap_or_default().lines().collect();
    for hunk in hunks(&lines(&old, &new)) {
        let (from, to) = (hunk.iter().filter(|l| l.mark != '+'), hunk.iter().filter(|l| l.mark != '-'));
        let (from_count, to_count) = (from.clone().count(), to.clone().count());
        let at = |line: Option<&&Line<'_>>, place: fn(&Line<'_>) -> usize| line.map_or(0, |line| place(line));
        let (from, to) =
            (at(from.clone().next().as_ref(), |l| l.old), at(to.clone().next().as_ref(), |l| l.new));
        writeln!(out, "@@ -{from},{from_count} +{to},{to_count} @@")?;
        for line in hunk {
            let text = format!("{}{}", line.mark, plain(line.text));
            match line.mark {
                '-' => writeln!(out, "{}", style.bad(text))?,
                '+' => writeln!(out, "{}", style.comment(text))?,
                _ => writeln!(out, "{text}")?,
            }
        }
    }
    Ok(())
}

/// One line of a comparison, with its number on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<'a> {
    mark: char,
    text: &'a str,
    old: usize,
    new: usize,
}

/// Every line of both texts in order: common ones, those that went, those that came.
fn lines<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let (rows, columns) = (old.len() + 1, new.len() + 1);
    // longest[row * columns + column]: how many lines the rests have in common.
    let mut longest = if rows * columns > CELLS { Vec::new() } else { vec![0_u32; rows * columns] };
    if !longest.is_empty() {
        for (row, a) in old.iter().enumerate().rev() {
            for (column, b) in new.iter().enumerate().rev() {
                let at = |row: usize, column: usize| longest[row * columns + column];
                let best = if a == b {
                    at(row + 1, column + 1) + 1
                } else {
                    at(row + 1, column).max(at(row, column + 1))
                };
                longest[row * columns + column] = best;
            }
        }
    }
    let best = |row: usize, column: usize| longest.get(row * columns + column).copied().unwrap_or(0);
    let (mut row, mut column, mut found) = (0, 0, Vec::new());
    while row < old.len() || column < new.len() {
        let (a, b) = (old.get(row), new.get(column));
        let mut push = |mark, text: &'a str| found.push(Line { mark, text, old: row + 1, new: column + 1 });
        match (a, b) {
            (Some(a), Some(b)) if a == b && !longest.is_empty() => {
                push(' ', a);
                (row, column) = (row + 1, column + 1);
            }
            (Some(a), b) if b.is_none() || best(row + 1, column) >= best(row, column + 1) => {
                push('-', a);
                row += 1;
            }
            (_, Some(b)) => {
                push('+', b);
                column += 1;
            }
            (_, None) => break, // Not reached: a row is left only where the arm above takes it.
        }
    }
    found
}

/// The changes, each with a few lines around it; those that come close are one.
fn hunks<'a, 'b>(lines: &'b [Line<'a>]) -> Vec<&'b [Line<'a>]> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.mark != ' ') {
        let (from, until) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(lines.len()));
        match found.last_mut() {
            Some((_, end)) if *end >= from => *end = until,
            _ => found.push((from, until)),
        }
    }
    found.into_iter().filter_map(|(from, until)| lines.get(from..until)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(running: Option<&str>, disk: Option<&str>) -> String {
        let difference = Difference {
            unit: "a.service".into(),
            path: "/u/a".into(),
            running: running.map(str::to_owned),
            disk: disk.map(str::to_owned),
        };
        let mut out = Vec::new();
        write_difference(Style::PLAIN, &difference, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_change_is_shown_as_diff_shows_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\n";
        let text = "--- /u/a (running)\n+++ /u/a (on disk)\n@@ -2,8 +2,9 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n i\n+j\n";
        assert_eq!(shown(Some(old), Some(new)), text);
        let far = format!("x\n{old}");
        assert_eq!(
            shown(Some(old), Some(&far)),
            "--- /u/a (running)\n+++ /u/a (on disk)\n@@ -1,3 +1,4 @@\n+x\n a\n b\n c\n"
        );
        assert_eq!(shown(None, Some("a\n")), "--- /dev/null\n+++ /u/a (on disk)\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(shown(Some("a\n"), None), "--- /u/a (running)\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn files_are_held_against_each_other_by_their_paths() {
        let files = |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        let unit = UnitName::parse("a.service").unwrap();
        let found = differences(
            &unit,
            files(&[("a", "1"), ("b", "2"), ("c", "3")]),
            files(&[("a", "1"), ("b", "x")]),
        );
        let paths: Vec<_> = found.iter().map(|one| (one.path.as_str(), one.disk.is_some())).collect();
        assert_eq!(paths, [("b", true), ("c", false)]);
    }
}
