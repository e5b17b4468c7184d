//! How a Python agent is run: the interpreter, the kit's runner, and the verified bytes of its module.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use agentd_engine::SpawnFailure;
use agentd_unit::sections::AgentSection;
use agentd_unit::{ExecCommand, Unit};

use super::plan::{refused, resources};
use crate::world::World;

/// The interpreter where `[Agent] Python` names none.
const PYTHON: &str = "/usr/bin/python3";

/// The kit's place in an installed system.
const KIT: &str = "/usr/lib/agentd/python";

/// The kit as it was when this program was built, for systems where it is not installed.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/python_kit.rs"));

/// The command of the agent's main process.
#[must_use]
pub fn command(world: &mut World, agent: &AgentSection) -> Option<ExecCommand> {
    let python = agent.python.clone().unwrap_or_else(|| PYTHON.into()).display().to_string();
    let runner = kit(world).join("runner.py").display().to_string();
    let module = agent.module.clone()?;
    // -s: nothing from a home may run before the runner does; -u: words are written when they are said.
    Some(ExecCommand {
        argv: vec![python.clone(), "-s".into(), "-u".into(), runner, "--module".into(), module],
        program: python,
        ignore_failure: false,
        full_privileges: false,
        no_setuid: false,
        expand_environment: false,
    })
}

/// The sealed bytes of the agent's module.
///
/// # Errors
/// There is no module, or the policy refuses it.
pub fn module(world: &World, unit: &Unit, agent: &AgentSection) -> Result<OwnedFd, SpawnFailure> {
    let path = unit
        .as_service()
        .and_then(|body| Some(body.module_file(agent.module.as_deref()?)))
        .ok_or_else(|| {
            let name = agent.module.as_deref().unwrap_or_default();
            resources(format!("[Agent] Module: there is no module {name}"))
        })?;
    world.trust.admit_module(unit, &path).map(|module| module.bytes).map_err(refused)
}

/// The folder of the kit: the installed one, else a copy of our own in the runtime folder, written once.
fn kit(world: &mut World) -> PathBuf {
    if Path::new(KIT).join("runner.py").is_file() {
        return KIT.into();
    }
    let folder = world.config.folders.runtime.join("python");
    if !world.kit_written {
        match write_kit(&folder) {
            Ok(()) => world.kit_written = true,
            Err(error) => {
                tracing::error!(%error, "the kit for Python agents cannot be written to {}", folder.display());
            }
        }
    }
    folder
}

fn write_kit(folder: &Path) -> io::Result<()> {
    for (name, text) in EMBEDDED {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
