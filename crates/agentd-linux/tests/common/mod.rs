//! What the tests of this crate share: a process of its own for each, and a probe to look at.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use agentd_linux::reap::{Exit, reap_one};
use agentd_linux::spawn::{Child, Program, SpawnPlan, Spawner, Stdio};

/// Far more than anything here takes on a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a test in a process of its own: reaping takes all children, and signals and descriptors are the process's.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    const MARK: &str = "AGENTD_LINUX_TEST_ALONE";
    if std::env::var(MARK).is_ok_and(|value| value == name) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).env(MARK, name);
    // A group of its own, so that a signal to a group of a test reaches nobody else.
    let output = command.process_group(0).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "no test has this name: {name}");
}

/// Whether the test can do its work, which needs root. In CI it must.
pub(crate) fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "this test needs root");
    root
}

pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A plan of a program with arguments.
pub(crate) fn plan<'a>(argv: &[&str]) -> SpawnPlan<'a> {
    SpawnPlan::new(Program::Path(c(argv[0])), argv.iter().map(|arg| c(arg)).collect())
}

/// A shell that runs a script.
pub(crate) fn shell<'a>(script: &str) -> SpawnPlan<'a> {
    let mut plan = plan(&["/bin/sh", "-c", script]);
    plan.envp = vec![c("PATH=/usr/sbin:/usr/bin:/sbin:/bin")];
    plan
}

/// A `cat` that has answered: past its exec, its loader and its libraries, and waiting for input.
pub(crate) struct Probe {
    pub(crate) child: Child,
    input: PipeWriter,
}

impl Probe {
    /// Runs `cat` by this plan, whose input and output are replaced, and the program too if it is by path.
    pub(crate) fn start(spawner: &mut Spawner, plan: &SpawnPlan<'_>) -> Self {
        let (stdin, mut input) = pipe().unwrap();
        let (mut output, stdout) = pipe().unwrap();
        let mut plan = plan.clone();
        if let Program::Path(path) = &mut plan.program {
            *path = c("/bin/cat");
        }
        plan.argv = vec![c("cat")];
        plan.stdio[0] = Stdio::Fd(stdin.as_fd());
        plan.stdio[1] = Stdio::Fd(stdout.as_fd());
        let child = spawner.spawn(&plan).unwrap();
        drop((stdin, stdout));
        input.write_all(b"?").unwrap();
        output.read_exact(&mut [0]).unwrap();
        Self { child, input }
    }

    /// A file of its `/proc` folder.
    pub(crate) fn proc(&self, file: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(file)).unwrap()).into_owned()
    }

    pub(crate) fn path(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.child.pid)
    }

    /// A line of its `status`, without the name and with single spaces.
    pub(crate) fn status(&self, name: &str) -> String {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Its soft and hard limit of this name.
    pub(crate) fn limits(&self, name: &str) -> (String, String) {
        let limits = self.proc("limits");
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap())
    }

    /// Its descriptors and what they are open on.
    pub(crate) fn descriptors(&self) -> BTreeMap<i32, String> {
        let entries = std::fs::read_dir(self.path("fd")).unwrap().map(Result::unwrap);
        let link = |path: std::path::PathBuf| std::fs::read_link(path).unwrap().display().to_string();
        entries.map(|e| (e.file_name().to_str().unwrap().parse().unwrap(), link(e.path()))).collect()
    }

    /// Ends its input, so that it ends.
    pub(crate) fn finish(self) {
        let pid = self.child.pid;
        drop(self.input);
        assert_eq!(wait_for(pid), Exit::Exited(0));
    }
}

/// Reaps until this process is gone. All others that go meanwhile are reaped as well.
pub(crate) fn wait_for(pid: u32) -> Exit {
    let all = reap_until(|reaped| reaped.contains_key(&pid));
    all[&pid]
}

/// Reaps until the condition holds of what was reaped.
pub(crate) fn reap_until(done: impl Fn(&BTreeMap<u32, Exit>) -> bool) -> BTreeMap<u32, Exit> {
    let start = Instant::now();
    let mut all = BTreeMap::new();
    while !done(&all) {
        assert!(start.elapsed() < DEADLINE, "not within the deadline: {all:?}");
        // The deadline is that of whoever runs the tests, if no child ever ends.
        wait_for_a_zombie();
        while let Some((reaped, ())) = reap_one(|_| ()).unwrap() {
            all.insert(reaped.pid, reaped.exit);
        }
    }
    all
}

/// Waits for the next zombie and leaves it there. waitid(2) without nix, which refuses what real-time signals have ended.
pub(crate) fn wait_for_a_zombie() {
    // SAFETY: all bytes zero is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one siginfo_t to the address of the live local.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Reads a pipe to its end.
pub(crate) fn text(mut pipe: PipeReader) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).unwrap();
    text
}

/// Spawners as of this kernel and as of one without clone3 and close_range.
pub(crate) fn spawners() -> [(&'static str, Spawner); 2] {
    let mut old = Spawner::new().unwrap().features();
    old.into_cgroup = false;
    old.close_range = false;
    [("new kernel", Spawner::new().unwrap()), ("old kernel", Spawner::new().unwrap().limited_to(old))]
}
