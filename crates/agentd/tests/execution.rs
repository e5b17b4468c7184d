//! The execution keys of `[Service]`, seen by the processes that they are for. Each case runs twice: with its key, and
//! without it, where what it is to bring about must not be seen.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::os::unix::net::UnixListener;

use common::cases::{case, check_all, is_root};
use common::{Manager, Setup, text};

#[test]
fn a_process_is_as_its_keys_say() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("attributes");
    let status = "cat /proc/self/status";
    let limits = "cat /proc/self/limits";
    let cases = [
        case("umask", "UMask = \"0077\"", status, "Umask:\t0077"),
        case("nofile", "LimitNOFILE = \"2000:3000\"", "ulimit -Sn; ulimit -Hn", "2000\n3000\n"),
        case("core", "LimitCORE = \"1M\"", limits, "Max core file size        1048576              1048576"),
        case(
            "cpu",
            "LimitCPU = \"90s:infinity\"",
            limits,
            "Max cpu time              90                   unlimited",
        ),
        case(
            "queue",
            "LimitMSGQUEUE = \"4K\"",
            limits,
            "Max msgqueue size         4096                 4096",
        ),
        case("nice", "Nice = 7", "cut -d' ' -f19 /proc/self/stat; nice", "7\n"),
        case("oom", "OOMScoreAdjust = 345", "cat /proc/self/oom_score_adj", "345\n"),
        case("policy", "CPUSchedulingPolicy = \"batch\"", "chrt -p $$", "SCHED_BATCH"),
        case(
            "fifo",
            "CPUSchedulingPolicy = \"fifo\"\nCPUSchedulingPriority = 12",
            "chrt -p $$",
            "priority: 12",
        ),
        case("reset", "CPUSchedulingResetOnFork = true", "chrt -p $$", "SCHED_RESET_ON_FORK"),
        case("affinity", "CPUAffinity = \"0\"", status, "Cpus_allowed_list:\t0\n"),
        case("io", "IOSchedulingClass = \"idle\"", "ionice -p $$", "idle"),
        case("io-rank", "IOSchedulingPriority = 2", "ionice -p $$", "best-effort: prio 2"),
        case(
            "dump",
            "CoredumpFilter = \"private-anonymous shared-dax\"",
            "cat /proc/self/coredump_filter",
            "00000101\n",
        ),
        case("slack", "TimerSlackNSec = \"70us\"", "cat /proc/$$/timerslack_ns", "70000\n"),
        case("groups", "SupplementaryGroups = [\"7\", \"64125\"]", status, "Groups:\t7 64125 \n"),
        case("sigpipe", "IgnoreSIGPIPE = false", status, "SigIgn:\t0000000000000000"),
        case("secure", "SecureBits = \"noroot noroot-locked\"", status, "CapEff:\t0000000000000000"),
        case("home", "WorkingDirectory = \"~\"\nUser = \"root\"", "pwd", "/root\n"),
    ];
    check_all(setup, &cases);
}

#[test]
fn a_process_takes_its_machine_and_its_memory_as_its_keys_say() {
    if !is_root() {
        return;
    }
    let (word, machine) = if cfg!(target_arch = "x86_64") { ("x86", "i686\n") } else { ("arm", "armv8l\n") };
    let mut cases = vec![case("personality", &format!("Personality = \"{word}\""), "uname -m", machine)];
    if std::path::Path::new("/sys/devices/system/node/node0").exists() {
        let keys = "NUMAPolicy = \"bind\"\nNUMAMask = \"0\"";
        cases.push(case("nodes", keys, "cat /proc/self/numa_maps", " bind:0 "));
        cases.push(case("no-node", "NUMAPolicy = \"bind\"\nNUMAMask = \"63\"", ":", "NUMA"));
    }
    check_all(Setup::new("machine"), &cases);
}

#[test]
fn programs_are_looked_for_where_the_unit_says() {
    let setup = Setup::new("search");
    let program = setup.file("programs/agentd-test-tool", "#!/bin/sh\necho \"$PATH\"\n");
    let folder = program.parent().unwrap().display().to_string();
    let unit = |name: &str, keys: &str| {
        let out = setup.path(&format!("{name}.out"));
        let text = format!(
            "[Service]\nType = \"oneshot\"\nExecStart = \"agentd-test-tool\"\nStandardOutput = \"truncate:{}\"\n{keys}\n",
            out.display()
        );
        setup.unit(&format!("{name}.service"), &text);
    };
    unit("there", &format!("ExecSearchPath = \"/nonexistent:{folder}\""));
    unit("own-path", &format!("ExecSearchPath = \"{folder}\"\nEnvironment = {{ PATH = \"/bin\" }}"));
    unit("elsewhere", "");
    let mut manager = setup.start();
    manager.ok(&["start", "there", "own-path"]);
    let out = |name: &str| fs::read_to_string(manager.path(&format!("{name}.out"))).unwrap();
    assert_eq!(out("there"), format!("/nonexistent:{folder}\n"), "it is the PATH too");
    assert_eq!(out("own-path"), "/bin\n", "a PATH that the unit sets stays");
    assert!(!manager.ctl(&["start", "elsewhere"]).status.success());
}

/// Nobody may have infinitely many descriptors; and a shell that nobody can log in with is none.
#[test]
fn infinity_is_the_most_that_there_may_be() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("infinity");
    let script = setup.file(
        "script",
        "#!/bin/sh\nulimit -Sn; ulimit -Hn; grep Groups /proc/self/status; echo ${SHELL-none}\n",
    );
    setup.unit(
        "infinity.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = \"{}\"\nLimitNOFILE = \"1000:infinity\"\nUser = \"daemon\"\nStandardOutput = \"truncate:{}\"\n",
            script.display(),
            setup.path("out").display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "infinity"]);
    let out = fs::read_to_string(manager.path("out")).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "1000", "{out}");
    assert!(lines[1].parse::<u64>().is_ok_and(|most| most >= 1000), "{out}");
    assert_eq!(lines[2..], ["Groups:\t1 ", "none"], "the primary group is one of the groups");
}

#[test]
fn the_environment_is_put_together_from_all_its_keys() {
    let setup = Setup::new("environment").wrapper(&["/usr/bin/env", "PASSED_ON=from the manager"]);
    let file = setup.file("one.env", "# comment\nA='in the file'\nB=\"b\\\"c\"\n");
    setup.file("env.d/2.env", "A=2\nB=2\n");
    setup.file("env.d/1.env", "A=1\n");
    setup.file("env.d/other", "A=3\n");
    let fits =
        format!("EnvironmentFile = [\"-/nonexistent/*\", \"{}/env.?/*.env\"]", setup.path("").display());
    let keys = format!(
        "Environment = {{ A = \"in the unit\", C = \"c\", D = \"d\" }}\nEnvironmentFile = [\"-/nonexistent\", \"{}\"]\nUnsetEnvironment = [\"C\", \"D=other\"]",
        file.display()
    );
    let cases = [
        case("file", &keys, "echo \"$A|$B|${C-none}|$D\"", "in the file|b\"c|none|d\n"),
        case("pass", "PassEnvironment = \"PASSED_ON NOT_THERE\"", "env", "PASSED_ON=from the manager\n"),
        case("unset", "UnsetEnvironment = \"LANG\"", "echo \"${LANG-none}\"", "none\n"),
        case("must", "EnvironmentFile = \"/nonexistent\"", ":", "failed"),
        case("fits", &fits, "echo \"$A|$B\"", "2|2\n"),
        case(
            "release",
            "Environment = { SAID = \"%o %w|%W|%A|%s|%q\" }",
            "set -a; . /etc/os-release; test \"$SAID\" = \"$ID ${VERSION_ID-}|${VARIANT_ID-}|${IMAGE_VERSION-}|/bin/sh|$(hostname -s)\" && echo same",
            "same\n",
        ),
        case("must_fit", "EnvironmentFile = \"/nonexistent/*\"", ":", "failed"),
    ];
    check_all(setup, &cases);
}

/// With the manager's memory, with memory of its own, and where its number is another one.
#[test]
fn a_process_finds_its_number_and_its_pid_file_in_its_environment() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("numbers");
    let script = "echo \\\"$${SYSTEMD_EXEC_PID-none} $$$$ $${PIDFILE-none}\\\"";
    let cases = [
        ("same", "PIDFile = \"%p.pid\"", "its own /run/same.pid"),
        ("other", "User = \"64123\"", "its own none"),
        ("inner", "PrivatePIDs = true", "its own none"),
        ("said", "Environment = { SYSTEMD_EXEC_PID = \"7\", PIDFILE = \"x\" }", "7 another x"),
        ("unset", "UnsetEnvironment = \"SYSTEMD_EXEC_PID\"", "none another none"),
    ];
    for (name, keys, _) in &cases {
        let command = format!("[\"/bin/sh\", \"-c\", \"{script}\"]");
        let out = setup.path(&format!("{name}.out"));
        let text = format!(
            "[Service]\nType = \"oneshot\"\nExecStartPre = {command}\nExecStart = {command}\nExecStopPost = {command}\nStandardOutput = \"append:{}\"\n{keys}\n",
            out.display()
        );
        setup.unit(&format!("{name}.service"), &text);
    }
    let mut manager = setup.start();
    for (name, _, expected) in cases {
        manager.ok(&["start", name]);
        let out = fs::read_to_string(manager.path(&format!("{name}.out"))).unwrap();
        assert_eq!(out.lines().count(), 3, "{name}: {out}");
        for line in out.lines() {
            let [told, own, rest]: [&str; 3] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
            let seen = if told == own { format!("its own {rest}") } else { format!("{told} another {rest}") };
            assert_eq!(seen, expected, "{name}: {line}");
        }
    }
    let inner = fs::read_to_string(manager.path("inner.out")).unwrap();
    assert!(inner.starts_with("1 1 "), "{inner}");
}

#[test]
fn the_standard_descriptors_lead_where_the_keys_say() {
    let setup = Setup::new("streams");
    let input = setup.file("input", "from a file\n");
    let [append, plain] = ["append.out", "plain.out"].map(|name| setup.file(name, "old and long\n"));
    let unit = |name: &str, keys: &str, script: &str| {
        let script = setup.file(&format!("{name}.sh"), &format!("#!/bin/sh\n{script}\n"));
        let text = format!("[Service]\nType = \"oneshot\"\nExecStart = \"{}\"\n{keys}\n", script.display());
        setup.unit(&format!("{name}.service"), &text);
    };
    unit("append", &format!("StandardOutput = \"append:{}\"", append.display()), "echo new; echo err >&2");
    unit(
        "plain",
        &format!("StandardOutput = \"file:{}\"\nStandardError = \"null\"", plain.display()),
        "echo new; echo err >&2",
    );
    unit("input", &format!("StandardInput = \"file:{}\"", input.display()), "cat");
    unit(
        "dup",
        &format!(
            "StandardInput = \"file:{}\"\nStandardOutput = \"inherit\"\nStandardError = \"journal\"",
            input.display()
        ),
        "readlink /proc/$$/fd/1 >&2",
    );
    let both = setup.path("both");
    unit(
        "both",
        "StandardInput = \"fd:zero\"\nOpenFile = \"/dev/zero:zero\"",
        &format!("all=$(readlink /proc/$$/fd/1 /proc/$$/fd/2); echo \"$all\" > {}", both.display()),
    );
    unit("quiet", "LogLevelMax = \"warning\"", "echo '<6>unimportant'; echo '<4>important'");
    unit("level", "SyslogLevel = \"notice\"\nSyslogLevelPrefix = false", "echo '<3>told'");
    unit("usual", "", "echo '<3>told'; echo plain");
    unit("flood", "LogRateLimitIntervalSec = \"1h\"\nLogRateLimitBurst = 3", "seq -f 'line %g' 10");
    unit("trickle", "LogRateLimitIntervalSec = 0\nLogRateLimitBurst = 3", "seq -f 'line %g' 10");
    if is_root() {
        unit("user", "User = \"64123\"", "echo by name >/dev/stderr; echo again >/dev/stdout");
        let command = "[\"/bin/sh\", \"-c\", \"echo by name >/dev/stderr; echo again >/dev/stdout\"]";
        let text = format!("[Service]\nType = \"oneshot\"\nDynamicUser = true\nExecStart = {command}\n");
        setup.unit("dynamic.service", &text);
    }
    let (one, socket) = (setup.file("one", "in\nand more\n"), setup.path("socket"));
    let same = |path: &std::path::Path| {
        format!(
            "StandardInput = \"file:{0}\"\nStandardOutput = \"file:{0}\"\nStandardError = \"journal\"",
            path.display()
        )
    };
    // What is read and what is written have one place in the file.
    unit("one", &same(&one), "head -c 3 >/dev/null; echo out; echo err >&2");
    unit("talk", &same(&socket), "echo question; head -n 1 >&2");
    let keys = format!("StandardInput = \"file:{}\"\nStandardOutput = \"journal\"", socket.display());
    unit("hear", &keys, "cat");
    unit("missing", "StandardInput = \"file:/nonexistent\"", ":");
    let mut manager = setup.start();
    for name in ["append", "plain", "input", "dup", "quiet", "level", "usual", "flood", "trickle", "both"] {
        manager.ok(&["start", name]);
    }
    manager.ok(&["start", "one"]);
    assert_eq!(fs::read_to_string(manager.path("one")).unwrap(), "in\nout\nmore\n");
    let listener = UnixListener::bind(manager.path("socket")).unwrap();
    for (unit, question, answer) in [("talk", "question\n", "answer\n"), ("hear", "", "news\n")] {
        manager.ok(&["start", "--no-block", unit]);
        let (mut client, _) = listener.accept().unwrap();
        let mut said = String::new();
        let mut reader = std::io::BufReader::new(client.try_clone().unwrap());
        std::io::BufRead::read_line(&mut reader, &mut said).unwrap();
        assert_eq!(said, question, "{unit}");
        std::io::Write::write_all(&mut client, answer.as_bytes()).unwrap();
        drop((client, reader));
        manager.until("it hears nothing", |m| text(&m.ctl(&["logs", unit])).contains(answer.trim_end()));
    }
    for name in ["user", "dynamic"].into_iter().filter(|_| is_root()) {
        manager.ok(&["start", name]);
        manager.until("it cannot open its output", |m| text(&m.ctl(&["logs", name])).contains(": again"));
        assert!(text(&manager.ctl(&["logs", name])).contains(": by name"));
    }
    assert_eq!(fs::read_to_string(manager.path("append.out")).unwrap(), "old and long\nnew\nerr\n");
    assert_eq!(fs::read_to_string(manager.path("plain.out")).unwrap(), "new\nand long\n");
    manager.until("the input is not read", |m| text(&m.ctl(&["logs", "input"])).contains("from a file"));
    manager.until("the level is not kept", |m| text(&m.ctl(&["logs", "quiet"])).contains(" important"));
    assert!(!text(&manager.ctl(&["logs", "quiet"])).contains("unimportant"));
    // The file has the level of each entry between its time and its text.
    let has = |m: &Manager, name: &str, level: u32, message: &str| {
        let file = fs::read_to_string(m.path(&format!("log/{name}.service.log"))).unwrap_or_default();
        file.lines().any(|line| line.ends_with(&format!(" <{level}> {message}")))
    };
    manager.until("the level is not kept", |m| has(m, "level", 5, "<3>told"));
    manager.until("the prefix is not read", |m| has(m, "usual", 3, "told") && has(m, "usual", 6, "plain"));
    manager.until("what is too much is not told", |m| {
        text(&m.ctl(&["logs", "flood"])).contains("7 lines suppressed")
    });
    assert!(!text(&manager.ctl(&["logs", "flood"])).contains("line 4"));
    manager.until("all is not there", |m| text(&m.ctl(&["logs", "trickle"])).contains("line 10"));
    // A file that is read is none to write to: `inherit` is the log there. What has both ways is all three.
    manager.until("the output is not told", |m| text(&m.ctl(&["logs", "dup"])).contains(": pipe:"));
    assert_eq!(fs::read_to_string(&both).unwrap(), "/dev/zero\n/dev/zero\n");
    assert!(!manager.ctl(&["start", "missing"]).status.success());
    assert_eq!(manager.property("missing", "ExecMainStatus"), "208");
    manager.wait_for_log("StandardInput: /nonexistent cannot be opened", "the reason is not told");
}

#[test]
fn the_input_may_stand_in_the_unit() {
    let setup = Setup::new("input-data");
    let out = setup.path("out").display().to_string();
    let unit = |name: &str, keys: &str| {
        let text = format!(
            "[Service]\nType = \"oneshot\"\nExecStart = \"/bin/cat\"\nStandardOutput = \"append:{out}\"\n{keys}\n"
        );
        setup.unit(&format!("{name}.service"), &text);
    };
    unit("both", "StandardInputText = [\"one %p\", \"two\"]\nStandardInputData = \"dGhyZWUK\"");
    unit("named", "StandardInput = \"data\"\nStandardInputText = \"four\"");
    unit("nothing", "StandardInput = \"data\"");
    setup.file("units/ini.service", &format!("[Service]\nType=oneshot\nExecStart=/bin/cat\nStandardOutput=append:{out}\nStandardInputText=five words in a line\n"));
    let mut manager = setup.start();
    for name in ["both", "named", "nothing", "ini"] {
        manager.ok(&["start", name]);
    }
    let text = fs::read_to_string(manager.path("out")).unwrap();
    assert_eq!(text, "one both\ntwo\nthree\nfour\nfive words in a line\n");
}

#[test]
fn all_lines_that_are_kept_are_shown_unless_a_number_is_said() {
    let setup = Setup::new("all-lines");
    let keys = "Type = \"oneshot\"\nExecStart = [\"/usr/bin/seq\", \"1001\", \"1030\"]";
    setup.unit("many.service", &format!("[Service]\n{keys}\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "many"]);
    let shown = |logs: String| logs.lines().filter(|line| line.contains(": 10")).count();
    assert_eq!(shown(manager.ok(&["logs", "many"])), 30);
    assert_eq!(manager.ok(&["logs", "-n", "5", "many"]).lines().count(), 5);
    assert!(shown(text(&manager.ctl(&["status", "many"]))) < 10, "the page has its last ten");
}

#[test]
fn a_stored_descriptor_may_be_a_standard_one() {
    let setup = Setup::new("streams-named");
    let out = setup.path("out").display().to_string();
    let program = setup.file(
        "program.py",
        &format!(
            "import os, socket, sys, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(os.environ['NOTIFY_SOCKET'])\n\
             if 'LISTEN_FDS' not in os.environ:\n    fd = os.open({out:?}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n    socket.send_fds(s, [b'FDSTORE=1\\nFDNAME=words'], [fd])\n\
             print('to where it leads', flush=True)\nprint('errors too', file=sys.stderr, flush=True)\ns.send(b'READY=1')\ntime.sleep(1000)\n"
        ),
    );
    let text = |keys: &str| {
        format!(
            "[Service]\nType = \"notify\"\nFileDescriptorStoreMax = 4\nFileDescriptorStorePreserve = \"yes\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\n{keys}\n",
            program.display()
        )
    };
    let file = setup.unit("d.service", &text(""));
    let named = "StandardOutput = \"fd:words\"\nStandardError = \"fd:words\"";
    setup.unit("none.service", &text(named));
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    fs::write(file, text(&format!("{named}\nExecStartPre = \"/bin/true\""))).unwrap();
    manager.ok(&["daemon-reload"]);
    manager.ok(&["restart", "d"]);
    assert_eq!(fs::read_to_string(manager.path("out")).unwrap(), "to where it leads\nerrors too\n");
    assert!(!manager.ctl(&["start", "none"]).status.success());
    assert_eq!(manager.property("none", "ExecMainStatus"), "209");
    manager.wait_for_log("is passed no descriptor of that name", "the reason is not told");
}

/// Prints the number of its session's ring of keys, and whether its user's hangs on that.
const RINGS: &str = "import ctypes, struct\n\
    keyctl = lambda *words: ctypes.CDLL(None).syscall(KEYCTL, *words)\n\
    buffer = ctypes.create_string_buffer(4096)\n\
    size = keyctl(11, -3, buffer, len(buffer))\n\
    keys = struct.unpack(f'{size // 4}i', buffer.raw[:size])\n\
    print(keyctl(0, -3, 0), 'linked' if keyctl(0, -4, 1) in keys else 'alone')\n";

#[test]
fn keys_are_the_services_own_unless_it_says_otherwise() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("keyring");
    let number = if cfg!(target_arch = "x86_64") { 250 } else { 219 };
    let program = setup.file("rings.py", &RINGS.replace("KEYCTL", &number.to_string()));
    for (name, keys) in [
        ("first", ""),
        ("second", "KeyringMode = \"private\""),
        ("manager", "KeyringMode = \"inherit\""),
        ("again", "KeyringMode = \"inherit\""),
        ("shared", "KeyringMode = \"shared\"\nUser = \"64124\""),
    ] {
        let out = setup.path(&format!("{name}.out"));
        setup.unit(
            &format!("{name}.service"),
            &format!(
                "[Service]\nType = \"oneshot\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\nStandardOutput = \"truncate:{}\"\n{keys}\n",
                program.display(),
                out.display()
            ),
        );
    }
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(setup.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut manager = setup.start();
    let mut rings = Vec::new();
    for name in ["first", "second", "manager", "again", "shared"] {
        manager.ok(&["start", name]);
        rings.push(fs::read_to_string(manager.path(&format!("{name}.out"))).unwrap());
    }
    let number = |ring: &str| ring.split(' ').next().unwrap().to_owned();
    let [first, second, inherited, again, shared] = rings.try_into().unwrap();
    assert_ne!(number(&first), number(&second));
    assert_ne!(number(&first), number(&inherited));
    assert_eq!(number(&inherited), number(&again));
    assert!(first.contains("alone") && second.contains("alone"), "{first}{second}");
    assert!(shared.contains("linked"), "{shared}");
}

/// In most containers root may not raise limits.
#[test]
fn a_limit_that_the_manager_may_not_give_is_the_nearest_that_it_may_and_it_says_so() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("no-raise").wrapper(&[
        "setpriv",
        "--bounding-set",
        "-sys_resource",
        "--inh-caps",
        "-sys_resource",
        "prlimit",
        "--nofile=1000:2000",
    ]);
    let out = setup.path("out").display().to_string();
    setup.unit(
        "d.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"ulimit -Sn; ulimit -Hn; cat /proc/self/oom_score_adj\"]\nLimitNOFILE = 5000\nOOMScoreAdjust = -900\nStandardOutput = \"truncate:{out}\"\n"
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "d"]);
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(fs::read_to_string(manager.path("out")).unwrap(), format!("2000\n2000\n{own}"));
    manager.wait_for_log("LimitNOFILE=5000:5000 is more than this manager may give", "it is not told");
    manager.wait_for_log("OOMScoreAdjust=-900 is less than this manager may give", "it is not told");
}

#[test]
fn the_terminal_is_the_controlling_one() {
    let setup = Setup::new("terminal");
    let program = setup.file(
        "terminal.py",
        "#!/usr/bin/env python3\nimport os, subprocess, sys\nmaster, slave = os.openpty()\nos.set_inheritable(slave, True)\nprint(os.ttyname(slave), flush=True)\nos.read(master, 1000)\nprint('answered', flush=True)\nos.read(0, 1)\n",
    );
    // A terminal of our own, whose name goes into the unit.
    let mut terminal = std::process::Command::new("python3")
        .arg(&program)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(terminal.stdout.take().unwrap()));
    let tty = lines.next().unwrap().unwrap();
    let script =
        setup.file("tty.sh", "#!/bin/sh\necho to the terminal > /dev/tty && tty && echo a $TERM >&2\n");
    setup.unit(
        "tty.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = \"{}\"\nTTYPath = \"{tty}\"\nStandardInput = \"tty-force\"\nStandardError = \"journal\"\nStandardOutput = \"tty\"\n",
            script.display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "tty"]);
    assert_eq!(lines.next().unwrap().unwrap(), "answered");
    manager.until("its kind is not told", |m| text(&m.ctl(&["logs", "tty"])).contains(": a vt220"));
    drop(terminal.stdin.take());
    terminal.wait().unwrap();
}

#[test]
fn a_command_runs_within_the_root_directory() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("root");
    let root = setup.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    // A static program needs nothing else in the root.
    let source = setup.file("probe.c", "#include <unistd.h>\n#include <stdio.h>\nint main(void) { char b[99]; puts(getcwd(b, 99)); return access(\"/bin/probe\", X_OK) ? 3 : 0; }\n");
    let built = std::process::Command::new("gcc")
        .args(["-static", "-o"])
        .arg(root.join("bin/probe"))
        .arg(source)
        .status();
    assert!(built.unwrap().success());
    let unit = |name: &str, keys: &str| {
        setup.unit(
            name,
            &format!(
                "[Service]\nType = \"oneshot\"\nExecStart = \"probe\"\nEnvironment = {{ PATH = \"/bin\" }}\nWorkingDirectory = \"/bin\"\n{keys}\n"
            ),
        );
    };
    unit("inside.service", &format!("RootDirectory = \"{}\"", root.display()));
    unit("outside.service", "");
    unit("nowhere.service", "RootDirectory = \"/nonexistent\"\nExecStartPre = [\"/bin/true\"]");
    let pre = format!("RootDirectory = \"{}\"\nExecStartPre = [\"/bin/true\"]", root.display());
    unit("all-inside.service", &pre);
    unit("start-inside.service", &format!("{pre}\nRootDirectoryStartOnly = true"));
    let mut manager = setup.start();
    manager.ok(&["start", "inside"]);
    assert!(
        !manager.ctl(&["start", "outside"]).status.success(),
        "the program is in the root directory alone"
    );
    assert!(
        !manager.ctl(&["start", "all-inside"]).status.success(),
        "there is no /bin/true in the root directory"
    );
    manager.ok(&["start", "start-inside"]);
    assert!(!manager.ctl(&["start", "nowhere"]).status.success());
    manager.wait_for_log("cannot take RootDirectory /nonexistent as /", "the step is not told");
}
