//! A container made of namespaces alone, with agentd as its PID 1: what a runtime does, in seconds and without one.

use std::fs::{self, OpenOptions};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::channel::Answer;
use super::feed::Feed;
use super::{BOOT_TIMEOUT, Terminal, UP};
use crate::error::{During, Error, Result};
use crate::run::{command, output, run};
use crate::scratch::Scratch;

const MAKE: &str = include_str!("../../guest/container.sh");

/// A running container. Dropping it kills it.
pub struct Container {
    unshare: Child,
    /// Its PID 1, as we see it.
    init: u32,
    console: Feed,
    /// Its name among the host's cgroups.
    name: u32,
    _root: Scratch,
    _scratch: Scratch,
}

impl Container {
    /// Starts `/sbin/init` of a folder in namespaces of its own, and waits until it has begun to speak.
    ///
    /// # Errors
    /// We are not root, or something that it takes is forbidden here.
    pub fn start(root: Scratch, terminal: Terminal) -> Result<Self> {
        let scratch = Scratch::new("container")?;
        let make = scratch.path().join("make");
        fs::write(&make, MAKE).during(|| format!("cannot write {}", make.display()))?;
        let fifo = scratch.path().join("console");
        run(command("mkfifo", &["-m", "600"]).arg(&fifo))?;
        // Held open for writing as well, so that it does not end between two writers.
        let reader = OpenOptions::new().read(true).write(true).open(&fifo);
        let reader = reader.during(|| format!("cannot open {}", fifo.display()))?;
        let console = Feed::new("console", reader, terminal.is_shown());
        let mut unshare = command("setpriv", &["--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"]);
        unshare.args(["--pid", "--mount", "--uts", "--ipc", "--net", "--propagation", "private"]);
        let name = std::process::id();
        unshare.arg("sh").arg(&make).arg(root.path()).arg(&fifo).arg(name.to_string());
        let writer =
            || OpenOptions::new().write(true).open(&fifo).during(|| "cannot open the console".into());
        // In a container agentd speaks on standard error, which a runtime keeps.
        unshare.stdin(Stdio::null()).stdout(writer()?).stderr(writer()?);
        let mut unshare = unshare.spawn().during(|| "cannot start unshare".into())?;
        let init = console.wait(0, BOOT_TIMEOUT, "its first line", |text| (!text.is_empty()).then_some(()));
        let init = init.and_then(|()| first_child(unshare.id()));
        match init {
            Ok(init) => Ok(Self { unshare, init, console, name, _root: root, _scratch: scratch }),
            Err(error) => {
                super::end(&mut unshare);
                Err(error)
            }
        }
    }

    /// What its init writes to the console.
    #[must_use]
    pub fn console(&self) -> &Feed {
        &self.console
    }

    /// Waits until `default.target` is up.
    ///
    /// # Errors
    /// It is not within [`BOOT_TIMEOUT`].
    pub fn wait_ready(&self) -> Result<()> {
        self.console.wait_for(0, UP, BOOT_TIMEOUT).map(|_| ())
    }

    /// Runs a command in the container, as an administrator who enters it from outside.
    ///
    /// # Errors
    /// It cannot be entered.
    pub fn run(&mut self, text: &str) -> Result<Answer> {
        let mut enter = self.enter();
        let output = enter.args(["sh", "-c", &format!("exec 2>&1; {text}")]).stdin(Stdio::null()).output();
        let output = output.during(|| "cannot enter the container".into())?;
        let code = output.status.code().and_then(|code| u8::try_from(code).ok());
        let code = code.ok_or_else(|| Error::new(format!("{text:?} ended with {}", output.status)))?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok(Answer { code, text })
    }

    /// A command that enters the container; its own words follow.
    #[must_use]
    pub fn enter(&self) -> Command {
        let target = self.init.to_string();
        let mut enter = command(
            "nsenter",
            &["--target", &target, "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"],
        );
        enter.args(["env", "-i", "HOME=/root", "TERM=linux"]);
        enter.arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        enter
    }

    /// Sends a signal to its PID 1, from outside.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, name: &str) -> Result<()> {
        run(&mut command("kill", &["-s", name, &self.init.to_string()]))
    }

    /// Waits for its PID 1 to end, and tells how.
    ///
    /// # Errors
    /// It does not within `timeout`.
    pub fn ending(&mut self, timeout: Duration) -> Result<ExitStatus> {
        // The end of the process is the end of this child, which waits for it with the deadline.
        let seconds = timeout.as_secs().to_string();
        let pid = self.init.to_string();
        let waited = command("timeout", &[&seconds, "tail", "--pid", &pid, "-f", "/dev/null"]).status();
        let waited = waited.during(|| "cannot wait for the container".into())?;
        if !waited.success() {
            return Err(Error::new(format!("the container still runs after {timeout:?}")));
        }
        self.unshare.wait().during(|| "cannot wait for the container".into())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        super::end(&mut self.unshare);
        if let Err(error) = remove_cgroup(self.name) {
            eprintln!("xtask: {}", error.chain());
        }
    }
}

/// The child that unshare has made, the PID 1 of the new namespace.
fn first_child(unshare: u32) -> Result<u32> {
    let path = format!("/proc/{unshare}/task/{unshare}/children");
    let text = fs::read_to_string(&path).during(|| format!("cannot read {path}"))?;
    let child = text.split_whitespace().next().and_then(|word| word.parse().ok());
    child.ok_or_else(|| Error::new("the container ended at once; see its message above"))
}

/// The container's processes are gone, so its cgroups are empty.
fn remove_cgroup(name: u32) -> Result<()> {
    let mounts = fs::read_to_string("/proc/mounts").during(|| "cannot read /proc/mounts".into())?;
    let host = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&"cgroup2")).then(|| words[1].to_owned())
    });
    let Some(host) = host else { return Ok(()) };
    let folder = format!("{host}/agentd-container-{name}");
    if fs::metadata(&folder).is_err() {
        return Ok(());
    }
    output(&mut command("find", &[&folder, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"])).map(|_| ())
}
