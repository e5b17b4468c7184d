//! Secrets: readable for the unit's user alone, shown nowhere, gone with the run.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::cases::is_root;
use common::{Manager, Setup, text};

const SECRET: &str = "s3cr3t-of-the-file";
const SET: &str = "s3cr3t: of the unit";

/// What the unit's process prints about its secrets.
const LOOK: &str = r#"#!/bin/sh
cd "$CREDENTIALS_DIRECTORY" || exit 1
test "$1" = "$CREDENTIALS_DIRECTORY" || echo "$1 is no place"
stat -c '%a %u %n' . *
test "$(cat token)" = s3cr3t-of-the-file && echo token is right
test "$(cat fallback)" = 's3cr3t: of the unit' && echo fallback is right
(touch x || chmod 600 token || echo y > token) 2> /dev/null || echo read-only
exec sleep 1000
"#;

fn start(name: &str) -> Manager {
    let setup = Setup::new(name);
    let source = setup.file("token", SECRET);
    let look = setup.file("look.sh", LOOK);
    setup.unit(
        "secret.service",
        &format!(
            "[Service]\nType = \"exec\"\nUser = \"64123\"\nExecStart = [\"{}\", \"%d\"]\nLoadCredential = [\"token:{}\", \"fallback:/nonexistent\"]\nSetCredential = {{ fallback = \"{SET}\", token = \"not used\" }}\n",
            look.display(),
            source.display()
        ),
    );
    for (name, text) in [("b", "of b\n"), ("a/deep", "of a\n"), (".hidden", "no\n"), ("a/.no", "no\n")] {
        setup.file(&format!("folder/{name}"), text);
    }
    setup.file("large/a", &"x".repeat(700_000));
    setup.file("large/b", &"x".repeat(700_000));
    for folder in ["folder", "large"] {
        setup.unit(
            &format!("{folder}.service"),
            &format!(
                "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"cd %d && for f in *; do echo $$f $$(cat $$f); done\"]\nStandardOutput = \"truncate:{}\"\nLoadCredential = [\"own_b:/nonexistent\", \"own:{}\"]\nSetCredential = {{ own_b = \"kept\" }}\n",
                setup.path("out").display(),
                setup.path(folder).display()
            ),
        );
    }
    setup.unit(
        "socket.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/true\"]\nLoadCredential = \"token:{}/run/control.sock\"\n",
            setup.path("").display()
        ),
    );
    setup.unit(
        "missing.service",
        "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/true\"]\nLoadCredential = \"token:/nonexistent\"\n",
    );
    setup.start()
}

#[test]
fn secrets_are_for_the_user_alone_and_go_with_the_run() {
    if !is_root() {
        return;
    }
    let mut manager = start("secrets");
    manager.ok(&["start", "secret"]);
    manager.until("it does not look", |m| text(&m.ctl(&["logs", "secret"])).contains("read-only"));
    let logs = manager.ok(&["logs", "secret"]);
    for line in
        ["500 64123 .", "400 64123 fallback", "400 64123 token", "token is right", "fallback is right"]
    {
        assert!(logs.contains(line), "{line:?} is not in\n{logs}");
    }
    assert!(!logs.contains("is no place"), "{logs}");
    let folder = manager.path("run/credentials/secret.service");
    assert_eq!(fs::read_to_string(folder.join("token")).unwrap(), SECRET);
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(mounts().contains(&folder.display().to_string()), "they are in memory of their own");
    nowhere_to_be_seen(&mut manager);
    manager.ok(&["stop", "secret"]);
    manager.until("the secrets stay", |_| !folder.exists());
    assert!(!mounts().contains(&folder.display().to_string()));
}

/// Neither the manager's words nor the process's environment and arguments have them.
fn nowhere_to_be_seen(manager: &mut Manager) {
    let pid = manager.main_pid("secret");
    let mut seen: Vec<String> = ["environ", "cmdline"]
        .map(|file| String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap()).into_owned())
        .into();
    for args in [&["status", "secret"][..], &["show", "secret"], &["logs", "secret"], &["list", "--all"]] {
        seen.push(manager.ok(args));
    }
    manager.collect();
    seen.push(manager.log.join("\n"));
    // The unit file itself is for those who may act here.
    let cat = std::process::Command::new("setpriv")
        .args(["--reuid=64123", "--regid=64123", "--clear-groups"])
        .arg(common::agentctl())
        .arg("--runtime-dir")
        .arg(manager.path("run"))
        .args(["cat", "secret"])
        .output()
        .unwrap();
    assert!(text(&cat).contains("holds a secret"), "{}", text(&cat));
    seen.push(text(&cat));
    assert!(manager.ok(&["cat", "secret"]).contains(SET), "root reads the file");
    assert!(seen.iter().all(|text| !text.contains("s3cr3t")), "{}", seen.join("\n"));
}

#[test]
fn a_folder_is_a_secret_for_each_of_its_files() {
    if !is_root() {
        return;
    }
    let mut manager = start("secrets-folder");
    manager.ok(&["start", "folder"]);
    let seen = fs::read_to_string(manager.path("out")).unwrap();
    assert_eq!(seen, "own_a_deep of a\nown_b of b\n");
    let refused = manager.ctl(&["start", "large"]);
    assert!(text(&refused).contains("longer than a mebibyte"), "{}", text(&refused));
    let refused = manager.ctl(&["start", "socket"]);
    assert!(text(&refused).contains("neither a regular file nor a folder"), "{}", text(&refused));
}

/// The machine's stores are below /run and /etc: the manager under test has a /run of its own.
#[test]
fn all_secrets_of_a_kind_are_imported_from_the_machines_stores() {
    if !is_root() {
        return;
    }
    let fill = "mount -t tmpfs tmpfs /run && mkdir -p /run/credentials/@system /run/credstore && cd /run && \
        echo system > credentials/@system/app.one && echo store > credstore/app.one && echo two > credstore/app.two && \
        echo no > credstore/other && echo exact > credstore/exact && cd /";
    let setup = Setup::new("import-secrets").mounts(fill);
    let own = setup.file("own", "loaded\n");
    let out = setup.path("out").display().to_string();
    let unit = |name: &str, keys: &str| {
        setup.unit(
            &format!("{name}.service"),
            &format!(
                "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/sh\", \"-c\", \"cd %d && for f in *; do echo $$f $$(cat $$f); done\"]\nStandardOutput = \"truncate:{out}\"\n{keys}\n"
            ),
        );
    };
    unit(
        "import",
        &format!(
            "ImportCredential = [\"app.*\", \"exact\", \"none.*\"]\nLoadCredential = \"app.two:{}\"\nSetCredential = {{ exact = \"set\", more = \"set\" }}",
            own.display()
        ),
    );
    unit("reset", "ImportCredential = [\"app.*\"]\nSetCredential = { more = \"set\" }");
    setup.file("units/reset.service.d/x.toml", "[Service]\nImportCredential = []\n");
    unit(
        "loaded",
        "LoadCredential = [\"app.one\", \"nobody.has\", \"other\"]\nSetCredential = { more = \"set\" }",
    );
    let mut manager = setup.start();
    manager.ok(&["start", "loaded"]);
    let seen = fs::read_to_string(manager.path("out")).unwrap();
    assert_eq!(
        seen, "app.one system\nmore set\nother no\n",
        "the machine's own come first, and one may be missing"
    );
    manager.ok(&["start", "import"]);
    let seen = fs::read_to_string(manager.path("out")).unwrap();
    assert_eq!(seen, "app.one system\napp.two loaded\nexact exact\nmore set\n");
    manager.ok(&["start", "reset"]);
    assert_eq!(fs::read_to_string(manager.path("out")).unwrap(), "more set\n");
}

#[test]
fn a_secret_that_is_missing_fails_the_start_by_its_name() {
    if !is_root() {
        return;
    }
    let mut manager = start("no-secret");
    assert!(!manager.ctl(&["start", "missing"]).status.success());
    assert_eq!(manager.property("missing", "ExecMainStatus"), "243");
    manager.wait_for_log("LoadCredential=token: /nonexistent cannot be read", "the reason is not told");
    assert!(!manager.path("run/credentials/missing.service").exists());
}

#[test]
fn secrets_are_seen_within_a_root_directory() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("secrets-root");
    let root = setup.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    let code = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { char b[99] = {0}; FILE *f; if (chdir(getenv(\"CREDENTIALS_DIRECTORY\")) || !(f = fopen(\"token\", \"r\"))) return 1; fread(b, 1, 98, f); return puts(b) < 0; }\n";
    let source = setup.file("probe.c", code);
    let built = std::process::Command::new("gcc")
        .args(["-static", "-o"])
        .arg(root.join("bin/probe"))
        .arg(source)
        .status();
    assert!(built.unwrap().success());
    let output = setup.path("out");
    setup.unit(
        "rooted.service",
        &format!(
            "[Service]\nType = \"oneshot\"\nExecStart = \"/bin/probe\"\nRootDirectory = \"{}\"\nSetCredential = \"token:within\"\nStandardOutput = \"truncate:{}\"\n",
            root.display(),
            output.display()
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "rooted"]);
    assert_eq!(fs::read_to_string(manager.path("out")).unwrap(), "within\n");
}
