//! Two machines side by side, the same but for their init: Debian's systemd in one, agentd in the other. Both are PID 1 on
//! Debian's kernel.
//!
//! Their clocks count instructions, so that what is emulated beside other work, or on a slow machine, sees no more time go
//! by than what runs on a fast one.

use std::thread;
use std::time::Duration;

use super::super::context::Context;
use crate::error::{During, Error, Result};
use crate::image::product::ADMIN_UNITS;
use crate::image::tree::Tree;
use crate::vm::channel::Answer;
use crate::vm::{Clock, Machine, Spec};

/// The pair. It lives on from one scenario to the next.
pub struct Pair {
    theirs: Machine,
    ours: Machine,
}

/// A bound on what never ends: all that is asked in the guests has bounds of its own, by their clocks.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The command line of the tests for systemd.
const CONSOLE: &str = "[Unit]\nAfter=basic.target\n[Service]\n\
                       ExecStart=/usr/lib/agentd-test/busybox sh /usr/lib/agentd-test/console\n\
                       Environment=HOME=/root\n";

/// What is to be up where agentd is init: as much as under systemd, and none of the agents.
const TARGET: &str = "[Unit]\nRequires = [\"basic.target\"]\nWants = [\"test-console.service\"]\n";

/// Without random places of programs the emulator finds what it has translated again.
const WORDS: &str = "loglevel=4 norandmaps";

/// agentd mounts a file system in memory there; Debian leaves it to this file.
const FSTAB: &str = "tmpfs /tmp tmpfs nosuid,nodev 0 0\n";

impl Pair {
    /// Boots both, with `lay` laid over Debian in each.
    pub(in crate::scenarios) fn boot(
        context: &mut Context,
        lay: impl Fn(&Tree) -> Result<()>,
    ) -> Result<Self> {
        let theirs = systemd(context, &lay)?;
        let mut ours = context.product_disk(|tree| {
            tree.write(&format!("{ADMIN_UNITS}/compare.target.toml"), 0o644, TARGET.as_bytes())?;
            lay(tree)
        })?;
        ours.append = format!("{WORDS} agentd.unit=compare.target");
        ours.clock = Clock::Instructions;
        // By this thread, with which they end.
        let pair = Self { theirs: Machine::boot(&theirs)?, ours: Machine::boot(&ours)? };
        let ready = |machine: &Machine| machine.wait_ready_for(PATIENCE).inspect_err(|_| show(machine));
        beside(|| ready(&pair.theirs), || ready(&pair.ours))?;
        Ok(pair)
    }

    /// Runs a command in each, at the same time.
    pub(super) fn run(&mut self, theirs: &str, ours: &str) -> Result<(Answer, Answer)> {
        let run = |machine: &mut Machine, command: &str| {
            machine.run_for(command, PATIENCE).inspect_err(|_| show(machine))
        };
        let (their_machine, our_machine) = (&mut self.theirs, &mut self.ours);
        beside(|| run(their_machine, theirs), || run(our_machine, ours))
    }
}

fn systemd(context: &Context, lay: impl Fn(&Tree) -> Result<()>) -> Result<Spec> {
    let tree = Tree::new()?;
    tree.test_console()?;
    let units = "etc/systemd/system";
    tree.write(&format!("{units}/test-console.service"), 0o644, CONSOLE.as_bytes())?;
    tree.link(&format!("{units}/basic.target.wants/test-console.service"), "../test-console.service")?;
    tree.write("etc/fstab", 0o644, FSTAB.as_bytes())?;
    lay(&tree)?;
    let payload = context.scratch().path().join("systemd.tar");
    tree.pack(&payload)?;
    let words = format!("{WORDS} init=/usr/lib/systemd/systemd");
    Ok(Spec { clock: Clock::Instructions, ..context.disk(payload, &words) })
}

/// Does both at once, each in a thread of its own.
fn beside<T: Send>(
    theirs: impl FnOnce() -> Result<T> + Send,
    ours: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, T)> {
    let (theirs, ours) = thread::scope(|scope| {
        let theirs = scope.spawn(theirs);
        let ours = ours();
        (theirs.join().unwrap_or_else(|_| Err(Error::new("the thread for systemd panicked"))), ours)
    });
    Ok((
        theirs.during(|| "the machine with systemd".into())?,
        ours.during(|| "the machine with agentd".into())?,
    ))
}

fn show(machine: &Machine) {
    println!("---- console of the machine\n{}----", machine.console().text());
}
