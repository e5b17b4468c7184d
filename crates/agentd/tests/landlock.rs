//! `[Agent] Landlock`: what holds where mounts and filters of system calls do not. Each case runs with Landlock and without
//! it, within the same strict sandbox: so it is seen that nothing else held it.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use agentd_linux::landlock::version;
use common::cases::is_root;
use common::{Manager, Setup};

/// Whether the kernel holds all that is tested here. In CI it must.
fn is_held() -> bool {
    let held = version() >= 6;
    assert!(held || std::env::var_os("CI").is_none(), "Landlock has version {}", version());
    held && is_root()
}

fn run(words: &[&str]) {
    let done = Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(done.success(), "{words:?}: {done}");
}

/// A folder that is a mount whose mounts are seen by others; it goes with this.
struct Shared(String);

impl Shared {
    fn at(folder: &Path) -> Self {
        fs::create_dir_all(folder.join("late")).unwrap();
        let place = folder.display().to_string();
        run(&["mount", "--bind", &place, &place]);
        run(&["mount", "--make-shared", &place]);
        Self(place)
    }

    /// Mounts a file system that anybody may write to, with a program in it.
    fn mount_late(&self) {
        let late = format!("{}/late", self.0);
        run(&["mount", "-t", "tmpfs", "-o", "mode=1777", "none", &late]);
        run(&["cp", "/bin/true", &late]);
    }

    fn unmount_late(&self) {
        run(&["umount", "-l", &format!("{}/late", self.0)]);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _mounted = Command::new("umount").args(["-lR", &self.0]).status();
    }
}

const NAMES: [&str; 2] = ["held", "free"];

fn tidy(name: &str) {
    let _gone = fs::remove_dir_all(Path::new("/var/lib").join(name));
}

/// What a unit wrote of itself.
fn told(manager: &mut Manager, unit: &str, folder: &str) -> String {
    manager.until_property(unit, "SubState", "dead");
    fs::read_to_string(Path::new("/var/lib").join(folder).join("told")).unwrap_or_default()
}

/// What the machine mounts while a unit runs is seen by the unit too, and no flag of its own mounts is on it.
#[test]
fn a_file_system_that_is_mounted_later_is_neither_written_nor_run_from() {
    if !is_held() {
        return;
    }
    let setup = Setup::below(Path::new("/srv"), "landlock-late");
    let shared = Shared::at(&setup.path("shared"));
    let own = |name: &str| format!("agentd-landlock-{}-{name}", std::process::id());
    for name in NAMES {
        run(&["mkfifo", "-m", "666", &setup.path(name).display().to_string()]);
        let script = format!(
            "read go < {1}; (echo > {0}/late/left) 2>/dev/null && echo written; {0}/late/true 2>/dev/null && echo run; echo end",
            shared.0,
            setup.path(name).display()
        );
        setup.unit(
            &format!("{name}.service"),
            &format!(
                "[Agent]\nSandbox = \"strict\"\nLandlock = {}\n[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"{script}\"]\nStandardOutput = \"truncate:/var/lib/{1}/told\"\nStateDirectory = \"{1}\"\nNoExecPaths = \"/\"\nExecPaths = \"/usr /bin /lib -/lib64\"\n",
                name == "held",
                own(name),
            ),
        );
    }
    let mut manager = setup.start();
    for (name, seen) in [("held", "end\n"), ("free", "written\nrun\nend\n")] {
        manager.ok(&["start", name]);
        shared.mount_late();
        // Opened for both, so that it does not wait for a reader that is not there yet.
        let mut go = OpenOptions::new().read(true).write(true).open(manager.path(name)).unwrap();
        go.write_all(b"go\n").unwrap();
        assert_eq!(told(&mut manager, name, &own(name)), seen, "{name}\n{}", manager.everything());
        drop(go);
        shared.unmount_late();
    }
    assert_eq!(manager.property("held", "AgentLandlock"), "yes");
    drop(manager);
    NAMES.iter().for_each(|name| tidy(&own(name)));
}

/// A unit's other commands are not its main process, and may signal that.
#[test]
fn a_strict_unit_is_reloaded_by_a_signal_from_its_own_command() {
    if !is_held() {
        return;
    }
    let setup = Setup::below(Path::new("/srv"), "landlock-reload");
    let own = format!("agentd-landlock-{}-reload", std::process::id());
    setup.unit(
        "one.service",
        &format!(
            "[Agent]\nSandbox = \"strict\"\n[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"trap 'echo heard' HUP; echo up; while :; do sleep 1000 & wait; done\"]\nExecReload = [\"/bin/kill\", \"-HUP\", \"$MAINPID\"]\nStateDirectory = \"{own}\"\n"
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "one"]);
    let has_said = |word: &'static str| {
        move |manager: &mut Manager| {
            String::from_utf8_lossy(&manager.ctl(&["logs", "one"]).stdout).contains(word)
        }
    };
    manager.until("it is never up", has_said("up"));
    manager.ok(&["reload", "one"]);
    manager.until("the signal never comes", has_said("heard"));
    drop(manager);
    tidy(&own);
}

/// A filter of the unit's own that denies the calls of Landlock holds for its program, and comes too late for the manager,
/// which has called them by then.
#[test]
fn a_filter_without_the_calls_of_landlock_leaves_it_in_force() {
    if !is_held() {
        return;
    }
    let setup = Setup::below(Path::new("/srv"), "landlock-filter");
    let own = format!("agentd-landlock-{}-filter", std::process::id());
    // The number of landlock_create_ruleset(2), asked for the version: without a filter the answer is that.
    // 33 is no error that the call has by itself.
    let ask = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(444, None, 0, 1), ctypes.get_errno())";
    setup.unit(
        "one.service",
        &format!(
            "[Agent]\nSandbox = \"strict\"\n[Service]\nType = \"oneshot\"\nExecStart = [\"/usr/bin/python3\", \"-c\", \"{ask}\"]\nStandardOutput = \"truncate:/var/lib/{own}/told\"\nStateDirectory = \"{own}\"\nSystemCallFilter = \"~landlock_create_ruleset landlock_add_rule landlock_restrict_self\"\nSystemCallErrorNumber = \"33\"\n"
        ),
    );
    let mut manager = setup.start();
    let started = manager.ctl(&["start", "one"]);
    assert!(started.status.success(), "{}", manager.everything());
    assert_eq!(manager.property("one", "AgentLandlock"), "yes");
    assert_eq!(told(&mut manager, "one", &own), "-1 33\n", "{}", manager.everything());
    drop(manager);
    tidy(&own);
}

/// A unit without the internet is handed a listening socket of it, which it makes a connection of: no filter of system calls
/// sees what a socket is that it has not made.
#[test]
fn a_socket_that_was_handed_over_makes_no_connection() {
    if !is_held() {
        return;
    }
    let setup = Setup::below(Path::new("/srv"), "landlock-tcp");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    // An address of no family ends the listening. The service stays up, so that the socket does not start it anew.
    let connects = format!(
        "ended = ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16); answer = s.connect_ex(('127.0.0.1', {port})); print(ended, errno.errorcode.get(answer, 'connected'))"
    );
    let script = format!("import ctypes, errno, socket; s = socket.socket(fileno=3); {connects}");
    // Some kernels let such a socket connect no more, whoever asks; Landlock is asked before that.
    let plain =
        format!("import ctypes, errno, socket; s = socket.create_server(('127.0.0.1', 0)); {connects}");
    let plain = Command::new("/usr/bin/python3").args(["-c", &plain]).output().unwrap().stdout;
    let plain = String::from_utf8(plain).unwrap();
    assert!(["0 connected\n", "0 EINVAL\n"].contains(&plain.as_str()), "{plain}");
    let own = |name: &str| format!("agentd-landlock-{}-tcp-{name}", std::process::id());
    for name in NAMES {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        setup.unit(&format!("{name}.socket"), &format!("[Socket]\nListenStream = \"{free}\"\n"));
        setup.unit(
            &format!("{name}.service"),
            &format!(
                "[Agent]\nSandbox = \"strict\"\nLandlock = {}\n[Service]\nType = \"oneshot\"\nRemainAfterExit = true\nExecStart = [\"/usr/bin/python3\", \"-c\", \"{script}\"]\nStandardOutput = \"truncate:/var/lib/{1}/told\"\nStateDirectory = \"{1}\"\nRestrictAddressFamilies = \"AF_UNIX\"\n",
                name == "held",
                own(name),
            ),
        );
    }
    let mut manager = setup.start();
    for (name, seen) in [("free", plain.as_str()), ("held", "0 EACCES\n")] {
        manager.ok(&["start", &format!("{name}.socket")]);
        manager.ok(&["start", &format!("{name}.service")]);
        let told = fs::read_to_string(Path::new("/var/lib").join(own(name)).join("told")).unwrap();
        assert_eq!(told, seen, "{name}\n{}", manager.everything());
    }
    drop(manager);
    NAMES.iter().for_each(|name| tidy(&own(name)));
}
