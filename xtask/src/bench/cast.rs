//! The programs that are measured and those that they are measured with.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::{During, Result};
use crate::image::product::target_folder;
use crate::run::{cargo, command, root, run};
use crate::tools;

/// Where they stand.
#[derive(Debug, Clone)]
pub struct Cast {
    /// agentd as a user gets it.
    pub agentd: PathBuf,
    /// agentctl as a user gets it.
    pub agentctl: PathBuf,
    /// The trivial service: `xtask/bench/mark.c`.
    pub mark: PathBuf,
    /// Floors and loads: `xtask/bench/driver.c`.
    pub driver: PathBuf,
}

impl Cast {
    /// Builds all of them.
    ///
    /// # Errors
    /// Something does not build, or there is no C compiler and none can be installed.
    pub fn build() -> Result<Self> {
        tools::need(tools::BENCH)?;
        run(&mut cargo(&["build", "--release", "--package", "agentd", "--package", "agentctl"]))?;
        let folder = target_folder()?.join("release");
        let (agentd, agentctl) = (folder.join("agentd"), folder.join("agentctl"));
        let (mark, driver) = (compile("mark", &folder)?, compile("driver", &folder)?);
        Ok(Self { agentd, agentctl, mark, driver })
    }

    /// A verb of the driver, not started yet. Its words are to be added.
    #[must_use]
    pub fn driver(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.driver);
        command.arg(verb);
        command
    }
}

/// Compiles one of our C programs, static as agentd is.
fn compile(name: &str, folder: &Path) -> Result<PathBuf> {
    let program = folder.join(format!("bench-{name}"));
    let source = root().join("xtask/bench").join(name).with_extension("c");
    let words = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-static", "-o"];
    run(command("cc", &words).arg(&program).arg(source))?;
    Ok(program)
}

/// Starts a program that ends when its input does, or is killed with the value that this returns.
///
/// # Errors
/// It cannot be started.
pub fn spawn(command: &mut Command) -> Result<Running> {
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().during(|| format!("cannot run {}", crate::run::shown(command)))?;
    Ok(Running(child))
}

/// A program of ours that runs; killed when dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Closes its input and waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn finish(&mut self) -> Result<()> {
        drop(self.0.stdin.take());
        self.0.wait().during(|| "cannot wait for a program of the measurement".into()).map(|_| ())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
