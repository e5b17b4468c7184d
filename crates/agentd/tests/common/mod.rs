//! A real agentd in folders of its own, spoken to through the real agentctl.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of this module")]

pub mod cases;
pub mod field;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long anything that is waited for may take: far more than a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A manager under test; killed and its folder removed when dropped.
pub struct Manager {
    folder: PathBuf,
    tiers: bool,
    child: Child,
    lines: Receiver<String>,
    /// What it has logged so far.
    pub log: Vec<String>,
}

/// A folder with units for a manager that is not started yet.
pub struct Setup {
    folder: PathBuf,
    args: Vec<String>,
    wrapper: Vec<String>,
    tiers: bool,
    program: PathBuf,
}

impl Setup {
    /// An empty folder.
    pub fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// An empty folder below another one than that for temporary files, which PrivateTmp hides.
    pub fn below(base: &Path, name: &str) -> Self {
        let folder = base.join(format!("agentd-test-{}-{name}", std::process::id()));
        for part in ["units", "run", "state", "log", "keys"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        Self {
            folder,
            args: vec!["--trust".into(), "off".into()],
            wrapper: Vec::new(),
            tiers: false,
            program: env!("CARGO_BIN_EXE_agentd").into(),
        }
    }

    /// Another agentd than the one that was built.
    pub fn program(mut self, program: &Path) -> Self {
        self.program = program.to_owned();
        self
    }

    /// A user's manager with all tiers below the folder: `config/agentd/units` and `config/agentd/control`, and what
    /// the next boot would take away in `xdg/agentd`.
    pub fn tiers(mut self) -> Self {
        fs::create_dir_all(self.folder.join("home")).unwrap();
        self.tiers = true;
        self
    }

    /// Options in place of `--trust off`.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// A command that runs the manager, such as unshare.
    pub fn wrapper(mut self, words: &[&str]) -> Self {
        self.wrapper = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// The manager lives among mounts of its own, which this shell script changes before it begins.
    pub fn mounts(self, script: &str) -> Self {
        let script = format!("{script} && exec \"$@\"");
        self.wrapper(&["unshare", "--mount", "--propagation", "private", "sh", "-c", &script, "sh"])
    }

    /// The manager finds no cgroups.
    pub fn without_cgroups(self) -> Self {
        self.mounts("for tree in $(findmnt -rno TARGET -t cgroup2); do umount -l $tree || exit 1; done")
    }

    /// Where it is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file below the folder; a program if it begins with `#!`.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        write(&self.folder.join(name), text)
    }

    /// Writes a unit file.
    pub fn unit(&self, name: &str, text: &str) -> PathBuf {
        self.file(&format!("units/{name}.toml"), text)
    }

    /// Starts the manager, and waits until its first unit is up (or is not to be).
    pub fn start(self) -> Manager {
        let mut manager = self.spawn();
        manager.wait_for_log("agentd", "the manager says nothing");
        let ready = |m: &mut Manager| {
            let status = m.ctl(&["status"]);
            status.status.success() && !text(&status).contains("State: starting")
        };
        manager.until("the manager is not up", ready);
        manager
    }

    /// Starts the manager and waits for nothing.
    pub fn spawn(self) -> Manager {
        let dir = |name: &str| self.folder.join(name).display().to_string();
        let mut words = self.wrapper.clone();
        words.push(self.program.display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // Without a unit in it the folder of development would only be where edits go.
        let is_empty =
            |folder: PathBuf| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
        if !self.tiers || !is_empty(self.folder.join("units")) {
            command.args(["--unit-path", &dir("units")]);
        }
        command.args(["--runtime-dir", &dir("run"), "--state-dir", &dir("state")]);
        command.args(["--log-dir", &dir("log"), "--keys", &dir("keys")]).args(&self.args);
        if self.tiers {
            command.arg("--user").env_remove("XDG_DATA_HOME").env("HOME", dir("home"));
            command.env("XDG_CONFIG_HOME", dir("config")).env("XDG_RUNTIME_DIR", dir("xdg"));
        } else {
            command.env("AGENTD_UNIT_PATH_EXCLUSIVE", "1");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Manager { folder: self.folder, tiers: self.tiers, child, lines, log: Vec::new() }
    }
}

/// Writes a file; a program if it begins with `#!`.
pub fn write(path: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

/// Puts a copy of a program somewhere, to be executed at once. A process of its own writes it: what other tests start
/// meanwhile would have our descriptor for a moment, and nobody executes a file that is open for writing.
pub fn install(program: &Path, place: &Path) {
    assert!(Command::new("cp").arg("-p").args([program, place]).status().unwrap().success());
}

/// agentctl, which cargo puts beside agentd.
pub fn agentctl() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_agentd")).with_file_name("agentctl");
    assert!(path.exists(), "{} is not built; run 'cargo build -p agentctl' first", path.display());
    path
}

/// What a command printed, both streams.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

impl Manager {
    /// Starts a manager again in the same folders, after this one has ended.
    pub fn again(mut self) -> Manager {
        let folder = std::mem::take(&mut self.folder);
        let args = vec!["--trust".into(), "off".into()];
        let program = env!("CARGO_BIN_EXE_agentd").into();
        Setup { folder, args, wrapper: Vec::new(), tiers: self.tiers, program }.start()
    }

    /// Runs agentctl.
    pub fn ctl(&self, args: &[&str]) -> Output {
        let runtime = self.folder.join("run");
        Command::new(agentctl()).arg("--runtime-dir").arg(runtime).args(args).output().unwrap()
    }

    /// Runs agentctl, which must succeed; what it printed.
    pub fn ok(&mut self, args: &[&str]) -> String {
        let output = self.ctl(args);
        self.collect();
        assert!(output.status.success(), "agentctl {args:?}: {}\n{}", text(&output), self.log.join("\n"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// One property of a unit.
    pub fn property(&self, unit: &str, name: &str) -> String {
        let output = self.ctl(&["show", "-p", name, unit]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let value = shown.trim().strip_prefix(&format!("{name}="));
        value.unwrap_or_else(|| panic!("show -p {name} {unit}: {}", text(&output))).to_owned()
    }

    /// The main pid of a unit; 0 for none.
    pub fn main_pid(&self, unit: &str) -> u32 {
        let pid = self.property(unit, "MainPID");
        pid.parse().unwrap_or_else(|_| panic!("MainPID of {unit} is {pid:?}"))
    }

    /// Waits until a property has a value.
    pub fn until_property(&mut self, unit: &str, name: &str, value: &str) {
        self.until(&format!("{unit} never has {name}={value}"), |m| m.property(unit, name) == value);
    }

    /// Waits until something holds, looking each time the manager may have moved on; fails with the log in the end.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "{what}\n{}", self.everything());
            // A new line of the log is the event; without one we look again after a moment.
            if let Ok(line) = self.lines.recv_timeout(Duration::from_millis(50)) {
                self.log.push(line);
            }
        }
    }

    /// Waits for a line of the manager's log.
    pub fn wait_for_log(&mut self, part: &str, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.log.iter().any(|line| line.contains(part)) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.log.push(line),
                Err(_) => panic!("{what}: no line with {part:?}\n{}", self.everything()),
            }
        }
    }

    /// All that was logged so far, and how the units stand.
    pub fn everything(&mut self) -> String {
        self.collect();
        format!("{}\n{}", text(&self.ctl(&["list", "--all"])), self.log.join("\n"))
    }

    /// Takes what has been logged meanwhile.
    pub fn collect(&mut self) {
        self.log.extend(self.lines.try_iter());
    }

    /// Below the manager's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The pid of the process that was started, which is a wrapper's if there is one.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the manager to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the manager does not end\n{}", self.everything());
            if let Ok(line) = self.lines.recv_timeout(Duration::from_millis(20)) {
                self.log.push(line);
            }
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if self.folder.as_os_str().is_empty() {
            return;
        }
        if self.child.try_wait().ok().flatten().is_none() {
            let _asked = self.ctl(&["exit"]);
            let deadline = Instant::now() + Duration::from_secs(10);
            while Instant::now() < deadline && self.child.try_wait().ok().flatten().is_none() {
                let _line = self.lines.recv_timeout(Duration::from_millis(20));
            }
        }
        let _killed = self.child.kill();
        let _status = self.child.wait();
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

/// Whether a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
