//! A container made of namespaces alone, with agentd as its PID 1: what a runtime does, in seconds and without one.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::channel::Answer;
use super::feed::Feed;
use super::{BOOT_TIMEOUT, COMMAND_TIMEOUT, Terminal, UP};
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
        // With both ends in one hand no open waits for the other side. It goes when the container has its own, so that
        // the console ends with the last process there.
        let both = open(&fifo, true, true)?;
        let console = Feed::new("console", open(&fifo, true, false)?, terminal.is_shown());
        let name = std::process::id();
        let mut unshare = command("setpriv", &["--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"]);
        unshare.args(["--pid", "--mount", "--uts", "--ipc", "--net", "--propagation", "private"]);
        unshare.arg("sh").arg(&make).arg(root.path()).arg(&fifo).arg(name.to_string());
        // In a container agentd speaks on standard error, which a runtime keeps.
        unshare.stdin(Stdio::null()).stdout(open(&fifo, false, true)?).stderr(open(&fifo, false, true)?);
        let mut child = unshare.spawn().during(|| "cannot start unshare".into())?;
        drop((unshare, both));
        let spoken = console.wait(0, BOOT_TIMEOUT, "its first line", |text| (!text.is_empty()).then_some(()));
        match spoken.and_then(|()| first_child(child.id())) {
            Ok(init) => Ok(Self { unshare: child, init, console, name, _root: root, _scratch: scratch }),
            Err(error) => {
                super::end(&mut child);
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
        self.console.wait_end(timeout)?;
        self.unshare.wait().during(|| "cannot wait for the container".into())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // With its PID 1 all of it ends, and then unshare does.
        if matches!(self.unshare.try_wait(), Ok(None)) {
            let ended = self.signal("KILL").and_then(|()| self.ending(COMMAND_TIMEOUT));
            if let Err(error) = ended {
                eprintln!("xtask: {}", error.chain());
                super::end(&mut self.unshare);
            }
        }
        if let Err(error) = remove_cgroup(self.name) {
            eprintln!("xtask: {}", error.chain());
        }
    }
}

fn open(fifo: &Path, read: bool, write: bool) -> Result<File> {
    let opened = OpenOptions::new().read(read).write(write).open(fifo);
    opened.during(|| format!("cannot open {}", fifo.display()))
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
