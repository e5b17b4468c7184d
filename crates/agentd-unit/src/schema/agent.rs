//! `[Agent]`: what systemd lacks.

use super::slot::{names, put};
use super::{Setting, Slot};
use crate::sections::{AgentKind, AgentSandbox, ControlAccess};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "Kind",
        Slot::Choice(names::<AgentKind>, |d, word| put(&mut d.agent.kind, word)),
        "What the agent is made of: a program (exec, go) or a Python module (python).",
    ),
    Setting::new("Module", Slot::Module, "The Python module: an absolute .py file, or a dotted name."),
    Setting::new("Python", Slot::Path(|d| &mut d.agent.python), "The interpreter; default /usr/bin/python3."),
    Setting::new("Pin", Slot::Paths(|d| &mut d.agent.pin), "Further files that the signature covers."),
    Setting::new(
        "ControlAccess",
        Slot::Choice(names::<ControlAccess>, |d, word| put(&mut d.agent.control_access, word)),
        "What the agent's processes may ask of the manager: none, self (default) or all.",
    ),
    Setting::new(
        "Sandbox",
        Slot::Choice(names::<AgentSandbox>, |d, word| put(&mut d.agent.sandbox, word)),
        "strict: all keys of docs/sandbox.md that the unit does not set itself; default none.",
    ),
    Setting::new(
        "Landlock",
        Slot::MaybeBool(|d| &mut d.agent.landlock),
        "The kernel asks Landlock too where ProtectSystem=strict, NoExecPaths=/ and RestrictAddressFamilies have shut the rest, \
         and lets it reach its own signals and abstract sockets alone; default yes where Sandbox is strict.",
    ),
];
