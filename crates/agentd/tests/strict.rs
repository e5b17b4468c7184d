//! `[Agent] Sandbox = "strict"`: the agents that agentd brings run under it, and what it means can be seen.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::cases::is_root;
use common::{Setup, text};

/// `/tmp` is not what it was under PrivateTmp, so nothing of ours is there.
const BASE: &str = "/srv";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Two agents that work together over HTTP, one in Go and one in Python, both within all the walls.
#[test]
fn a_go_agent_and_a_python_agent_work_under_strict() {
    if !is_root() {
        return;
    }
    let setup = Setup::below(Path::new(BASE), "strict-agents");
    let own = format!("agentd-strict-{}", std::process::id());
    let library = setup.path("library");
    let agents = repository().join("rootfs/usr/lib/agents");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&library).arg("./library").current_dir(&agents);
    build
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", std::env::temp_dir().join("agentd-go-cache"));
    assert!(build.status().unwrap().success(), "go builds it");
    let module =
        setup.file("summarizer.py", &fs::read_to_string(agents.join("summarizer/summarizer.py")).unwrap());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    setup.unit(
        "library.service",
        &format!(
            "[Agent]\nKind = \"go\"\nSandbox = \"strict\"\n[Service]\nType = \"notify\"\nExecStart = [\"{}\"]\nEnvironment = {{ LIBRARY_LISTEN = \"127.0.0.1:{port}\" }}\nStateDirectory = \"{own}\"\n",
            library.display()
        ),
    );
    setup.unit(
        "summarizer.service",
        &format!(
            "[Unit]\nRequires = [\"library.service\"]\n[Agent]\nKind = \"python\"\nModule = \"{}\"\nSandbox = \"strict\"\n[Service]\nEnvironment = {{ LIBRARY_URL = \"http://127.0.0.1:{port}\", SUMMARIZER_PACE = \"0\" }}\nStateDirectory = \"{own}-s\"\n",
            module.display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "summarizer"]);
    // Each has a user of its own, and its folder belongs to it alone.
    let uid = |pid: u32| fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    let (library, summarizer) = (uid(manager.main_pid("library")), uid(manager.main_pid("summarizer")));
    assert_ne!(library, summarizer);
    let folder = fs::metadata(format!("/var/lib/{own}")).unwrap();
    assert_eq!((folder.uid(), folder.mode() & 0o7777), (library, 0o700));
    let status = fs::read_to_string(format!("/proc/{}/status", manager.main_pid("summarizer"))).unwrap();
    for line in ["CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Umask:\t0077"] {
        assert!(status.contains(line), "{line} is not in\n{status}");
    }
    // A text goes in through one agent and comes back with what the other made of it.
    let url = format!("http://127.0.0.1:{port}");
    let put = post(
        &format!("{url}/documents"),
        "The sandbox holds. Agents work in it. Nothing else gets out of it.",
    );
    let id = put.split('"').skip_while(|part| *part != "id").nth(2).unwrap_or_else(|| panic!("{put}"));
    let summary = format!("{url}/documents/{id}/summary");
    manager.until("the text is never summarized", |_| get(&summary).contains("sandbox holds"));
    manager.ok(&["stop", "library"]);
    drop(manager);
    for name in [own.clone(), format!("{own}-s")] {
        let _gone = fs::remove_dir_all(format!("/var/lib/{name}"));
    }
}

fn python(script: &str, arguments: &[&str]) -> String {
    let output = Command::new("python3").arg("-c").arg(script).args(arguments).output().unwrap();
    text(&output)
}

fn get(url: &str) -> String {
    python(
        "import sys,urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())",
        &[url],
    )
}

fn post(url: &str, body: &str) -> String {
    python(
        "import sys,urllib.request; print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], sys.argv[2].encode(), method='POST'), timeout=10).read().decode())",
        &[url, body],
    )
}

#[test]
fn show_tells_what_strict_means_for_the_unit() {
    let setup = Setup::new("strict-show");
    setup.unit(
        "a.service",
        "[Agent]\nSandbox = \"strict\"\n[Service]\nExecStart = \"/bin/true\"\nProtectHome = \"tmpfs\"\n",
    );
    setup.unit("b.service", "[Service]\nExecStart = \"/bin/true\"\n");
    let manager = setup.start();
    for (key, strict, without) in [
        ("ProtectSystem", "strict", "no"),
        ("ProtectHome", "tmpfs", "no"),
        ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6", ""),
        ("CapabilityBoundingSet", "", ""),
        ("StateDirectory", "a", ""),
        ("DynamicUser", "yes", "no"),
    ] {
        assert_eq!(manager.property("a", key), strict, "{key}");
        if key != "CapabilityBoundingSet" {
            assert_eq!(manager.property("b", key), without, "{key}");
        }
    }
    assert!(manager.property("b", "CapabilityBoundingSet").contains("cap_sys_admin"));
}

/// A folder keeps its files over a change of the number, and nobody who is not the unit gets at them.
#[test]
fn a_dynamic_users_folders_follow_it() {
    if !is_root() {
        return;
    }
    let setup = Setup::below(Path::new(BASE), "dynamic");
    let own = format!("agentd-dynamic-{}", std::process::id());
    let folder = Path::new("/var/lib").join(&own);
    fs::create_dir_all(folder.join("below")).unwrap();
    fs::write(folder.join("below/kept"), "kept\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    let script = setup.file(
        "script",
        "#!/bin/sh\ncat $STATE_DIRECTORY/below/kept && echo more >> $STATE_DIRECTORY/below/kept && id -u && echo $USER\n",
    );
    setup.unit(
        "dynamic.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = \"{}\"\nDynamicUser = true\nStateDirectory = \"{own}\"\nStandardOutput = \"truncate:{}\"\n",
            script.display(),
            setup.path("out").display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "dynamic"]);
    let out = fs::read_to_string(manager.path("out")).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    let uid: u32 = lines[1].parse().unwrap();
    assert!((61_184..=65_519).contains(&uid), "{out}");
    assert_eq!((lines[0], lines[2]), ("kept", "dynamic"));
    assert_eq!(fs::metadata(folder.join("below/kept")).unwrap().uid(), uid);
    assert_eq!(fs::symlink_metadata(folder.join("link")).unwrap().uid(), uid);
    assert_eq!(fs::metadata("/etc/passwd").unwrap().uid(), 0);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
    drop(manager);
    fs::remove_dir_all(folder).unwrap();
}
