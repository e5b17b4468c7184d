//! Descriptors that services leave with the manager: kept over restarts, passed back, bounded, closed at a hang-up.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::{Manager, Setup};

/// What every program here begins with: `say` sends a datagram, with descriptors.
const SAY: &str = "import os, socket, sys, time\n\
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
    s.connect(os.environ['NOTIFY_SOCKET'])\n\
    def say(text, *fds):\n\
    \x20   socket.send_fds(s, [text.encode()], list(fds)) if fds else s.send(text.encode())\n\
    def barrier():\n\
    \x20   r, w = os.pipe()\n\
    \x20   say('BARRIER=1', w)\n\
    \x20   os.close(w)\n\
    \x20   return os.read(r, 1)\n";

/// A service of this program with these keys.
fn start(name: &str, keys: &str, program: &str) -> Manager {
    let setup = Setup::new(name);
    let out = setup.path("out").display().to_string();
    let text = format!("{SAY}def note(text):\n    open({out:?}, 'a').write(text + '\\n')\n{program}");
    let program = setup.file("program.py", &text);
    setup.unit(
        "keeper.service",
        &format!(
            "[Service]\nType = \"notify\"\nExecStart = [\"/usr/bin/python3\", \"{}\"]\nTimeoutStopSec = \"5s\"\n{keys}",
            program.display()
        ),
    );
    setup.start()
}

fn kill(pid: u32) {
    assert!(pid > 1, "there is no process to signal");
    let status = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

fn notes(manager: &Manager) -> Vec<String> {
    let text = fs::read_to_string(manager.path("out")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Stores a file with a text in it and a pipe at its first start, and tells at each start what it was passed.
const KEEPS: &str = "passed = int(os.environ.get('LISTEN_FDS', '0'))\n\
    mine = os.environ.get('LISTEN_PID') == str(os.getpid())\n\
    names = os.environ.get('LISTEN_FDNAMES', '')\n\
    note(f'{passed} {names} {mine and passed > 0} {os.environ[\"FDSTORE\"]}')\n\
    if passed:\n\
    \x20   note(os.pread(3, 99, 0).decode())\n\
    else:\n\
    \x20   f = os.memfd_create('state')\n\
    \x20   os.write(f, b'what it knew')\n\
    \x20   r, w = os.pipe()\n\
    \x20   say('FDSTORE=1\\nFDNAME=state', f)\n\
    \x20   say('FDSTORE=1\\nFDNAME=state', os.dup(f))\n\
    \x20   say('FDSTORE=1', r, w)\n\
    say('READY=1')\n\
    time.sleep(1000)\n";

#[test]
fn what_a_service_stores_comes_back_after_a_crash_and_a_restart_and_goes_with_a_stop() {
    let keys = "FileDescriptorStoreMax = 4\nRestart = \"always\"\nRestartSec = \"10ms\"\n";
    let mut manager = start("fds", keys, KEEPS);
    manager.ok(&["start", "keeper"]);
    assert_eq!(manager.property("keeper", "NFileDescriptorStore"), "3", "a copy is not kept a second time");
    assert_eq!(manager.property("keeper", "FileDescriptorStoreMax"), "4");
    let status = manager.ok(&["status", "keeper"]);
    assert!(status.contains("FD Store: 3 (limit: 4)"), "{status}");
    let pid = manager.main_pid("keeper");
    kill(pid);
    manager.until("it does not come back", |m| notes(m).len() == 3);
    assert_eq!(notes(&manager), ["0  False 4", "3 state:stored:stored True 4", "what it knew"]);
    manager.until_property("keeper", "ActiveState", "active");
    manager.ok(&["restart", "keeper"]);
    assert_eq!(notes(&manager)[3..], ["3 state:stored:stored True 4", "what it knew"]);
    manager.ok(&["stop", "keeper"]);
    manager.until_property("keeper", "NFileDescriptorStore", "0");
    manager.ok(&["start", "keeper"]);
    assert_eq!(notes(&manager)[5..], ["0  False 4"]);
}

#[test]
fn what_is_kept_for_ever_outlives_a_stop_and_what_is_not_does_not_outlive_a_restart() {
    for (preserve, kept, after) in [("yes", "3", "3 state:stored:stored True 4"), ("no", "0", "0  False 4")] {
        let keys = format!("FileDescriptorStoreMax = 4\nFileDescriptorStorePreserve = \"{preserve}\"\n");
        let mut manager = start(&format!("fds-{preserve}"), &keys, KEEPS);
        manager.ok(&["start", "keeper"]);
        manager.ok(&["restart", "keeper"]);
        assert_eq!(notes(&manager)[1], after, "{preserve}");
        manager.ok(&["stop", "keeper"]);
        manager.until_property("keeper", "NFileDescriptorStore", kept);
    }
}

#[test]
fn the_store_is_bounded_names_are_taken_out_and_what_hangs_up_goes() {
    let program = "r, w = os.pipe()\n\
        pairs = [os.pipe() for _ in range(3)]\n\
        say('FDSTORE=1\\nFDNAME=gone', r)\n\
        say('FDSTORE=1\\nFDNAME=deaf\\nFDPOLL=0', pairs[0][0])\n\
        say('FDSTORE=1\\nFDNAME=named', pairs[1][0])\n\
        say('FDSTORE=1\\nFDNAME=late', pairs[2][0])\n\
        barrier()\n\
        os.close(w); os.close(pairs[0][1])\n\
        say('FDSTOREREMOVE=1\\nFDNAME=named')\n\
        say('READY=1')\n\
        time.sleep(1000)\n";
    let mut manager = start("fds-bound", "FileDescriptorStoreMax = 3\n", program);
    manager.ok(&["start", "keeper"]);
    // Of the four the last one found no room, one was taken out and one hung up; the third is not watched.
    manager.until_property("keeper", "NFileDescriptorStore", "1");
    manager.wait_for_log("brought more descriptors than FileDescriptorStoreMax lets", "no word of it");
}

#[test]
fn descriptors_that_nobody_may_leave_are_closed_and_the_manager_has_no_more_than_before() {
    let program = "say('READY=1')\n\
        fds = [os.open('/dev/zero', os.O_RDONLY) for _ in range(200)]\n\
        for turn in range(50):\n\
        \x20   say('FDSTORE=1', *fds)\n\
        \x20   say('BARRIER=1', *fds[:2])\n\
        \x20   say('hostile\\0', *fds)\n\
        if os.fork() == 0:\n\
        \x20   say('FDSTORE=1', *fds[:3])\n\
        \x20   say('NOTIFYACCESS=all\\nSTATUS=not mine to say')\n\
        \x20   os._exit(0)\n\
        os.wait()\n\
        note(f'barrier {barrier()}')\n\
        time.sleep(1000)\n";
    let mut manager = start("fds-hostile", "", program);
    manager.ok(&["start", "keeper"]);
    manager.until("the barrier holds", |m| notes(m) == ["barrier b''"]);
    assert_eq!(manager.property("keeper", "NFileDescriptorStore"), "0");
    assert_eq!(manager.property("keeper", "StatusText"), "");
    let folder = format!("/proc/{}/fd", manager.pid());
    let left = fs::read_dir(folder).unwrap().filter(|entry| {
        let link = entry.as_ref().ok().and_then(|entry| fs::read_link(entry.path()).ok());
        link.is_some_and(|path| path.ends_with("dev/zero"))
    });
    assert_eq!(left.count(), 0, "of 20,000 that came");
    manager.collect();
    let told = manager.log.iter().filter(|line| line.contains("keeper.service: A notification")).count();
    assert!((1..=11).contains(&told), "{told} lines about 150 notifications");
}

#[test]
fn a_barrier_falls_once_what_was_said_before_it_holds() {
    let program = "say('READY=1')\n\
        for turn in range(20):\n\
        \x20   say(f'STATUS=turn {turn}\\nERRNO={turn}\\nBUSERROR=org.example.E{turn}')\n\
        \x20   barrier()\n\
        \x20   import subprocess\n\
        \x20   note(subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout.replace('\\n', ' ').strip())\n\
        time.sleep(1000)\n";
    let setup = Setup::new("barrier");
    let out = setup.path("out").display().to_string();
    let text = format!("{SAY}def note(text):\n    open({out:?}, 'a').write(text + '\\n')\n{program}");
    let program = setup.file("program.py", &text);
    setup.unit(
        "keeper.service",
        &format!(
            "[Service]\nType = \"notify\"\nExecStart = [\"/usr/bin/python3\", \"{}\", \"{}\", \"--runtime-dir\", \"{}\", \"show\", \"-p\", \"StatusText,StatusErrno,StatusBusError\", \"keeper\"]\n",
            program.display(),
            common::agentctl().display(),
            setup.path("run").display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "keeper"]);
    manager.until("not all was said", |m| notes(m).len() == 20);
    for (turn, note) in notes(&manager).iter().enumerate() {
        assert_eq!(
            *note,
            format!("StatusBusError=org.example.E{turn} StatusErrno={turn} StatusText=turn {turn}")
        );
    }
}

#[test]
fn a_service_says_itself_whose_word_counts() {
    let program = "def child(text):\n\
        \x20   if os.fork() == 0:\n\
        \x20       say(text)\n\
        \x20       barrier()\n\
        \x20       os._exit(0)\n\
        \x20   os.wait()\n\
        child('STATUS=too early')\n\
        say('NOTIFYACCESS=all\\nREADY=1')\n\
        child('STATUS=of the child')\n\
        note('said')\n\
        time.sleep(1000)\n";
    let mut manager = start("access", "", program);
    manager.ok(&["start", "keeper"]);
    manager.until("it says nothing", |m| notes(m) == ["said"]);
    assert_eq!(manager.property("keeper", "StatusText"), "of the child");
}
