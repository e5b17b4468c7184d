//! `TERM`: what kind of terminal a process has, systemd.exec(5) "ENVIRONMENT VARIABLES IN SPAWNED PROCESSES".

use std::fs;
use std::path::Path;

use agentd_linux::mount::is_read_only;
use agentd_unit::sections::{Execution, Input, Output};

/// Where a unit's terminal is without `TTYPath`.
const CONSOLE: &str = "/dev/console";

/// What the kernel tells of its terminals.
const CLASS: &str = "/sys/class/tty";

/// How many screens the kernel has at most, console_codes(4).
const SCREENS: std::ops::RangeInclusive<u8> = 1..=63;

/// The kind of a unit's terminal; none for a unit that has none. At the console of an init it is what who started the init
/// says, which in a container is who knows.
#[must_use]
pub fn kind(how: &Execution) -> Option<String> {
    let leads = |output: &Output| *output == Output::Terminal;
    let has_one = matches!(how.input, Input::Terminal(_)) || leads(&how.output) || leads(&how.error);
    if !has_one && how.tty == Path::new(CONSOLE) {
        return None;
    }
    let told = || std::env::var("TERM").ok().filter(|kind| !kind.is_empty());
    let told = if how.tty == Path::new(CONSOLE) && std::process::id() == 1 { told() } else { None };
    Some(told.unwrap_or_else(|| usual(&how.tty).to_owned()))
}

/// The kernel's own screens are `linux`, and whatever is at the end of a line is the least of all terminals.
fn usual(tty: &Path) -> &'static str {
    let named = match tty == Path::new(CONSOLE) {
        true => console(),
        false => tty.strip_prefix("/dev").ok().and_then(|name| Some(name.to_str()?.to_owned())),
    };
    if named.is_some_and(|name| is_screen(&name)) { "linux" } else { "vt220" }
}

/// Which terminal the console is; not known in a container, which sees the machine's `/sys`, read-only.
fn console() -> Option<String> {
    if is_read_only(Path::new("/sys")).unwrap_or(true) {
        return None;
    }
    let active = |tty: &str| fs::read_to_string(Path::new(CLASS).join(tty).join("active")).ok();
    let all = active("console")?;
    let last = all.split_whitespace().next_back()?;
    let screen = if last == "tty0" { active(last) } else { None };
    Some(screen.map_or_else(|| last.to_owned(), |screen| screen.trim().to_owned()))
}

fn is_screen(name: &str) -> bool {
    name.strip_prefix("tty").and_then(|number| number.parse().ok()).is_some_and(|n| SCREENS.contains(&n))
}

#[cfg(test)]
mod tests {
    use agentd_unit::sections::Seize;

    use super::*;

    #[test]
    fn a_unit_with_a_terminal_is_told_its_kind() {
        let unit =
            |input, output, tty: &str| Execution { input, output, tty: tty.into(), ..Execution::default() };
        let seized = || Input::Terminal(Seize::Force);
        for (case, how, told) in [
            ("none", unit(Input::Null, Output::Inherit, CONSOLE), None),
            ("a screen", unit(seized(), Output::Inherit, "/dev/tty1"), Some("linux")),
            ("a line", unit(seized(), Output::Inherit, "/dev/ttyS0"), Some("vt220")),
            ("another one", unit(Input::Null, Output::Terminal, "/dev/pts/0"), Some("vt220")),
            ("only a path", unit(Input::Null, Output::Null, "/dev/tty63"), Some("linux")),
            ("what no kernel has", unit(Input::Null, Output::Terminal, "/dev/tty64"), Some("vt220")),
            ("no screen in particular", unit(Input::Null, Output::Terminal, "/dev/tty"), Some("vt220")),
        ] {
            assert_eq!(kind(&how).as_deref(), told, "{case}");
        }
    }

    #[test]
    fn the_console_is_one_of_both() {
        assert!(["linux", "vt220"].contains(&usual(Path::new(CONSOLE))));
    }
}
