//! The walls of `[Service]`, tried by the processes within them. Each case runs with and without its keys.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use common::Setup;
use common::cases::{case, check_all, is_root};

const READ_ONLY: &str = "Read-only file system";
const DENIED: &str = "Operation not permitted";

/// The script goes in with its error output; TOML has it between three single quotes.
#[test]
fn what_is_covered_cannot_be_reached() {
    if !is_root() {
        return;
    }
    let name = format!("agentd-test-{}", std::process::id());
    let strict = format!("ProtectSystem = \"strict\"\nStateDirectory = \"{name}\"");
    let ours = std::fs::read_link("/proc/self/ns/ipc").unwrap().display().to_string();
    let other_ipc = format!("test \"$(readlink /proc/self/ns/ipc)\" = \"{ours}\" || echo other").leak();
    let cases = [
        case(
            "tmp",
            "PrivateTmp = true",
            "ls -A /tmp /var/tmp; touch /tmp/x && stat -c %a /tmp",
            "/tmp:\n\n/var/tmp:\n1777\n",
        ),
        case("system", "ProtectSystem = true", "touch /usr/agentd-x 2>&1; rm /usr/agentd-x", READ_ONLY),
        case("full", "ProtectSystem = \"full\"", "touch /etc/agentd-x 2>&1; rm /etc/agentd-x", READ_ONLY),
        case(
            "strict",
            &strict,
            "if touch /opt/agentd-x; then rm /opt/agentd-x; else touch $STATE_DIRECTORY/x /dev/shm/x && echo own; fi",
            "own\n",
        ),
        case(
            "strict-all",
            "ProtectSystem = \"strict\"",
            "touch /opt/agentd-x 2>&1; rm /opt/agentd-x",
            READ_ONLY,
        ),
        case(
            "device",
            "InaccessiblePaths = \"/dev/full\"",
            "dd if=/dev/full count=0 2>&1",
            "dd: failed to open '/dev/full': No such device or address\n",
        ),
        case("home", "ProtectHome = true", "ls -A /root | wc -l", "0\n"),
        case(
            "home-ro",
            "ProtectHome = \"read-only\"",
            "touch /root/.agentd-x 2>&1; rm /root/.agentd-x",
            READ_ONLY,
        ),
        case(
            "home-tmpfs",
            "ProtectHome = \"tmpfs\"\nBindReadOnlyPaths = \"/etc/passwd:/home/a/b\"",
            "ls -A /home/*; touch /home/x 2>&1",
            "b\ntouch: cannot touch '/home/x': Read-only",
        ),
        case(
            "proc",
            "ProtectProc = \"invisible\"\nUser = \"64123\"",
            "test -e /proc/1 || echo hidden",
            "hidden\n",
        ),
        case(
            "subset",
            "ProcSubset = \"pid\"\nProtectKernelTunables = true",
            "test -e /proc/meminfo || echo hidden",
            "hidden\n",
        ),
        case(
            "tunables",
            "ProtectKernelTunables = true",
            "cat /proc/sys/kernel/domainname 2>&1 > /proc/sys/kernel/domainname",
            READ_ONLY,
        ),
        case(
            "cgroups",
            "ProtectControlGroups = true",
            "mkdir /sys/fs/cgroup/unified/agentd-x /sys/fs/cgroup/agentd-x 2>&1; rmdir /sys/fs/cgroup/unified/agentd-x",
            READ_ONLY,
        ),
        case(
            "ro",
            "ReadOnlyPaths = \"/var /opt\"\nReadWritePaths = [\"/var/tmp\", \"-/nonexistent\"]",
            "touch /var/tmp/agentd-x && touch /opt/agentd-x 2>&1; rm /opt/agentd-x",
            READ_ONLY,
        ),
        case(
            "ro-own",
            &format!("ReadOnlyPaths = \"/\"\nStateDirectory = \"{name}\""),
            "if touch /opt/agentd-x; then rm /opt/agentd-x; else touch $STATE_DIRECTORY/y && echo own; fi",
            "own\n",
        ),
        case(
            "ro-own-named",
            &format!("ReadOnlyPaths = \"/var /var/lib/{name}\"\nStateDirectory = \"{name}\""),
            "test -n \"$STATE_DIRECTORY\" && touch $STATE_DIRECTORY/y 2>&1",
            READ_ONLY,
        ),
        case("ro-missing", "ReadOnlyPaths = \"/nonexistent\"", ":", "failed"),
        case(
            "inaccessible",
            "InaccessiblePaths = \"/etc/passwd -/nonexistent\"",
            "wc -c < /etc/passwd",
            "0\n",
        ),
        case(
            "temporary",
            "TemporaryFileSystem = \"/opt:ro,size=1M\"\nBindReadOnlyPaths = \"/etc/hostname:/opt/deep/name /usr:/opt/usr\"\nBindPaths = \"/opt:/opt/old\"",
            "ls /opt /opt/deep; touch /opt/x 2>&1",
            "/opt:\ndeep\nold\nusr\n\n/opt/deep:\nname\ntouch: cannot touch '/opt/x': Read-only",
        ),
        case("all", "BindReadOnlyPaths = \"/\"", ":", "BindReadOnlyPaths: / can only be another"),
        case("ipc", "PrivateIPC = true", other_ipc, "other\n"),
        case(
            "network",
            "PrivateNetwork = true",
            "wc -l < /proc/net/dev; grep -m 1 -o 127.0.0.1 /proc/net/fib_trie",
            "3\n127.0.0.1\n",
        ),
        case("hostname", "ProtectHostname = true", "hostname $(hostname) 2>&1", "must be root"),
        case(
            "modules",
            "ProtectKernelModules = true",
            "grep CapBnd /proc/self/status; python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(176, 0, 0); print(ctypes.get_errno())'",
            "\n1\n",
        ),
        case(
            "logs",
            "ProtectKernelLogs = true",
            "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.klogctl(10, 0, 0); print(\"errno\", ctypes.get_errno())'",
            "errno 1\n",
        ),
        case(
            "clock",
            "ProtectClock = true",
            "python3 -c 'import time; time.clock_settime(12345, 0)' 2>&1",
            DENIED,
        ),
        case(
            "devices",
            "PrivateDevices = true\nProtectKernelLogs = true",
            "test -e /dev/vda -o -e /dev/kmsg || echo hidden; echo x > /dev/null; head -c 2 /dev/zero | wc -c; ls /dev/fd/ > /dev/null; touch /dev/shm/x && echo ok",
            "hidden\n2\nok\n",
        ),
    ];
    check_all(Setup::new("covered"), &cases);
    let _gone = std::fs::remove_dir_all(format!("/var/lib/{name}"));
}

/// Whatever else covers a place, and whether or not it is there before.
#[test]
fn what_is_read_only_stays_so_under_another_cover() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("merged");
    for name in ["from", "place"] {
        std::fs::create_dir(setup.path(name)).unwrap();
    }
    std::fs::create_dir(setup.path("from/sub")).unwrap();
    setup.file("from/both", "of the bind");
    setup.file("place/both", "of the place");
    std::fs::copy("/bin/true", setup.path("from/true")).unwrap();
    std::fs::copy("/bin/true", setup.path("from/sub/true")).unwrap();
    let path = |name: &str| setup.path(name).display().to_string();
    let [from, place] = ["from", "place"].map(path);
    let touch = |place: &str| -> &'static str { format!("touch {place}/x 2>&1; rm -f {place}/x").leak() };
    let bind = |to: &str| format!("BindPaths = \"{from}:{to}\"");
    let both = format!("{}\nBindReadOnlyPaths = \"{from}:{place}\"", bind(&place));
    let temporary = format!("TemporaryFileSystem = \"{place}\"\nReadOnlyPaths = \"{place}\"");
    let cover = |key: &str, name: &str| format!("{}\n{key} = \"{name}\"", bind(name.trim_start_matches('-')));
    let [new, may, run, shut] = ["new", "may", "run", "shut"].map(path);
    // What only the bind has: `sub` is not to be found in the place itself.
    let inside = |key: &str| format!("{}\n{key} = \"{place}/sub\"", bind(&place));
    let of_both = format!("{}\nReadOnlyPaths = \"{place}/both\"", bind(&place));
    let writable = format!("BindReadOnlyPaths = \"{from}:{place}\"\nReadWritePaths = \"{place}/both\"");
    let nowhere = format!("{}\nReadOnlyPaths = \"{place}/none\"", bind(&place));
    let look: &'static str = format!("stat -c 'mode %a' {place}/sub").leak();
    let run_sub = format!("{place}/true && {place}/sub/true 2>&1").leak();
    let rewrite = format!("cat {place}/both; echo new > {place}/both && echo written").leak();
    let cases = [
        case("inside", &inside("ReadOnlyPaths"), touch(&format!("{place}/sub")), READ_ONLY),
        case("inside_shut", &inside("InaccessiblePaths"), look, "mode 0\n"),
        case("inside_run", &inside("NoExecPaths"), run_sub, "Permission denied"),
        case("nowhere", &nowhere, ":", "failed"),
        case("both", &of_both, format!("cat {place}/both").leak(), "of the bind"),
        case("writable", &writable, rewrite, "of the bindwritten"),
        case("bind", &cover("ReadOnlyPaths", &place), touch(&place), READ_ONLY),
        case("binds", &both, touch(&place), READ_ONLY),
        case("new", &cover("ReadOnlyPaths", &new), touch(&new), READ_ONLY),
        case("may", &cover("ReadOnlyPaths", &format!("-{may}")), touch(&may), READ_ONLY),
        case(
            "run",
            &cover("NoExecPaths", &format!("-{run}")),
            format!("{run}/true 2>&1").leak(),
            "Permission denied",
        ),
        case(
            "shut",
            &cover("InaccessiblePaths", &format!("-{shut}")),
            format!("stat -c 'mode %a' {shut}").leak(),
            "mode 0\n",
        ),
        case("tmp", "PrivateTmp = true\nReadOnlyPaths = \"/tmp\"", touch("/tmp"), READ_ONLY),
        case("temporary", &temporary, touch(&place), READ_ONLY),
        case(
            "proc",
            "ProtectProc = \"invisible\"\nReadOnlyPaths = \"/proc\"",
            "echo 0 2>&1 > /proc/self/oom_score_adj",
            READ_ONLY,
        ),
    ];
    check_all(setup, &cases);
}

/// The folder that becomes `/` is empty, or has other programs of these names.
#[test]
fn programs_come_from_what_is_bound_below_the_root() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("bound");
    for name in ["empty", "other/bin", "other/usr/bin"] {
        std::fs::create_dir_all(setup.path(name)).unwrap();
    }
    std::fs::copy("/bin/false", setup.path("other/usr/bin/sh")).unwrap();
    let keys = |root: &str, further: &str| {
        let root = setup.path(root).display().to_string();
        format!(
            "RootDirectory = \"{root}\"\nExecStartPre = [\"true\"]\nBindReadOnlyPaths = \"/usr -/lib64 /lib {further}\""
        )
    };
    let script = "test -e /etc/passwd || echo alone";
    let cases = [
        case("folders", &keys("empty", "/bin"), script, "alone\n"),
        case("file", &keys("other", "/usr/bin/dash:/bin/sh"), script, "alone\n"),
        case(
            "hidden",
            &format!("{}\nInaccessiblePaths = \"/bin\"", keys("other", "/bin")),
            ":",
            "/bin/sh cannot be executed",
        ),
    ];
    check_all(setup, &cases);
}

#[test]
fn a_file_system_in_memory_is_small_and_its_owners() {
    if !is_root() {
        return;
    }
    let script = "m=$(awk '/^MemTotal/ { print $2 }' /proc/meminfo); s=$(df -k --output=size /opt | tail -1); \
                  test $s -lt $((m / 8)) && echo $(stat -fc %T /opt) $(stat -c %a /opt) $(df --output=itotal /opt | tail -1) $((s / 1024 / 1024))";
    let cases = [
        case("default", "TemporaryFileSystem = \"/opt\"", script, "tmpfs 755 409600 "),
        case(
            "own",
            "TemporaryFileSystem = \"/opt:mode=0750,size=1M,nr_inodes=77\"",
            script,
            "tmpfs 750 77 0\n",
        ),
    ];
    check_all(Setup::new("small"), &cases);
}

/// What is bound into a place in memory, or is the unit's own, is not the memory's.
#[test]
fn what_is_in_a_read_only_place_in_memory_keeps_its_own_flags() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("in-memory");
    std::fs::create_dir_all(setup.path("upper/own")).unwrap();
    let upper = setup.path("upper").display().to_string();
    let bind = |key: &str| format!("{key} = \"{upper}/own\"");
    let temporary = format!("TemporaryFileSystem = \"{upper}:ro\"");
    let script: &'static str = format!("touch {upper}/own/x && echo own; touch {upper}/y 2>&1").leak();
    let write: &'static str = format!("touch {upper}/own/x 2>&1").leak();
    let name = format!("agentd-test-memory-{}", std::process::id());
    let dynamic =
        format!("TemporaryFileSystem = \"/var/lib:ro\"\nDynamicUser = true\nStateDirectory = \"{name}\"");
    let home = format!("ProtectHome = \"tmpfs\"\nBindPaths = \"{upper}:/home/a\"");
    let ruled = format!("{temporary}\nExecPaths = \"{upper}/own\"");
    let only = format!("own\ntouch: cannot touch '{upper}/y': {READ_ONLY}\n");
    let cases = [
        case("writable", &format!("{temporary}\n{}", bind("BindPaths")), script, &only),
        case("home", &home, "touch /home/a/x && echo written", "written\n"),
        case(
            "dynamic",
            &dynamic,
            "test -n \"$STATE_DIRECTORY\" && touch $STATE_DIRECTORY/x && echo written",
            "written\n",
        ),
        case("read-only", &format!("{temporary}\n{}", bind("BindReadOnlyPaths")), write, READ_ONLY),
        case("ruled", &ruled, write, READ_ONLY),
    ];
    check_all(setup, &cases);
    let _gone = std::fs::remove_dir_all(format!("/var/lib/{name}"));
}

#[test]
fn programs_run_only_from_where_they_may() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("no-exec");
    let copy = |name: &str| {
        let path = setup.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy("/bin/true", &path).unwrap();
    };
    copy("shut/true");
    copy("shut/open/true");
    let folder = setup.path("");
    let folder = folder.display().to_string();
    let folder = folder.trim_end_matches('/');
    let script: &'static str = Box::leak(
        format!(
            "cd {folder}/shut; ./true 2>&1; ./open/true && echo open; cp true new 2>&1 && rm new && echo kept"
        )
        .into_boxed_str(),
    );
    let all: &'static str = Box::leak(
        format!("{folder}/shut/true 2>&1; /bin/true && echo usable; head -c 1 /dev/zero | wc -c")
            .into_boxed_str(),
    );
    let denied = "Permission denied\nopen\nkept\n";
    let keys = format!("NoExecPaths = \"{folder}/shut -/nonexistent\"\nExecPaths = \"{folder}/shut/open\"");
    let all_keys = "NoExecPaths = \"/\"\nExecPaths = \"/usr /bin /lib -/lib64\"";
    let both = format!("{keys}\nReadOnlyPaths = \"{folder}\"");
    let cases = [
        case("single", &keys, script, denied),
        case("all", all_keys, all, "Permission denied\nusable\n1\n"),
        case(
            "read-only",
            &both,
            script,
            "Permission denied\nopen\ncp: cannot create regular file 'new': Read-only",
        ),
        case("missing", "NoExecPaths = \"/nonexistent\"", ":", "NoExecPaths: /nonexistent"),
    ];
    check_all(setup, &cases);
}

#[test]
fn users_and_processes_of_its_own_are_all_that_it_sees() {
    if !is_root() {
        return;
    }
    let cases = [
        case(
            "users",
            "PrivateUsers = true",
            "cat /proc/self/uid_map | tr -s ' '; stat -c %u /proc/sys; hostname agentd-x 2>&1",
            " 0 0 1\n0\nhostname: you must be root",
        ),
        case(
            "users-other",
            "PrivateUsers = true\nUser = \"64123\"\nGroup = \"64124\"\nSupplementaryGroups = \"7\"\nPrivateTmp = true",
            "tr -s ' ' < /proc/self/uid_map; tr -s ' ' < /proc/self/gid_map; id -u; id -G; cat /proc/self/setgroups; stat -c %u /var/lib/private /tmp 2>/dev/null; touch /tmp/x && stat -c %u /tmp/x",
            " 0 0 1\n 64123 64123 1\n 0 0 1\n 64124 64124 1\n64123\n64124 65534\ndeny\n",
        ),
        case(
            "users-identity",
            "PrivateUsers = \"identity\"",
            "tr -s ' ' < /proc/self/uid_map",
            " 0 0 65536\n",
        ),
        case(
            "users-limits",
            "PrivateUsers = true\nUser = \"64123\"\nLimitNOFILE = 16\nAmbientCapabilities = \"CAP_NET_RAW\"\nNice = -1",
            "ulimit -n; nice; grep CapEff /proc/self/status; wc -l < /proc/self/uid_map",
            "16\n-1\nCapEff:\t0000000000002000\n2\n",
        ),
        case(
            "pids",
            "PrivatePIDs = true",
            "echo $$; set -- /proc/[0-9]*; echo $#; sleep 0 & echo $! | wc -w; test -e /proc/meminfo && echo whole",
            "1\n1\n1\nwhole\n",
        ),
        case(
            "pids-user",
            "PrivatePIDs = true\nUser = \"64123\"\nProcSubset = \"pid\"\nPrivateUsers = true",
            "echo $$; test -e /proc/meminfo || echo part",
            "1\npart\n",
        ),
        case(
            "mounts",
            "PrivateMounts = true",
            "test $(readlink /proc/self/ns/mnt) = $(readlink /proc/$PPID/ns/mnt) || echo own",
            "own\n",
        ),
    ];
    check_all(Setup::new("own"), &cases);
}

/// As a machine has them that was booted by systemd: what is mounted in one namespace is mounted in all.
#[test]
fn mounts_travel_as_the_unit_says() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("travel").wrapper(&["unshare", "--mount", "--propagation", "shared"]);
    let of_root = "awk '$5 == \"/\" { print $7, $8 }' /proc/self/mountinfo | sed 's/:[0-9]*//g'";
    let cases = [
        case("private", "MountFlags = \"private\"", of_root, "- "),
        case("slave", "MountFlags = \"slave\"", of_root, "master -\n"),
        case("own", "PrivateMounts = true", of_root, "master -\n"),
        case("shared", "PrivateMounts = true\nMountFlags = \"shared\"", of_root, "shared master\n"),
    ];
    check_all(setup, &cases);
}

/// System V and POSIX objects of the user go with the last of its units; those of others stay.
#[test]
fn what_a_user_left_of_ipc_goes_with_the_last_of_its_units() {
    if !is_root() {
        return;
    }
    let clear = || {
        for uid in ["64997", "64998"] {
            let script = "ipcrm -a 2> /dev/null; rm -rf /dev/shm/agentd-test-*";
            let id = format!("--reuid={uid}");
            let words = [&id, "--clear-groups", "sh", "-c", script];
            assert!(std::process::Command::new("setpriv").args(words).output().is_ok());
        }
    };
    clear();
    let setup = Setup::new("ipc");
    let leave = "ipcmk -M 4096 -S 1 -Q > /dev/null; mkdir -p /dev/shm/agentd-test-$$; touch /dev/shm/agentd-test-$$/x /dev/shm/agentd-test-$$-y";
    let script = setup.file("leave.sh", &format!("#!/bin/sh\n{leave}\nexec \"$@\"\n"));
    let unit = |name: &str, kind: &str, command: &str, keys: &str| {
        let text =
            format!("[Service]\nType = \"{kind}\"\nExecStart = \"{} {command}\"\n{keys}\n", script.display());
        setup.unit(&format!("{name}.service"), &text);
    };
    unit("keeps", "oneshot", "true", "User = \"64997\"");
    unit("stays", "exec", "sleep 1000", "User = \"64998\"\nGroup = \"64996\"");
    unit("goes", "oneshot", "true", "User = \"64998\"\nGroup = \"64996\"\nRemoveIPC = true");
    let mut manager = setup.start();
    let left = |uid: &str| {
        let of_files = std::fs::read_dir("/dev/shm").unwrap().flatten().filter(|entry| {
            use std::os::unix::fs::MetadataExt;
            entry.metadata().is_ok_and(|meta| meta.uid().to_string() == uid)
        });
        let of_system_v = ["shm", "sem", "msg"].iter().flat_map(|kind| {
            let table = std::fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap();
            let column =
                table.lines().next().unwrap().split_whitespace().position(|word| word == "uid").unwrap();
            let is_own = move |line: &&str| line.split_whitespace().nth(column) == Some(uid);
            let lines: Vec<String> = table.lines().skip(1).filter(is_own).map(str::to_owned).collect();
            lines
        });
        of_files.count() + of_system_v.count()
    };
    manager.ok(&["start", "stays", "keeps"]);
    manager.until("the objects are not made", |_| left("64998") == 5);
    assert_eq!(left("64997"), 5);
    manager.ok(&["start", "goes"]);
    assert_eq!(left("64998"), 10, "another unit of the user runs");
    manager.ok(&["stop", "stays"]);
    assert_eq!((left("64998"), left("64997")), (0, 5), "the last has gone; others keep theirs");
    clear();
}

#[test]
fn what_is_filtered_cannot_be_called() {
    if !is_root() {
        return;
    }
    let cases = [
        case("namespaces", "RestrictNamespaces = true", "unshare -n true 2>&1", DENIED),
        case("kinds", "RestrictNamespaces = \"~net\"", "unshare -u true && unshare -n true 2>&1", DENIED),
        case("suid", "RestrictSUIDSGID = true", "f=$(mktemp); chmod u+s $f 2>&1; rm $f", DENIED),
        case(
            "sgid",
            "RestrictSUIDSGID = true",
            "python3 -c 'import os; os.close(os.open(\"/tmp/agentd-x\", os.O_CREAT, 0o2700)); os.unlink(\"/tmp/agentd-x\")' 2>&1",
            DENIED,
        ),
        case(
            "realtime",
            "RestrictRealtime = true",
            "chrt -f 1 true 2>&1; chrt -b 0 true && echo batch",
            "failed",
        ),
        case("personality", "LockPersonality = true", "setarch linux32 true 2>&1", DENIED),
        case(
            "write-execute",
            "MemoryDenyWriteExecute = true",
            "python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)' 2>&1",
            DENIED,
        ),
        case(
            "family",
            "RestrictAddressFamilies = \"AF_UNIX AF_INET6\"",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX); socket.socket(socket.AF_INET)' 2>&1",
            "Address family not supported",
        ),
        case(
            "families",
            "RestrictAddressFamilies = \"~AF_INET\"",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX); socket.socket(socket.AF_INET)' 2>&1",
            "Address family not supported",
        ),
        case(
            "family-none",
            "RestrictAddressFamilies = \"none\"",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX)' 2>&1",
            "Address family not supported",
        ),
        case(
            "service",
            "SystemCallFilter = \"@system-service\"\nSystemCallErrorNumber = \"EPERM\"",
            "chroot / true 2>&1",
            DENIED,
        ),
        case(
            "taken-away",
            "SystemCallFilter = [\"@system-service\", \"chroot\"]\nSystemCallErrorNumber = \"EPERM\"",
            "chroot / true && hostname $(hostname) 2>&1",
            "must be root",
        ),
        case("denied", "SystemCallFilter = [\"~chroot:ENOSPC\"]", "chroot / true 2>&1", "No space left"),
        case("killed", "SystemCallFilter = \"~chroot\"", "(chroot / true) 2>&1; echo $?", "159\n"),
        case(
            "gives-up",
            "SystemCallFilter = \"~chroot\"\nUser = \"64123\"",
            "cat /proc/self/status",
            "NoNewPrivs:\t1",
        ),
        case(
            "counted",
            "SystemCallFilter = \"~chroot\"\nLockPersonality = true",
            "cat /proc/self/status",
            "Seccomp_filters:\t2",
        ),
    ];
    check_all(Setup::new("filtered"), &cases);
}

#[test]
fn a_delegated_cgroup_belongs_to_the_user() {
    if !is_root() {
        return;
    }
    let group = "root=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts); own=$root$(sed -n 's/^0:://p' /proc/self/cgroup);";
    let script: &'static str =
        Box::leak(format!("{group} stat -c 'owner %u:%g' $own $own/cgroup.procs").into_boxed_str());
    let keys = "Delegate = true\nUser = \"64123\"\nGroup = \"64124\"";
    let seen = "owner 64123:64124\nowner 64123:64124\n";
    check_all(Setup::new("delegate"), &[case("delegate", keys, script, seen)]);
}

#[test]
fn foreign_calls_end_the_process() {
    if !is_root() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let setup = Setup::new("foreign");
    let source = setup.file(
        "foreign.c",
        "#include <unistd.h>\n#include <sys/syscall.h>\nint main(int argc, char **argv) {\n  if (argc > 1) { long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20)); }\n  else syscall(0x40000000 | 39);\n  return 0;\n}\n",
    );
    let program = setup.path("foreign");
    let built = std::process::Command::new("gcc").arg("-o").arg(&program).arg(source).status();
    assert!(built.unwrap().success());
    for (name, keys) in [("free", ""), ("native", "SystemCallArchitectures = \"native\"\n")] {
        for (kind, argument) in [("x32", ""), ("i386", ", \"i386\"")] {
            let text = format!(
                "[Service]\nType = \"oneshot\"\nExecStart = [\"{}\"{argument}]\n{keys}",
                program.display()
            );
            setup.unit(&format!("{name}-{kind}.service"), &text);
        }
    }
    let manager = setup.start();
    for kind in ["x32", "i386"] {
        assert!(manager.ctl(&["start", &format!("free-{kind}")]).status.success());
        assert!(!manager.ctl(&["start", &format!("native-{kind}")]).status.success());
        // 31 is SIGSYS.
        assert_eq!(manager.property(&format!("native-{kind}"), "ExecMainStatus"), "31");
    }
}
