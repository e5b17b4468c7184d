//! A manager to be measured: agentd as a subreaper in folders of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::cast::Cast;
use super::{Bench, PATIENCE, process};
use crate::error::{During, Error, Result};
use crate::scratch::Scratch;
use crate::vm::feed::Feed;

/// What all services are wanted by.
pub const ALL: &str = "bench.target";

/// A target that wants nothing.
pub const NONE: &str = "idle.target";

/// A service file; `more` are lines for its `[Service]` section.
#[must_use]
pub fn unit_text(wanted_by: &str, more: &str, words: &[&Path]) -> String {
    // Without a limit on starts, which is there to end what some measures do.
    format!(
        "[Unit]\nDescription = \"A service of the measurement\"\nStartLimitIntervalSec = 0\n\n[Service]\n\
         ExecStart = {words:?}\n{more}\n[Install]\nWantedBy = [\"{wanted_by}\"]\n"
    )
}

/// The folders and the units of a manager that is not started yet.
#[derive(Debug)]
pub struct Setup {
    scratch: Scratch,
    cast: Cast,
}

impl Setup {
    /// With no service.
    ///
    /// # Errors
    /// The folders cannot be made.
    pub fn new(cast: &Cast) -> Result<Self> {
        let setup = Self { scratch: Scratch::new("bench")?, cast: cast.clone() };
        let folder = setup.path("units");
        fs::create_dir(&folder).during(|| format!("cannot make {}", folder.display()))?;
        for target in [ALL, NONE] {
            setup.unit(target, "[Unit]\nDescription = \"Of the measurement\"\n")?;
        }
        Ok(setup)
    }

    /// With that many trivial services that mark on the FIFO, named `s0.service` and so on.
    ///
    /// # Errors
    /// The folders or the units cannot be written.
    pub fn with_services(cast: &Cast, count: usize, fifo: &Path) -> Result<Self> {
        let setup = Self::new(cast)?;
        for number in 0..count {
            setup.service(&format!("s{number}"), "", &[&cast.mark, fifo])?;
        }
        Ok(setup)
    }

    /// Adds a service that the target of all wants; `more` are lines for its `[Service]` section.
    ///
    /// # Errors
    /// The unit cannot be written.
    pub fn service(&self, name: &str, more: &str, words: &[&Path]) -> Result<()> {
        let text = unit_text(ALL, more, words);
        self.unit(&format!("{name}.service"), &text)
    }

    fn unit(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path("units").join(format!("{name}.toml"));
        fs::write(&path, text).during(|| format!("cannot write {}", path.display()))
    }

    /// Below the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Starts agentd with `unit` as its first, and tells when.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(self, unit: &str) -> Result<(Manager, Instant)> {
        self.start_below(&[], unit)
    }

    /// The same as the child of another program.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_below(self, wrapper: &[&str], unit: &str) -> Result<(Manager, Instant)> {
        let agentd = self.cast.agentd.display().to_string();
        let words = [wrapper, &[&agentd]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["--trust", "off", "--unit", unit]);
        for (flag, name) in [
            ("--unit-path", "units"),
            ("--runtime-dir", "run"),
            ("--state-dir", "state"),
            ("--log-dir", "log"),
        ] {
            command.arg(flag).arg(self.path(name));
        }
        command.env("AGENTD_UNIT_PATH_EXCLUSIVE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let mut child = command.spawn().during(|| "cannot run agentd".into())?;
        let stderr = child.stderr.take().ok_or_else(|| Error::new("agentd has no standard error"))?;
        let log = Feed::new("log of agentd", stderr, false);
        Ok((Manager { child, log, setup: self, ended: false }, begun))
    }
}

/// A manager that runs; ended when dropped.
#[derive(Debug)]
pub struct Manager {
    child: Child,
    log: Feed,
    setup: Setup,
    ended: bool,
}

impl Manager {
    /// The pid of what was started.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a target is reached.
    ///
    /// # Errors
    /// It is not.
    pub fn reached(&self, target: &str) -> Result<()> {
        self.log.wait_for(0, &format!("Reached target {target}"), PATIENCE).map(|_| ())
    }

    /// agentctl with these words, not started yet.
    #[must_use]
    pub fn ctl(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.setup.cast.agentctl);
        command.arg("--runtime-dir").arg(self.setup.path("run")).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Below the manager's folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.setup.path(name)
    }

    /// Tells, once for all measures, whether services have cgroups here.
    ///
    /// # Errors
    /// The service that has this pid is gone.
    pub fn note_cgroup(&self, bench: &mut Bench, service: u32) -> Result<()> {
        let cgroup = process::cgroup(service)?;
        bench.note(match cgroup.contains(".service") {
            true => "each service has a cgroup and a pidfd; without a controller where cgroup v1 holds them"
                .into(),
            false => "there is no writable cgroup v2 here: each service has a pidfd, and no cgroup".into(),
        });
        Ok(())
    }

    /// Asks the manager to stop everything and to end; the time from the asking to its end.
    ///
    /// # Errors
    /// It does not end well.
    pub fn end(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        crate::run::run(&mut self.ctl(&["exit"]))?;
        let status = self.child.wait().during(|| "cannot wait for agentd".into())?;
        self.ended = true;
        match status.success() {
            true => Ok(begun.elapsed()),
            false => Err(Error::new(format!("agentd ended with {status}; it said:\n{}", self.log.text()))),
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if !self.ended {
            // The services end with their parent: see xtask/bench/mark.c.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
