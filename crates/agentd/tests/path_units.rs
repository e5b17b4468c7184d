//! Path units: what comes to be, fills or changes starts their unit, heard from the kernel and never by looking.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Manager, Setup};

/// A manager with `job.path` and a service that notes that it ran and then runs `command`.
fn job(name: &str, path: impl Fn(&Path) -> String, command: impl Fn(&Path) -> String) -> Manager {
    job_with(name, "", path, command)
}

/// The same, with this in the service's file too.
fn job_with(
    name: &str,
    more: &str,
    path: impl Fn(&Path) -> String,
    command: impl Fn(&Path) -> String,
) -> Manager {
    let setup = Setup::new(name);
    let folder = setup.path("watched");
    let program = setup.file(
        "job",
        &format!(
            "#!/bin/sh\necho \"$TRIGGER_UNIT\" >> {}\n{}\n",
            setup.path("ran").display(),
            command(&folder)
        ),
    );
    setup.unit("job.service", &format!("{more}[Service]\nType = \"oneshot\"\nExecStart = [{program:?}]\n"));
    setup.unit("job.path", &format!("[Path]\n{}\n", path(&folder)));
    let mut manager = setup.start();
    manager.ok(&["start", "job.path"]);
    manager
}

/// How often the job ran.
fn runs(manager: &Manager) -> usize {
    fs::read_to_string(manager.path("ran"))
        .unwrap_or_default()
        .lines()
        .filter(|line| *line == "job.path")
        .count()
}

#[test]
fn a_path_that_comes_to_be_starts_the_unit_wherever_its_folders_are() {
    let mut manager = job(
        "exists",
        |folder| format!("PathExists = {:?}", folder.join("deep/file")),
        |folder| format!("rm {}", folder.join("deep/file").display()),
    );
    assert_eq!(manager.property("job.path", "SubState"), "waiting");
    let file = manager.path("watched/deep/file");
    for expected in 1..=3 {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        manager.until("the job does not run", |m| runs(m) == expected);
        manager.until_property("job.path", "SubState", "waiting");
        if expected == 2 {
            fs::remove_dir_all(manager.path("watched")).unwrap(); // The folders go, and are waited for anew.
        }
    }
    assert_eq!(runs(&manager), 3, "it runs once for each file");
}

#[test]
fn what_is_there_already_starts_the_unit_at_once() {
    let setup = Setup::new("at-once");
    let (there, ran) = (setup.file("there", ""), setup.path("ran"));
    let program =
        setup.file("job", &format!("#!/bin/sh\necho x > {}\nrm {}\n", ran.display(), there.display()));
    setup.unit("job.service", &format!("[Service]\nType = \"oneshot\"\nExecStart = [{program:?}]\n"));
    setup.unit("job.path", &format!("[Path]\nPathExistsGlob = {:?}\n", setup.path("th*e")));
    let mut manager = setup.start();
    manager.ok(&["start", "job.path"]);
    manager.until("the job does not run", |_| ran.exists());
    manager.until_property("job.path", "SubState", "waiting");
    fs::remove_file(&ran).unwrap();
    fs::write(&there, "").unwrap();
    manager.until("the job does not run again", |_| ran.exists());
}

#[test]
fn a_folder_that_is_made_and_fills_is_emptied_by_the_unit() {
    let mut manager = job(
        "fills",
        |folder| format!("DirectoryNotEmpty = {folder:?}\nMakeDirectory = true\nDirectoryMode = \"0750\""),
        |folder| format!("rm -f {}/*", folder.display()),
    );
    let folder = manager.path("watched");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o750);
    for number in 0..5 {
        fs::write(folder.join(number.to_string()), "").unwrap();
        manager.until("the folder is not emptied", |_| fs::read_dir(&folder).unwrap().next().is_none());
    }
    assert!(runs(&manager) >= 1);
    manager.until_property("job.path", "SubState", "waiting");
}

#[test]
fn a_file_that_is_written_and_closed_has_changed() {
    let mut manager =
        job("changed", |folder| format!("PathChanged = {:?}", folder.join("file")), |_| String::new());
    let file = manager.path("watched/file");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "1").unwrap();
    manager.until("its coming is no change", |m| runs(m) >= 1);
    manager.until_property("job.path", "SubState", "waiting");
    let before = runs(&manager);
    fs::write(&file, "2").unwrap();
    manager.until("its writing is no change", |m| runs(m) > before);
    manager.until_property("job.path", "SubState", "waiting");
    let before = runs(&manager);
    fs::remove_file(&file).unwrap();
    manager.until("its going is no change", |m| runs(m) > before);
}

#[test]
fn a_unit_that_leaves_everything_as_it_is_is_given_up() {
    let setup = Setup::new("storm");
    let there = setup.file("there", "");
    setup.unit("job.service", "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/true\"]\n");
    setup.unit("job.path", &format!("[Path]\nPathExists = {there:?}\n"));
    setup.unit("few.service", "[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/true\"]\n");
    setup.unit("few.path", &format!("[Path]\nPathExists = {there:?}\nTriggerLimitBurst = 2\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "job.path", "few.path"]);
    manager.until_property("job.path", "Result", "unit-start-limit-hit");
    manager.until_property("few.path", "Result", "trigger-limit-hit");
    manager.ok(&["stop", "job.path"]);
    assert_eq!(manager.property("job.service", "Result"), "start-limit-hit");
}

#[test]
fn a_service_can_bring_its_own_path_unit() {
    let setup = Setup::new("own-path");
    let there = setup.path("there");
    setup.unit(
        "own.service",
        &format!("[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/rm\", {there:?}]\n\n[Path]\nPathExists = {there:?}\n\n[Install]\nWantedBy = [\"default.target\"]\n"),
    );
    let mut manager = setup.start();
    manager.until_property("own.path", "SubState", "waiting");
    fs::write(&there, "").unwrap();
    manager.until("the service does not run", |_| !there.exists());
}

#[test]
fn a_file_that_is_written_and_still_open_is_modified_and_has_not_changed() {
    let setup = Setup::new("modified");
    let file = setup.file("file", "");
    for (unit, key) in [("modified", "PathModified"), ("changed", "PathChanged")] {
        let out = setup.path(unit);
        let text = format!("[Service]\nType = \"oneshot\"\nExecStart = [\"/bin/cp\", {file:?}, {out:?}]\n");
        setup.unit(&format!("copy-{unit}.service"), &text);
        setup.unit(
            &format!("{unit}.path"),
            &format!("[Path]\n{key} = {file:?}\nUnit = \"copy-{unit}.service\"\n"),
        );
    }
    let mut manager = setup.start();
    manager.ok(&["start", "modified.path", "changed.path"]);
    use std::io::Write;
    let mut writer = fs::OpenOptions::new().append(true).open(&file).unwrap();
    writer.write_all(b"x").unwrap();
    let copy = |name: &str| fs::read_to_string(manager_path(&file, name)).unwrap_or_default();
    manager.until("its writing is lost", |_| copy("modified") == "x");
    assert!(!manager_path(&file, "changed").exists(), "it is still open");
    drop(writer);
    manager.until("its end is lost", |_| copy("changed") == "x");
}

fn manager_path(file: &Path, name: &str) -> std::path::PathBuf {
    file.with_file_name(name)
}

#[test]
fn what_a_path_unit_may_start_is_counted_over_the_time_that_it_says() {
    let mut manager = job(
        "interval",
        |folder| {
            let there = folder.join("there");
            format!("PathExists = {there:?}\nTriggerLimitBurst = 2\nTriggerLimitIntervalSec = \"1h\"")
        },
        |folder| format!("rm {}", folder.join("there").display()),
    );
    let there = manager.path("watched/there");
    fs::create_dir_all(manager.path("watched")).unwrap();
    for expected in 1..=2 {
        fs::write(&there, "").unwrap();
        manager.until("the job does not run", |m| runs(m) == expected);
        manager.until_property("job.path", "SubState", "waiting");
    }
    fs::write(&there, "").unwrap();
    manager.until_property("job.path", "Result", "trigger-limit-hit");
}

#[test]
fn a_link_that_is_swapped_means_another_file_and_one_that_dangles_is_waited_for() {
    let swap = |manager: &Manager, target: &str| {
        let new = manager.path("watched/new");
        std::os::unix::fs::symlink(target, &new).unwrap();
        fs::rename(&new, manager.path("watched/current")).unwrap();
    };
    let path = |folder: &Path| format!("PathChanged = {:?}", folder.join("current/file"));
    let mut manager = job_with("links", "[Unit]\nStartLimitBurst = 0\n", path, |_| String::new());
    for version in ["one", "two"] {
        fs::create_dir_all(manager.path("watched").join(version)).unwrap();
        fs::write(manager.path("watched").join(version).join("file"), version).unwrap();
    }
    let mut seen = 0;
    for target in ["one", "two", "three", "one"] {
        swap(&manager, target);
        manager.until("a swapped link is no change", |m| runs(m) > seen);
        manager.until_property("job.path", "SubState", "waiting");
        seen = runs(&manager);
    }
    fs::write(manager.path("watched/one/file"), "again").unwrap();
    manager.until("it is deaf behind a swap", |m| runs(m) > seen);
    manager.until_property("job.path", "SubState", "waiting");
    seen = runs(&manager);
    fs::remove_file(manager.path("watched/current")).unwrap();
    manager.until("the end of a link is no change", |m| runs(m) > seen);
}

#[test]
fn a_re_execution_begins_though_a_path_starts_its_unit_all_the_time_which_goes_on_behind_it() {
    let path = |folder: &Path| format!("PathExists = {:?}\nTriggerLimitBurst = 0", folder.parent().unwrap());
    let mut manager = job_with("hot", "[Unit]\nStartLimitBurst = 0\n", path, |_| "sleep 0.01".to_owned());
    for _ in 0..3 {
        let seen = runs(&manager);
        manager.until("the job does not run", |m| runs(m) > seen + 2);
        manager.ok(&["daemon-reexec"]);
    }
    let seen = runs(&manager);
    manager.until("the job does not run under the next manager", |m| runs(m) > seen + 2);
}

#[test]
fn what_happens_at_a_path_while_a_re_execution_waits_is_heard_by_the_next_manager() {
    let setup = Setup::new("path-held");
    let (gate, ran, file) = (setup.path("gate"), setup.path("ran"), setup.file("file", ""));
    let slow =
        setup.file("slow", &format!("#!/bin/sh\nwhile ! [ -e {} ]; do sleep 0.02; done\n", gate.display()));
    let program = setup.file("job", &format!("#!/bin/sh\necho x >> {}\n", ran.display()));
    setup.unit("slow.service", &format!("[Service]\nType = \"oneshot\"\nExecStart = [{slow:?}]\n"));
    setup.unit("job.service", &format!("[Service]\nType = \"oneshot\"\nExecStart = [{program:?}]\n"));
    setup.unit("job.path", &format!("[Path]\nPathChanged = {file:?}\n"));
    let mut manager = setup.start();
    manager.ok(&["start", "job.path"]);
    manager.ok(&["start", "--no-block", "slow.service"]);
    let mut asked = Command::new(common::agentctl())
        .args(["--runtime-dir".into(), manager.path("run"), "daemon-reexec".into()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(asked.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("slow.service"), "{said}");
    fs::write(&file, "x").unwrap();
    fs::write(&gate, "").unwrap();
    assert!(asked.wait().unwrap().success());
    manager.until("nobody has heard of it", |_| ran.exists());
}

#[test]
fn a_run_is_told_what_it_is_for_also_its_last_command_under_the_next_manager() {
    let setup = Setup::new("trigger");
    let (said, file) = (setup.path("said"), setup.path("watched"));
    let program = setup.file(
        "tell",
        &format!(
            "#!/bin/sh\nenv | grep ^TRIGGER_ | sort > {0}/$1.new\nmv {0}/$1.new {0}/$1\n",
            said.display()
        ),
    );
    fs::create_dir(&said).unwrap();
    setup.unit(
        "by-path.service",
        &format!("[Service]\nType = \"oneshot\"\nRemainAfterExit = true\nExecStart = [{program:?}, \"path\"]\nExecStop = [{program:?}, \"stop\"]\n"),
    );
    setup.unit("by-path.path", &format!("[Path]\nPathExists = {file:?}\n"));
    setup.unit(
        "by-timer.service",
        &format!("[Service]\nType = \"oneshot\"\nExecStart = [{program:?}, \"timer\"]\n"),
    );
    setup.unit("by-timer.timer", "[Timer]\nOnActiveSec = \"10ms\"\nAccuracySec = \"1us\"\n");
    let mut manager = setup.start();
    let before = std::time::SystemTime::now();
    manager.ok(&["start", "by-path.path", "by-timer.timer"]);
    fs::write(&file, "").unwrap();
    let told = |manager: &mut Manager, name: &str| {
        manager.until("nothing is told", |_| said.join(name).exists());
        fs::read_to_string(said.join(name)).unwrap()
    };
    let path = format!("TRIGGER_PATH={}\nTRIGGER_UNIT=by-path.path\n", file.display());
    assert_eq!(told(&mut manager, "path"), path);
    let timer = told(&mut manager, "timer");
    let [monotonic, realtime, unit] = timer.lines().collect::<Vec<_>>()[..] else { panic!("{timer}") };
    assert_eq!(unit, "TRIGGER_UNIT=by-timer.timer");
    let number = |line: &str, name: &str| line.strip_prefix(name).unwrap().parse::<u64>().unwrap();
    assert!(number(monotonic, "TRIGGER_TIMER_MONOTONIC_USEC=") > 0);
    let at = std::time::UNIX_EPOCH
        + std::time::Duration::from_micros(number(realtime, "TRIGGER_TIMER_REALTIME_USEC="));
    assert!(before < at && at < std::time::SystemTime::now(), "{realtime}");
    manager.until_property("by-path.service", "SubState", "exited");
    manager.ok(&["daemon-reexec"]);
    manager.ok(&["stop", "by-path.path", "by-path.service"]);
    assert_eq!(told(&mut manager, "stop"), path);
}
