//! `analyze security`, held against `systemd-analyze security --offline=true` where that is installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::manager::{Folder, outcome};

/// Where the answers differ, as agentd does not enforce what systemd does; but for PrivateMounts never for the better.
const NOT_ENFORCED: [&str; 1] = ["PrivateMounts"];

/// Lines of `[Service]`, a unit each: every key that has a check, alone and with others.
const UNITS: &[&str] = &[
    "",
    "User=daemon",
    "User=nobody\nSupplementaryGroups=adm",
    "User=root\nNoNewPrivileges=yes",
    "DynamicUser=yes",
    "User=daemon\nAmbientCapabilities=CAP_NET_BIND_SERVICE\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE",
    "CapabilityBoundingSet=",
    "CapabilityBoundingSet=~CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_KILL CAP_MKNOD",
    "CapabilityBoundingSet=CAP_CHOWN CAP_SETUID CAP_AUDIT_WRITE CAP_SYSLOG CAP_BPF",
    "PrivateTmp=yes\nPrivateDevices=yes\nPrivateNetwork=yes",
    "ProtectSystem=full\nProtectHome=read-only",
    "ProtectSystem=strict\nProtectHome=tmpfs",
    "ProtectSystem=yes\nProtectHome=yes",
    "ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectKernelLogs=yes\nProtectControlGroups=yes",
    "ProtectClock=yes\nProtectHostname=yes",
    "ProtectProc=invisible\nProcSubset=pid",
    "ProtectProc=noaccess",
    "ProtectProc=ptraceable",
    "RestrictNamespaces=yes",
    "RestrictNamespaces=net ipc",
    "RestrictNamespaces=~user mnt",
    "RestrictRealtime=yes\nRestrictSUIDSGID=yes\nLockPersonality=yes\nMemoryDenyWriteExecute=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
    "RestrictAddressFamilies=~AF_PACKET AF_NETLINK",
    "RestrictAddressFamilies=AF_NETLINK AF_ALG",
    "RestrictAddressFamilies=~AF_INET",
    "RestrictAddressFamilies=none",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=@system-service\nSystemCallFilter=~@privileged @resources\nSystemCallArchitectures=native",
    "SystemCallFilter=~@clock @debug @module @mount @raw-io @reboot @swap @obsolete @cpu-emulation",
    "SystemCallFilter=~adjtimex",
    "PrivateUsers=yes\nPrivateMounts=yes",
    "User=daemon\nRemoveIPC=yes",
    "DevicePolicy=closed",
    "DevicePolicy=strict\nDeviceAllow=/dev/null rw",
    "DeviceAllow=char-pts rw",
    "PrivateDevices=yes\nProtectClock=yes",
    "IPAddressDeny=any",
    "IPAddressDeny=any\nIPAddressAllow=localhost",
    "IPAddressDeny=any\nIPAddressAllow=10.0.0.0/8 127.0.0.1",
    "IPAddressDeny=10.0.0.0/8",
    "IPAddressDeny=0.0.0.0/0",
    "MountFlags=slave",
    "MountFlags=private\nNoExecPaths=/tmp",
    "KeyringMode=shared",
    "KeyringMode=inherit",
    "UMask=0077\nNotifyAccess=all\nType=notify",
    "UMask=0027\nDelegate=yes",
    "UMask=0000\nRootDirectory=/srv",
];

fn agentctl(words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    outcome(command.args(["analyze", "security"]).args(words).output().expect("agentctl runs"))
}

/// What systemd-analyze says of a unit file, as JSON and in words; `None` where it is not installed.
fn systemd(file: &Path) -> Option<(String, String)> {
    let run = |more: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command
            .args(["security", "--offline=true", "--no-pager"])
            .args(more)
            .arg(file)
            .env("LC_ALL", "C.UTF-8");
        command.output().map(|output| String::from_utf8(output.stdout).expect("UTF-8 from the tool"))
    };
    match run(&["--json=short"]) {
        Ok(table) => Some((table, run(&[]).expect("it ran before"))),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "systemd-analyze must be installed here: {error}");
            None
        }
    }
}

/// Each check with its exposure; none: shut, or it does not matter.
fn checks(json: &str) -> BTreeMap<String, Option<String>> {
    let rows: Vec<Value> = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let text = |row: &Value, key: &str| row[key].as_str().map(ToOwned::to_owned);
    rows.iter().map(|row| (text(row, "json_field").expect("a name"), text(row, "exposure"))).collect()
}

/// The overall exposure in tenths, and its word.
fn overall(text: &str) -> (i32, String) {
    let line =
        text.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{text}"));
    let mut words = line.rsplit_once(": ").expect("a colon").1.split(' ');
    let number = words.next().expect("a number").replace('.', "");
    (number.parse().expect("a number"), words.next().expect("a word").to_owned())
}

/// Compares one unit file; whether both could read it.
fn compare(file: &Path, wrong: &mut Vec<String>) -> bool {
    let name = file.display();
    let Some((table, words)) = systemd(file) else { return false };
    let path = file.display().to_string();
    let (code, json, _) = agentctl(&[&path, "-o", "json"]);
    if code != 0 || table.is_empty() {
        return false;
    }
    let (theirs, mut ours) = (checks(&table), checks(&json));
    assert!(ours.remove("Landlock").is_some(), "the one check that systemd does not have");
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "the same checks");
    for (id, exposure) in &theirs {
        // Without a running manager systemd-analyze overlooks that other keys bring mounts of their own.
        let differs = NOT_ENFORCED.contains(&id.as_str()) && (ours[id].is_some() || id == "PrivateMounts");
        if &ours[id] != exposure && !differs {
            wrong.push(format!("{name}: {id}: {:?}, systemd {exposure:?}", ours[id]));
        }
    }
    let (_, text, _) = agentctl(&[&path]);
    let ((our_number, our_word), (number, word)) = (overall(&text), overall(&words));
    // Four of those that are not enforced weigh 0.2 each; so do mounts, the other way round.
    if !(-2..=9).contains(&(our_number - number)) {
        wrong.push(format!("{name}: {our_number} {our_word}, systemd {number} {word}"));
    }
    true
}

#[test]
fn exposure_is_what_systemd_analyze_says_but_for_what_agentd_does_not_enforce() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (index, lines) in UNITS.iter().enumerate() {
        let file = folder.path().join(format!("unit{index}.service"));
        fs::write(&file, format!("[Service]\nExecStart=/bin/true\n{lines}\n")).expect("a file");
        compared += u32::from(compare(&file, &mut wrong));
    }
    // The machine's own, which nobody here wrote.
    let own =
        fs::read_dir("/usr/lib/systemd/system").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_service = |path: &PathBuf| {
        path.to_string_lossy().ends_with(".service") && !path.to_string_lossy().contains('@')
    };
    let mut own: Vec<PathBuf> = own.filter(is_service).filter(|path| !path.is_symlink()).collect();
    own.sort();
    for file in own.iter().take(40) {
        compare(file, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared == 0 || compared as usize == UNITS.len(), "all of them can be read: {compared}");
}

#[test]
fn the_threshold_makes_the_exit_code() {
    let folder = Folder::new();
    let units = folder.path().join("units");
    fs::create_dir_all(&units).expect("a folder");
    let unit = |name: &str, text: &str| fs::write(units.join(name), text).expect("a file");
    unit("open.service.toml", "[Service]\nExecStart = \"/bin/true\"\n");
    unit("shut.service.toml", "[Agent]\nSandbox = \"strict\"\n[Service]\nExecStart = \"/bin/true\"\n");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
        command.args(["analyze", "security"]).args(words);
        command.env("AGENTD_UNIT_PATH", &units).env("AGENTD_UNIT_PATH_EXCLUSIVE", "1");
        outcome(command.output().expect("agentctl runs"))
    };
    let (code, all, _) = run(&[]);
    assert_eq!(code, 0, "{all}");
    assert!(all.contains("open.service") && all.contains("UNSAFE"), "{all}");
    for (words, expected) in [
        (["shut", "--threshold=30"], 0),
        (["open", "--threshold=30"], 1),
        (["open", "--threshold=100"], 0),
        (["nowhere", "--threshold=30"], 4),
    ] {
        let (code, out, err) = run(&words);
        assert_eq!(code, expected, "{words:?}: {out}{err}");
    }
    let (_, out, _) = run(&["open"]);
    assert!(out.contains("✗ User=/DynamicUser="), "{out}");
}

#[test]
fn a_program_that_is_called_like_the_unit_is_not_taken_for_its_file() {
    let folder = Folder::new();
    let units = folder.path().join("units");
    fs::create_dir(&units).expect("a folder");
    fs::write(units.join("web.service.toml"), "[Service]\nExecStart = \"/bin/true\"\n").expect("a unit");
    fs::write(folder.path().join("web"), "#!/bin/sh\n").expect("a program");
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command.args(["analyze", "security", "web"]).current_dir(folder.path());
    command.env("AGENTD_UNIT_PATH", &units).env("AGENTD_UNIT_PATH_EXCLUSIVE", "1");
    let (_, out, err) = outcome(command.output().expect("agentctl runs"));
    assert!(out.contains("Overall exposure level for web.service"), "{err}");
}
