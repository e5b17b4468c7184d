//! The same program under the settings of xtask/guest/compare/keys.txt, run by the real systemd and by agentd: what it can
//! tell of itself is the same, line by line, or docs/differences.md says why not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::error::{Error, Result};

/// Settings to run the probe under.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) name: String,
    /// Lines of `[Service]`.
    lines: Vec<String>,
    /// Why other things are seen, as docs/differences.md has it.
    reason: Option<String>,
    /// systemd-run cannot say it.
    by_file: bool,
}

/// What a line of the probe begins with that differs wherever this key does not stand, and why.
const UNLESS_SET: (&str, &str, &str) = ("limit open files", "LimitNOFILE", "limits-of-the-manager");

/// Reads all of them.
pub(super) fn parse(text: &str) -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line == "~ file" {
            cases.last_mut().ok_or_else(|| Error::new("a mark before the first case"))?.by_file = true;
            continue;
        }
        if let Some(reason) = line.strip_prefix("! ") {
            let Some(case) = cases.last_mut() else {
                return Err(Error::new("a reason before the first case"));
            };
            case.reason = Some(reason.to_owned());
            continue;
        }
        let (name, keys) =
            line.split_once(':').ok_or_else(|| Error::new(format!("keys.txt: no name: {line}")))?;
        let lines = keys.split(" ; ").map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        cases.push(Case { name: name.to_owned(), lines: lines.collect(), reason: None, by_file: false });
    }
    Ok(cases)
}

impl Case {
    /// Its unit's name.
    pub(super) fn unit(&self) -> String {
        format!("probe-{}.service", self.name)
    }

    /// Its unit file, in systemd's syntax.
    pub(super) fn text(&self, probe: &str) -> String {
        let mut text = format!(
            "[Service]\nType=oneshot\nExecStart=/{probe}\nStandardOutput=truncate:/run/probed/{}\n",
            self.name
        );
        for line in &self.lines {
            let _written = writeln!(text, "{line}");
        }
        text
    }
}

/// A shell script that runs all of them one after the other by their unit files, with the client that it is given, and
/// prints what they saw.
pub(super) fn files(cases: &[Case]) -> String {
    script(cases, |case| format!("$1 start {}", case.unit()))
}

/// The same with the settings as words of systemd-run, which comes back when the probe has ended.
pub(super) fn transient(cases: &[Case], probe: &str) -> String {
    script(cases, |case| {
        if case.by_file {
            return format!("systemctl start {}", case.unit());
        }
        let output = format!("StandardOutput=truncate:/run/probed/{}", case.name);
        let settings = ["Type=oneshot", &output].into_iter().chain(case.lines.iter().map(String::as_str));
        let words: Vec<String> = settings.map(|setting| format!("--property='{setting}'")).collect();
        format!("systemd-run --quiet --unit=transient-{} {} /{probe}", case.name, words.join(" "))
    })
}

fn script(cases: &[Case], start: impl Fn(&Case) -> String) -> String {
    let mut script = "#!/bin/sh\nmkdir -p /run/probed /run/user\n".to_owned();
    for case in cases {
        let (name, start) = (&case.name, start(case));
        let _written = writeln!(
            script,
            "echo '== {name}'; timeout 20 {start} > /dev/null 2>&1; echo exits $?; cat /run/probed/{name}"
        );
    }
    script + "echo '== done'\n"
}

/// Every difference has its reason, and every reason its difference.
pub(super) fn judge(
    cases: &[Case],
    theirs: &BTreeMap<String, Vec<String>>,
    ours: &BTreeMap<String, Vec<String>>,
    differences: &str,
) -> Result<()> {
    let mut wrong = Vec::new();
    for case in cases {
        let seen = |all: &BTreeMap<String, Vec<String>>| all.get(&case.name).cloned().unwrap_or_default();
        let (theirs, ours) = (seen(theirs), seen(ours));
        let (begins, key, everywhere) = UNLESS_SET;
        let is_set = case.lines.iter().any(|line| line.starts_with(key));
        let (theirs, ours) =
            if is_set { (theirs, ours) } else { (without(theirs, begins), without(ours, begins)) };
        if !differences.contains(&format!("`{everywhere}`")) {
            wrong.push(format!("docs/differences.md does not explain {everywhere}"));
        }
        let lines = difference(&theirs, &ours);
        match &case.reason {
            None if !lines.is_empty() => wrong.push(format!("{}:\n  {}", case.name, lines.join("\n  "))),
            Some(reason) if lines.is_empty() => {
                wrong.push(format!("{}: nothing differs any more; take {reason} back", case.name));
            }
            Some(reason) if !differences.contains(&format!("`{reason}`")) => {
                wrong.push(format!("docs/differences.md does not explain {reason}"));
            }
            _ if theirs.len() < 40 => wrong.push(format!("{}: the probe said little: {theirs:?}", case.name)),
            _ => {}
        }
    }
    let known = cases.iter().filter(|case| case.reason.is_some()).count();
    println!("{} settings, {known} with a known difference", cases.len());
    if wrong.is_empty() { Ok(()) } else { Err(Error::new(wrong.join("\n"))) }
}

fn without(mut lines: Vec<String>, begins: &str) -> Vec<String> {
    lines.retain(|line| !line.starts_with(begins));
    lines
}

/// The lines that only one of the two has.
fn difference(theirs: &[String], ours: &[String]) -> Vec<String> {
    let only = |whose: &str, these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|line| !those.contains(line)).map(|line| format!("{whose}: {line}")).collect()
    };
    let mut lines = only("systemd", theirs, ours);
    lines.extend(only("agentd", ours, theirs));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = include_str!("../../../guest/compare/keys.txt");

    #[test]
    fn more_than_forty_settings_are_written_as_units() {
        let cases = parse(KEYS).unwrap();
        assert!(cases.len() > 40, "{}", cases.len());
        let group = cases.iter().find(|case| case.name == "group").unwrap();
        assert_eq!(
            group.text("probe"),
            "[Service]\nType=oneshot\nExecStart=/probe\nStandardOutput=truncate:/run/probed/group\nUser=daemon\nGroup=adm\n"
        );
        assert!(files(&cases).contains("$1 start probe-group.service"));
        let group = "--property='User=daemon' --property='Group=adm' /probe >";
        assert!(transient(&cases, "probe").contains(group), "{}", transient(&cases, "probe"));
        assert!(!KEYS.contains('\''), "a word of the shell ends there");
    }

    #[test]
    fn a_line_that_one_of_them_has_alone_is_told() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(difference(&lines("a\nb"), &lines("b\na")).is_empty());
        assert_eq!(difference(&lines("a\nb"), &lines("a\nc")), ["systemd: b", "agentd: c"]);
    }
}
