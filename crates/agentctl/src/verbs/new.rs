//! `new`: a unit and a working agent, to begin from.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use agentd_unit::UnitName;

use super::schema;
use crate::args::definitions::{Kind, New};
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::place::{self, Place};
use crate::print::json;

/// Where the kit for Go is installed.
const GO_KIT: &str = "/usr/lib/agentd/go";

/// `agentctl new NAME`.
pub(crate) fn new(context: &Context, new: &New, out: &mut impl Write) -> Outcome {
    let unit =
        UnitName::parse(&format!("{}.service", new.name)).ok().filter(|unit| unit.template().is_none());
    let unit = unit.ok_or_else(|| {
        Failure::Usage(format!("'{}' is no name for an agent; write letters, digits and dashes", new.name))
    })?;
    let place = Place::find(context)?;
    let units = match &new.units {
        Some(folder) => absolute(folder)?,
        None => place.units(false)?.to_owned(),
    };
    let folder = match &new.agents {
        Some(folder) => absolute(folder)?.join(&new.name),
        None => agents(&units).join(&new.name),
    };
    let file = units.join(format!("{unit}.toml"));
    for path in [&file, &folder] {
        if path.symlink_metadata().is_ok() {
            let error = io::ErrorKind::AlreadyExists.into();
            return Err(place::failed(
                path,
                "is not written over; remove it, or choose another name",
                &error,
            ));
        }
    }
    let kit = new.kit.clone().unwrap_or_else(|| PathBuf::from(GO_KIT));
    let start = match (new.timer, new.socket) {
        (true, _) => StartedBy::Clock,
        (_, true) => StartedBy::Socket,
        (false, false) => StartedBy::Boot,
    };
    let agent = Agent { name: &new.name, folder: &folder, start, kit: &kit };
    let written = agent.write(new.kind)?;
    let text = agent.unit(new.kind);
    place::create(&file, &text, 0o644)?;
    let mut paths: Vec<String> = vec![file.display().to_string()];
    paths.extend(written.iter().map(|path| path.display().to_string()));
    if context.is_json() {
        json(&paths, out)?;
        return Ok(Exit::Done);
    }
    if !context.quiet {
        paths.iter().try_for_each(|path| writeln!(out, "Wrote {path}."))?;
        if place.enforces {
            writeln!(out, "Sign it: agentctl sign --key FILE {}", file.display())?;
        }
        writeln!(out, "Start it: agentctl apply")?;
    }
    Ok(Exit::Done)
}

fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(folder).map_err(|error| place::failed(folder, "has no absolute path", &error))
}

/// Programs of the machine lie in /opt; those of a user beside the units.
fn agents(units: &Path) -> PathBuf {
    match units.parent() {
        Some(parent) if parent != Path::new("/etc/agentd") => parent.join("agents"),
        _ => PathBuf::from("/opt/agents"),
    }
}

/// What starts the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartedBy {
    Boot,
    /// It ends when its work is done.
    Clock,
    /// It answers whoever connects.
    Socket,
}

/// The agent that is to be written.
struct Agent<'a> {
    name: &'a str,
    folder: &'a Path,
    start: StartedBy,
    kit: &'a Path,
}

impl Agent<'_> {
    /// The text for what starts it: boot, clock or socket.
    fn choose(&self, [boot, clock, socket]: [&'static str; 3]) -> &'static str {
        match self.start {
            StartedBy::Boot => boot,
            StartedBy::Clock => clock,
            StartedBy::Socket => socket,
        }
    }

    /// Writes the program; the files.
    fn write(&self, kind: Kind) -> Result<Vec<PathBuf>, Failure> {
        match kind {
            Kind::Python => {
                let path = self.program(kind);
                let text = self.choose([PYTHON, PYTHON_TIMER, PYTHON_SOCKET]);
                place::create(&path, &text.replace("NAME", self.name), 0o644)?;
                Ok(vec![path])
            }
            Kind::Exec => {
                let path = self.program(kind);
                let text = self.choose([SHELL, SHELL_TIMER, EXEC_SOCKET]);
                place::create(&path, &text.replace("NAME", self.name), 0o755)?;
                Ok(vec![path])
            }
            Kind::Go => self.write_go(),
        }
    }

    /// Writes the sources and builds them: what the unit names must be there.
    fn write_go(&self) -> Result<Vec<PathBuf>, Failure> {
        if !self.kit.join("go.mod").exists() {
            let message =
                format!("the kit for Go is not in {}; name its folder with --kit DIR", self.kit.display());
            return Err(Failure::Other { exit: Exit::Failed, message });
        }
        let (main, module) = (self.folder.join("main.go"), self.folder.join("go.mod"));
        let text = self.choose([GO, GO_TIMER, GO_SOCKET]);
        place::create(&main, &text.replace("NAME", self.name), 0o644)?;
        let text = GO_MODULE.replace("NAME", self.name).replace("KIT", &self.kit.display().to_string());
        place::create(&module, &text, 0o644)?;
        let program = self.program(Kind::Go);
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(&program).arg(".").current_dir(self.folder).env("CGO_ENABLED", "0");
        let built = build.status();
        if built.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Ok(vec![main, module, program]);
        }
        let why = built.map_or_else(|error| error.to_string(), |status| format!("it ended with {status}"));
        // Half an agent would be in the way of the next try.
        let _left = fs::remove_dir_all(self.folder);
        let message =
            format!("'go build' in {} failed: {why}; install Go 1.19 or newer", self.folder.display());
        Err(Failure::Other { exit: Exit::Failed, message })
    }

    /// What the unit runs.
    fn program(&self, kind: Kind) -> PathBuf {
        match kind {
            Kind::Python => self.folder.join(format!("{}.py", self.name.replace('-', "_"))),
            Kind::Go | Kind::Exec => self.folder.join(self.name),
        }
    }

    fn unit(&self, kind: Kind) -> String {
        let (schema, name) = (schema::INSTALLED, self.name);
        let program = self.program(kind).display().to_string();
        let (agent, exec) = match kind {
            Kind::Python => (format!("Kind = \"python\"\nModule = {program:?}\n"), String::new()),
            Kind::Go => ("Kind = \"go\"\n".to_owned(), format!("ExecStart = [{program:?}]\n")),
            Kind::Exec => ("Kind = \"exec\"\n".to_owned(), format!("ExecStart = [{program:?}]\n")),
        };
        let service = if self.start == StartedBy::Clock {
            "Type = \"oneshot\"\n"
        } else if kind == Kind::Exec || self.start == StartedBy::Socket {
            "Restart = \"on-failure\"\n"
        } else {
            "Restart = \"on-failure\"\nWatchdogSec = \"10s\"\n"
        };
        let socket = format!("\n[Socket]\nListenStream = \"%t/{name}.sock\"\n");
        let (starter, target) = match self.start {
            StartedBy::Boot => ("", "multi-user.target"),
            StartedBy::Clock => ("\n[Timer]\nOnCalendar = \"minutely\"\n", "timers.target"),
            StartedBy::Socket => (socket.as_str(), "sockets.target"),
        };
        format!(
            "#:schema {schema}\n[Unit]\nDescription = \"{name}\"\n\n[Agent]\n{agent}\n[Service]\n{exec}{service}\
             MemoryMax = \"128M\"\n{starter}\n[Install]\nWantedBy = [\"{target}\"]\n"
        )
    }
}

const PYTHON: &str = r#""""NAME: an agent that counts. See docs/agents.md for what the kit offers."""

from agentd import agent


def start(stop):
    count = 0
    while not agent.wait(1):
        count += 1
        agent.status(f"counted to {count}")
        agent.progress(count)
    print(f"stopped at {count}")
"#;

const PYTHON_TIMER: &str = r#""""NAME: an agent that is started by the clock, does its work and ends."""


def start(stop):
    print("NAME has done its work")
"#;

const SHELL: &str = r#"#!/bin/sh
# NAME: an agent that counts until it is told to stop.
trap 'echo "stopped at $count"; exit 0' TERM
count=0
while :; do
    count=$((count + 1))
    echo "counted to $count"
    sleep 1 &
    wait $!
done
"#;

const SHELL_TIMER: &str = r#"#!/bin/sh
# NAME: an agent that is started by the clock, does its work and ends.
echo "NAME has done its work"
"#;

const GO: &str = r#"// NAME is an agent that counts. See docs/agents.md for what the kit offers.
package main

import (
	"context"
	"fmt"
	"time"

	"agentd/agent"
)

func main() {
	agent.Run(agent.Agent{Start: func(ctx context.Context) error {
		count := uint64(0)
		for agent.Wait(ctx, time.Second) {
			count++
			agent.Statusf("counted to %d", count)
			agent.Progress(count)
		}
		fmt.Println("stopped at", count)
		return nil
	}})
}
"#;

const GO_TIMER: &str = r#"// NAME is an agent that is started by the clock, does its work and ends.
package main

import "fmt"

func main() {
	fmt.Println("NAME has done its work")
}
"#;

const PYTHON_SOCKET: &str = r#""""NAME: an agent that is started by its first client, and answers whoever connects."""

import socket

from agentd import agent


def start(stop):
    listener = agent.listeners()[0]
    listener.settimeout(1)
    while not agent.wait(0):
        try:
            client, _ = listener.accept()
        except socket.timeout:
            continue
        with client:
            client.sendall(b"Hello from NAME\n")
"#;

const EXEC_SOCKET: &str = r#"#!/usr/bin/env python3
# NAME: an agent that is started by its first client, and answers whoever connects.
import socket

listener = socket.socket(fileno=3)
while True:
    client, _ = listener.accept()
    with client:
        client.sendall(b"Hello from NAME\n")
"#;

const GO_SOCKET: &str = r#"// NAME is an agent that is started by its first client, and answers whoever connects.
package main

import (
	"context"
	"fmt"

	"agentd/agent"
)

func main() {
	agent.Run(agent.Agent{Start: func(ctx context.Context) error {
		listeners, err := agent.Listeners("")
		if err != nil || len(listeners) == 0 {
			return fmt.Errorf("no socket was handed over: %w", err)
		}
		go func() {
			<-ctx.Done()
			listeners[0].Close()
		}()
		for {
			client, err := listeners[0].Accept()
			if err != nil {
				return nil // The agent stops.
			}
			fmt.Fprintln(client, "Hello from NAME")
			client.Close()
		}
	}})
}
"#;

const GO_MODULE: &str =
    "module NAME\n\ngo 1.19\n\nrequire agentd/agent v0.0.0\n\nreplace agentd/agent => KIT\n";
