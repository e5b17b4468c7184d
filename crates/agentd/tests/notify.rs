//! Who may notify, and what becomes of what is said by one who is gone before it is read.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::field::signal;
use common::{Manager, Setup};

/// A service whose helper says it all and is gone, reaped by its parent: `go` lets the helper speak, `done` says that it is
/// over.
const HELPER: &str = r#"
import os, socket, sys, time
folder, said = sys.argv[1], sys.argv[2]
open(folder + '/up', 'w').close()
while not os.path.exists(folder + '/go'):
    time.sleep(0.01)
child = os.fork()
if child == 0:
    if 'BELOW' in os.environ:
        root = next(line.split()[1] for line in open('/proc/mounts') if line.split()[2] == 'cgroup2')
        own = next(line.strip()[3:] for line in open('/proc/self/cgroup') if line.startswith('0::'))
        os.mkdir(root + own + '/below')
        with open(root + own + '/below/cgroup.procs', 'w') as procs:
            procs.write(str(os.getpid()))
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.connect(os.environ['NOTIFY_SOCKET'])
    sender.send(said.replace('+', '\n').encode())
    os._exit(0)
os.waitpid(child, 0)
open(folder + '/done', 'w').close()
time.sleep(1000)
"#;

/// Starts the service, and has its helper speak and go while the manager is stopped.
fn spoken(setup: Setup, keys: &str) -> Manager {
    let program = setup.file("helper.py", HELPER);
    let folder = setup.path("signs");
    fs::create_dir_all(&folder).unwrap();
    setup.unit(
        "brief.service",
        &format!(
            "[Service]\nType = \"notify\"\nTimeoutStartSec = \"60s\"\nExecStart = [\"/usr/bin/python3\", \"{}\", \"{}\", \"READY=1+STATUS=last words\"]\n{keys}",
            program.display(),
            folder.display()
        ),
    );
    setup.unit("default.target", "[Unit]\n");
    let mut manager = setup.start();
    manager.ok(&["--no-block", "start", "brief"]);
    manager.until("the service does not come", |_| folder.join("up").exists());
    signal("STOP", manager.pid());
    fs::write(folder.join("go"), "").unwrap();
    let ended = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !folder.join("done").exists() && std::time::Instant::now() < ended {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal("CONT", manager.pid());
    manager
}

#[test]
fn b069_what_a_helper_says_counts_though_it_is_gone_when_it_is_read() {
    counts("brief", "NotifyAccess = \"all\"\n");
}

#[test]
fn b069_the_same_from_a_cgroup_that_the_service_has_made_below_its_own() {
    if common::cases::is_root() {
        counts("below", "NotifyAccess = \"all\"\nDelegate = true\nEnvironment = { BELOW = \"1\" }\n");
    }
}

fn counts(name: &str, keys: &str) {
    let mut manager = spoken(Setup::new(name), keys);
    if manager.property("brief", "ControlGroup").is_empty() || !kernel_tells_the_cgroup_of_the_dead() {
        eprintln!("this kernel does not tell where a process lived that is reaped: what is lost is told");
        manager.wait_for_log("a notification is lost", "that something is lost is not told");
        return;
    }
    manager.until_property("brief", "ActiveState", "active");
    assert_eq!(manager.property("brief", "StatusText"), "last words");
}

#[test]
fn what_a_helper_says_that_is_gone_is_told_as_lost_where_nothing_tells_where_it_lived() {
    if !common::cases::is_root() {
        return;
    }
    let mut manager = spoken(Setup::new("bare").without_cgroups(), "NotifyAccess = \"all\"\n");
    manager.wait_for_log("a notification is lost", "that something is lost is not told");
    assert_eq!(manager.property("brief", "ActiveState"), "activating");
}

#[test]
fn b073_a_child_of_the_main_process_is_not_the_main_process() {
    let setup = Setup::new("child");
    let mut manager = spoken(setup, "NotifyAccess = \"main\"\n");
    if manager.property("brief", "ControlGroup").is_empty() || !kernel_tells_the_cgroup_of_the_dead() {
        manager.wait_for_log("a notification is lost", "that something is lost is not told");
    } else {
        manager.wait_for_log("NotifyAccess does not allow it", "the refusal is not told");
    }
    assert_eq!(manager.property("brief", "ActiveState"), "activating");
    assert_eq!(manager.property("brief", "StatusText"), "");
}

/// Linux 6.16 and later, ioctl_pidfd(2).
fn kernel_tells_the_cgroup_of_the_dead() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 16)
}
