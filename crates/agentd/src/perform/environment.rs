//! The environment of a process: clean, declared, systemd's contract and the agents'.
//!
//! Nothing of the manager's own environment is handed on. Order, later wins: what every process gets, what its run
//! and command add, `PassEnvironment`, `Environment`, `EnvironmentFile`; `UnsetEnvironment` has the last word. Sources: systemd.exec(5) "ENVIRONMENT VARIABLES IN SPAWNED PROCESSES",
//! design section 12.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agentd_engine::{ExitStatus, InvocationId, SpawnEnvironment};
use agentd_unit::{ExecKind, Unit};

use super::folders::Made;

/// The ends of the paths that passwd has for users who do not log in.
const NO_SHELLS: [&str; 3] = ["/nologin", "/false", "/true"];

/// Where programs are looked for, as systemd's manager has it.
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the environment is made of, besides the unit.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// The run.
    pub run: InvocationId,
    /// Which command it is for.
    pub kind: ExecKind,
    /// What the engine says.
    pub engine: &'a SpawnEnvironment,
    /// The durable, strictly increasing number of this run.
    pub fencing_token: u64,
    /// The notify socket.
    pub notify_socket: &'a Path,
    /// The account, if the command runs under one of its own.
    pub account: Option<&'a Account>,
    /// The folders that were made for the unit, with the variable of their key.
    pub folders: &'a [Made],
    /// Where the unit's secrets are.
    pub credentials: Option<&'a Path>,
    /// What the files of `EnvironmentFile` say.
    pub files: &'a [(String, String)],
    /// A variable of the manager's own, for `PassEnvironment`.
    pub passed: fn(&str) -> Option<String>,
    /// `device:inode` of standard output, if it is the journal's stream.
    pub journal_stream: Option<&'a str>,
    /// The kind of its terminal, if it has one.
    pub terminal: Option<&'a str>,
    /// The pid of the manager, for `MANAGERPID` of a user manager.
    pub user_manager: Option<u32>,
    /// `XDG_RUNTIME_DIR`, of a user manager.
    pub user_runtime: Option<&'a Path>,
}

/// The account of a process, from the user database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its home.
    pub home: String,
    /// Its shell.
    pub shell: String,
}

/// The variables of one command, by name. `SYSTEMD_EXEC_PID`, `LISTEN_PID` and the like, which need the child's
/// pid, are added later.
#[must_use]
pub fn environment(facts: &Facts<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |key: &str, value: String| {
        env.insert(key.to_owned(), value);
    };
    let search_path = facts.unit.as_service().and_then(|body| body.service.execution.search_path());
    set("PATH", search_path.unwrap_or_else(|| DEFAULT_PATH.to_owned()));
    set("LANG", "C.UTF-8".to_owned());
    if let Some(account) = facts.account {
        set("USER", account.name.clone());
        set("LOGNAME", account.name.clone());
        set("HOME", account.home.clone());
        // As in systemd: what only says that nobody logs in is no shell to run anything with.
        if !NO_SHELLS.iter().any(|name| account.shell.ends_with(name)) {
            set("SHELL", account.shell.clone());
        }
    }
    set("INVOCATION_ID", facts.run.to_string());
    if let Some(pid) = facts.user_manager {
        set("MANAGERPID", pid.to_string());
    }
    if let Some(path) = facts.user_runtime {
        set("XDG_RUNTIME_DIR", path.display().to_string());
    }
    if let Some(stream) = facts.journal_stream {
        set("JOURNAL_STREAM", stream.to_owned());
    }
    if let Some(kind) = facts.terminal {
        set("TERM", kind.to_owned());
    }
    for (variable, paths) in facts.folders {
        set(variable, joined(paths));
    }
    if let Some(folder) = facts.credentials {
        set("CREDENTIALS_DIRECTORY", folder.display().to_string());
    }
    command(facts, &mut set);
    agent(facts, &mut set);
    if let Some(body) = facts.unit.as_service() {
        for name in &body.service.execution.pass_environment {
            if let Some(value) = (facts.passed)(name) {
                set(name, value);
            }
        }
        for (key, value) in body.service.environment.iter().chain(facts.files) {
            set(key, value.clone());
        }
        unset(&mut env, &body.service.execution.unset_environment);
    }
    env
}

/// Takes out what `UnsetEnvironment` names: `NAME`, or `NAME=value` where it has that value.
fn unset(env: &mut BTreeMap<String, String>, rules: &[String]) {
    for rule in rules {
        match rule.split_once('=') {
            Some((name, value)) if env.get(name).is_none_or(|set| set != value) => {}
            Some((name, _)) => drop(env.remove(name)),
            None => drop(env.remove(rule)),
        }
    }
}

/// What the command's place in the run adds.
fn command(facts: &Facts<'_>, set: &mut impl FnMut(&str, String)) {
    let engine = facts.engine;
    if engine.notify {
        set("NOTIFY_SOCKET", facts.notify_socket.display().to_string());
    }
    if let Some(span) = engine.watchdog {
        set("WATCHDOG_USEC", span.as_micros().to_string());
    }
    if let Some(path) = facts.unit.as_service().and_then(|body| body.service.life.pid_file.as_deref()) {
        set("PIDFILE", path.display().to_string());
    }
    let most = facts.unit.as_service().map_or(0, |body| body.service.life.descriptor_store_max);
    if facts.kind == ExecKind::Start && most > 0 {
        set("FDSTORE", most.to_string());
    }
    if let Some(pid) = engine.main_pid {
        set("MAINPID", pid.to_string());
    }
    if matches!(facts.kind, ExecKind::Stop | ExecKind::StopPost) {
        if let Some(result) = engine.service_result {
            set("SERVICE_RESULT", result.as_str().to_owned());
        }
        if let Some(status) = engine.exit_status {
            let (code, value) = exit_words(status);
            set("EXIT_CODE", code.to_owned());
            set("EXIT_STATUS", value);
        }
    }
    if let Some(trigger) = &engine.trigger {
        set("TRIGGER_UNIT", trigger.unit.to_string());
        if let Some(path) = &trigger.path {
            set("TRIGGER_PATH", path.clone());
        }
        if let Some((realtime, monotonic)) = trigger.at {
            set("TRIGGER_TIMER_REALTIME_USEC", realtime.as_micros().to_string());
            set("TRIGGER_TIMER_MONOTONIC_USEC", monotonic.0.as_micros().to_string());
        }
    }
    if let Some(monitor) = &engine.monitor {
        set("MONITOR_UNIT", monitor.unit.to_string());
        set("MONITOR_INVOCATION_ID", monitor.run.to_string());
        set("MONITOR_SERVICE_RESULT", monitor.result.as_str().to_owned());
        set("MONITOR_RESTARTS", monitor.restarts.to_string());
        if let Some(status) = monitor.exit_status {
            let (code, value) = exit_words(status);
            set("MONITOR_EXIT_CODE", code.to_owned());
            set("MONITOR_EXIT_STATUS", value);
        }
    }
}

/// The contract of agents, design section 12.
fn agent(facts: &Facts<'_>, set: &mut impl FnMut(&str, String)) {
    set("AGENTD_UNIT", facts.unit.name.to_string());
    set("AGENTD_RUN_ID", facts.run.to_string());
    set("ADK_RUN_ID", facts.run.to_string());
    set("AGENTD_GENERATION", facts.engine.generation.to_string());
    set("AGENTD_FENCING_TOKEN", facts.fencing_token.to_string());
    let state = facts.folders.iter().find(|(variable, _)| *variable == "STATE_DIRECTORY");
    if let Some(first) = state.and_then(|(_, paths)| paths.first()) {
        set("AGENTD_STATE_DIRECTORY", first.display().to_string());
    }
}

/// systemd's words for `EXIT_CODE` and `EXIT_STATUS`: the number, or the signal's name without SIG.
fn exit_words(status: ExitStatus) -> (&'static str, String) {
    let bare = |signal: agentd_unit::Signal| signal.to_string().trim_start_matches("SIG").to_owned();
    match status {
        ExitStatus::Exited(code) => ("exited", code.to_string()),
        ExitStatus::Killed(signal) => ("killed", bare(signal)),
        ExitStatus::Dumped(signal) => ("dumped", bare(signal)),
        ExitStatus::Unknown => ("unknown", String::new()),
    }
}

fn joined(paths: &[PathBuf]) -> String {
    let texts: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    texts.join(":")
}

/// Replaces `$VAR` and `${VAR}` in arguments, systemd.service(5) "COMMAND LINES".
///
/// `${VAR}` is replaced in place and stays one argument; an argument that is exactly `$VAR` is split at white space
/// that no quotes keep into none, one or several; `$$` is a dollar sign. What is not set becomes empty.
#[must_use]
pub fn expand(argv: &[String], env: &BTreeMap<String, String>) -> Vec<String> {
    let mut expanded = Vec::with_capacity(argv.len());
    for (i, arg) in argv.iter().enumerate() {
        let whole = arg.strip_prefix('$').filter(|name| i > 0 && is_name(name));
        match whole {
            Some(name) => expanded.extend(env.get(name).into_iter().flat_map(|value| split(value))),
            None => expanded.push(in_place(arg, env)),
        }
    }
    expanded
}

/// The words of a variable: quotes keep white space and go, a backslash takes the next character as it is, and quotes
/// that are never closed end with the value. A word of nothing, `''`, is none, as in systemd 252.
fn split(value: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted: Option<char> = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        let word = match words.last_mut() {
            Some(word) if quoted.is_some() || !is_white(c) => word,
            _ => {
                words.push(String::new());
                continue;
            }
        };
        match c {
            '\\' => word.extend(chars.next()),
            '"' | '\'' if quoted == Some(c) => quoted = None,
            '"' | '\'' if quoted.is_none() => quoted = Some(c),
            c => word.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_white(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn in_place(arg: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(arg.len());
    let mut rest = arg;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) =
            after.strip_prefix('{').and_then(|s| s.split_once('}')).filter(|(name, _)| is_name(name))
        {
            out.push_str(env.get(name).map_or("", String::as_str));
            rest = tail;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Whether the text is a variable's name, environ(7).
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_engine::ServiceResult;
    use agentd_unit::{Signal, UnitName};

    fn facts<'a>(unit: &'a Unit, engine: &'a SpawnEnvironment, kind: ExecKind) -> Facts<'a> {
        Facts {
            unit,
            run: InvocationId(7),
            kind,
            engine,
            fencing_token: 3,
            notify_socket: Path::new("/run/agentd/notify"),
            account: None,
            folders: &[],
            credentials: None,
            files: &[],
            passed: |_| None,
            journal_stream: None,
            terminal: None,
            user_manager: None,
            user_runtime: None,
        }
    }

    #[test]
    fn only_what_is_declared_is_there() {
        let unit = Unit::not_found(UnitName::parse("a.service").unwrap());
        let env = environment(&facts(&unit, &SpawnEnvironment::default(), ExecKind::Start));
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "ADK_RUN_ID",
                "AGENTD_FENCING_TOKEN",
                "AGENTD_GENERATION",
                "AGENTD_RUN_ID",
                "AGENTD_UNIT",
                "INVOCATION_ID",
                "LANG",
                "PATH"
            ]
        );
    }

    #[test]
    fn exec_stop_post_learns_how_the_main_process_ended() {
        let unit = Unit::not_found(UnitName::parse("a.service").unwrap());
        let engine = SpawnEnvironment {
            service_result: Some(ServiceResult::Signal),
            exit_status: Some(ExitStatus::Killed(Signal::KILL)),
            ..SpawnEnvironment::default()
        };
        let env = environment(&facts(&unit, &engine, ExecKind::StopPost));
        assert_eq!(env["SERVICE_RESULT"], "signal");
        assert_eq!((env["EXIT_CODE"].as_str(), env["EXIT_STATUS"].as_str()), ("killed", "KILL"));
    }

    #[test]
    fn variables_in_arguments_follow_systemd() {
        let env: BTreeMap<String, String> =
            [("ONE", "a b"), ("TWO", "c")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        for (arg, expected) in [
            ("${ONE}", vec!["a b"]),
            ("$ONE", vec!["a", "b"]),
            ("x${TWO}y", vec!["xcy"]),
            ("$NONE", vec![]),
            ("${NONE}", vec![""]),
            ("$$TWO", vec!["$TWO"]),
            ("a$TWO", vec!["a$TWO"]),
            ("${9}", vec!["${9}"]),
            ("cost $", vec!["cost $"]),
        ] {
            let argv = ["prog".to_owned(), arg.to_owned()];
            assert_eq!(expand(&argv, &env)[1..], expected[..], "{arg}");
        }
    }

    /// What systemd 252's own library says of each.
    #[test]
    fn quotes_in_a_variable_keep_its_words_together() {
        for (value, expected) in [
            ("-Y '-O 1' \"z z\"", vec!["-Y", "-O 1", "z z"]),
            ("a 'b c", vec!["a", "b c"]),
            ("a'b c'd", vec!["ab cd"]),
            (r"a\ b c\x20d", vec!["a b", "cx20d"]),
            (r#"c:\dir "q\"t""#, vec!["c:dir", "q\"t"]),
            ("a '' b", vec!["a", "b"]),
            ("a\nb\rc\td\u{b}e", vec!["a", "b", "c", "d\u{b}e"]),
            (r"a 'b\", vec!["a", "b"]),
            ("''", vec![]),
        ] {
            let env = [("V".to_owned(), value.to_owned())].into();
            let argv = ["prog".to_owned(), "$V".to_owned()];
            assert_eq!(expand(&argv, &env)[1..], expected[..], "{value}");
        }
    }
}
