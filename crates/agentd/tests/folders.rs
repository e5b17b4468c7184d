//! The folders that a service has: made for it, and gone as its keys say.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;

use common::cases::is_root;
use common::{Setup, text};

#[test]
fn folders_are_made_for_the_user_and_go_as_they_should() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("folders");
    let name = format!("agentd-test-{}", std::process::id());
    let user = "User = \"64123\"\nGroup = \"64124\"\n";
    let stat = "stat -c '%a %u:%g %n' $RUNTIME_DIRECTORY $CACHE_DIRECTORY $LOGS_DIRECTORY $STATE_DIRECTORY $CONFIGURATION_DIRECTORY";
    let script = setup.file("stat.sh", &format!("#!/bin/sh\n{stat}\nexec sleep 1000\n"));
    let unit = |unit: &str, keys: &str| {
        setup.unit(
            &format!("{unit}.service"),
            &format!("[Service]\nType = \"exec\"\nExecStart = \"{}\"\n{keys}\n", script.display()),
        );
    };
    let keys = format!(
        "{user}RuntimeDirectory = \"{name}/run {name}-two\"\nRuntimeDirectoryMode = \"0750\"\nCacheDirectory = \"{name}\"\nCacheDirectoryMode = \"0700\"\nLogsDirectory = \"{name}\"\nStateDirectory = \"{name}\"\nStateDirectoryMode = \"0711\"\nConfigurationDirectory = \"{name}\"\n"
    );
    unit("all", &keys);
    unit("kept", &format!("RuntimeDirectory = \"{name}-kept\"\nRuntimeDirectoryPreserve = true\n"));
    unit(
        "restarted",
        &format!(
            "RuntimeDirectory = \"{name}-restarted\"\nRuntimeDirectoryPreserve = \"restart\"\nRestart = \"always\"\nRestartSec = \"10ms\"\n"
        ),
    );
    let mut manager = setup.start();
    manager.ok(&["start", "all", "kept", "restarted"]);
    let expected = [
        format!("755 64123:64124 /var/log/{name}"),
        format!("700 64123:64124 /var/cache/{name}"),
        format!("711 64123:64124 /var/lib/{name}"),
        format!("755 0:0 /etc/{name}"),
        format!("750 64123:64124 /run/{name}-two"),
    ];
    // Two folders in one variable have a colon between them, which stat takes as one name.
    manager.until("the folders are not shown", |m| {
        let logs = text(&m.ctl(&["logs", "all"]));
        expected[..4].iter().all(|line| logs.contains(line))
    });
    let meta = |path: &str| {
        fs::metadata(path).map(|meta| {
            use std::os::unix::fs::MetadataExt;
            format!("{:o} {}:{} {path}", meta.mode() & 0o7777, meta.uid(), meta.gid())
        })
    };
    assert_eq!(meta(&format!("/run/{name}-two")).unwrap(), expected[4]);
    assert!(meta(&format!("/run/{name}/run")).is_ok());
    fs::write(format!("/run/{name}-restarted/left"), "").unwrap();
    let main = manager.main_pid("restarted");
    assert!(std::process::Command::new("kill").arg(main.to_string()).status().unwrap().success());
    manager.until("it does not come back", |m| {
        !matches!(m.main_pid("restarted"), 0) && m.main_pid("restarted") != main
    });
    assert!(fs::exists(format!("/run/{name}-restarted/left")).unwrap(), "it stays over a restart");
    manager.ok(&["stop", "all", "kept", "restarted"]);
    manager.until("a folder stays after the stop", |_| {
        [format!("/run/{name}/run"), format!("/run/{name}-two"), format!("/run/{name}-restarted")]
            .iter()
            .all(|path| !fs::exists(path).unwrap())
    });
    assert!(fs::exists(format!("/run/{name}-kept")).unwrap(), "preserved");
    assert!(fs::exists(format!("/var/lib/{name}")).unwrap(), "state stays");
    for path in ["/var/log", "/var/cache", "/var/lib", "/etc", "/run"] {
        let _gone = fs::remove_dir_all(format!("{path}/{name}"));
    }
    fs::remove_dir_all(format!("/run/{name}-kept")).unwrap();
}

#[test]
fn a_folder_has_the_link_that_is_written_behind_it_and_one_of_configuration_keeps_its_mode() {
    if !is_root() {
        return;
    }
    let setup = Setup::new("folder-links");
    let name = format!("agentd-test-links-{}", std::process::id());
    let unit = |unit: &str, keys: &str| {
        setup.unit(
            &format!("{unit}.service"),
            &format!("[Service]\nExecStart = \"/bin/sleep 1000\"\n{keys}\n"),
        );
    };
    let linked = |key: &str| format!("{key} = [\"{name}/one:{name}/of/one\", \"{name}/two\"]\n");
    let keys: String = ["StateDirectory", "RuntimeDirectory"].map(linked).concat();
    unit(
        "linked",
        &format!("{keys}ConfigurationDirectory = \"{name}\"\nConfigurationDirectoryMode = \"0700\""),
    );
    unit("taken", &format!("StateDirectory = \"{name}/one:{name}/two\""));
    unit("colon", &format!("ConfigurationDirectory = \"{name}:{name}-link\""));
    fs::create_dir(format!("/etc/{name}")).unwrap();
    let mut manager = setup.start();
    for _ in 0..2 {
        manager.ok(&["start", "linked"]);
        for base in ["/var/lib", "/run"] {
            let link = fs::read_link(format!("{base}/{name}/of/one")).unwrap();
            assert_eq!(link.display().to_string(), format!("{base}/{name}/one"));
            assert!(fs::metadata(format!("{base}/{name}/two")).unwrap().is_dir());
        }
        manager.ok(&["stop", "linked"]);
        let gone = ["one", "of/one", "two"].map(|path| format!("/run/{name}/{path}"));
        manager.until("it stays after the stop", |_| {
            gone.iter().all(|path| fs::symlink_metadata(path).is_err())
        });
    }
    manager.wait_for_log("its mode is 755, and ConfigurationDirectoryMode is 700", "it is not told");
    let taken = manager.ctl(&["start", "taken"]);
    assert!(text(&taken).contains("the link /var/lib"), "{}", text(&taken));
    let colon = manager.ctl(&["start", "colon"]);
    assert!(text(&colon).contains("has a colon"), "{}", text(&colon));
    for path in ["/var/lib", "/etc", "/run"] {
        fs::remove_dir_all(format!("{path}/{name}")).unwrap();
    }
}
