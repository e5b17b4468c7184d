//! `cargo xtask demo`: agentd brings up two agents, a document goes through them, one is killed and comes back.
//! `cargo xtask vm`: the same machine, for a person to look round in.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::error::{During, Error, Result};
use crate::image::base::Base;
use crate::image::product::{ADMIN_UNITS, Product};
use crate::image::tree::Tree;
use crate::image::{add_shell, initramfs, make_alone};
use crate::run::root;
use crate::scratch::Scratch;
use crate::tools;
use crate::vm::channel::Answer;
use crate::vm::container::Container;
use crate::vm::{BOOT_TIMEOUT, Clock, Ending, Machine, Spec, Terminal, UP};

/// The documents that go through the agents, which are our own, and where they stand in the machine.
const DOCUMENTS: [(&str, &str); 2] = [
    ("docs/agents.md", "usr/share/doc/agentd/agents.md"),
    ("docs/ARCHITECTURE.md", "usr/share/doc/agentd/architecture.md"),
];

/// Where the Go agent listens.
const ADDRESS: &str = "http://127.0.0.1:8080";

/// `ro`: agentd makes `/` writable. `loglevel=4`: of the kernel only what is wrong, since agentd speaks as well.
const KERNEL_WORDS: &str = "ro loglevel=4";

/// Where the demonstration runs.
trait Guest {
    fn run(&mut self, command: &str) -> Result<Answer>;
}

impl Guest for Machine {
    fn run(&mut self, command: &str) -> Result<Answer> {
        Machine::run(self, command)
    }
}

impl Guest for Container {
    fn run(&mut self, command: &str) -> Result<Answer> {
        Container::run(self, command)
    }
}

/// Boots the machine with QEMU and shows what it is for. `interactive`: then the console is the caller's.
///
/// # Errors
/// Something does not build, or a step of the demonstration does not go as it should.
pub fn in_vm(interactive: bool) -> Result<()> {
    tools::need(tools::IMAGE)?;
    tools::need(tools::VM)?;
    let base = Base::get()?;
    let scratch = Scratch::new("demo")?;
    say("building agentd, agentctl and the agents; signing the units with a new key");
    let product = Product::build()?;
    let tree = demo_tree(&product, interactive)?;
    tree.test_console()?;
    let console = root().join("xtask/guest/units/test-console.service.toml");
    tree.copy(&console, &format!("{ADMIN_UNITS}/test-console.service.toml"), &|_| false)?;
    product.sign_over(&tree, &base)?;

    say("booting Debian's kernel in QEMU, with agentd as PID 1");
    let spec = disk_spec(&base, &tree, &scratch, terminal(interactive))?;
    let mut machine = Machine::boot(&spec)?;
    machine.wait_ready()?;
    machine.console().wait_for(0, UP, BOOT_TIMEOUT)?;
    show(&mut machine)?;
    if interactive {
        say("the console is yours; agentctl poweroff ends the machine, Ctrl-A X ends QEMU");
        machine.wait_gone();
        return restore_terminal();
    }
    say("agentctl poweroff");
    machine.send("agentctl poweroff")?;
    match machine.ending()? {
        Ending::PowerOff => Ok(()),
        Ending::Reset => Err(Error::new("the machine was to be switched off, and restarted")),
    }
}

/// The same in namespaces of this machine. `interactive`: then a shell in them.
///
/// # Errors
/// We are not root, or a step does not go as it should.
pub fn here(interactive: bool) -> Result<()> {
    tools::need(tools::IMAGE)?;
    tools::need(tools::NAMESPACE)?;
    let base = Base::get()?;
    say("building agentd, agentctl and the agents; signing the units with a new key");
    let product = Product::build()?;
    let tree = demo_tree(&product, false)?;
    product.sign_over(&tree, &base)?;
    say("starting agentd as PID 1 of private namespaces");
    let mut container = Container::start(base.merged(&tree)?, Terminal::Shown)?;
    container.wait_ready()?;
    show(&mut container)?;
    if interactive {
        say("a shell in the container; its end ends the container");
        let mut shell = container.enter();
        shell.args(["sh", "-i"]).stdin(Stdio::inherit());
        shell.status().during(|| "cannot enter the container".into())?;
    }
    say("SIGRTMIN+4 to PID 1: power off");
    container.signal("RTMIN+4")?;
    let status = container.ending(BOOT_TIMEOUT)?;
    if status.success() { Ok(()) } else { Err(Error::new(format!("agentd ended with {status}"))) }
}

/// `cargo xtask vm`: boots the product and leaves the rest to the caller.
///
/// # Errors
/// Something does not build, or QEMU cannot be started.
pub fn vm(in_memory: bool, interactive: bool) -> Result<()> {
    tools::need(tools::IMAGE)?;
    tools::need(tools::VM)?;
    let base = Base::get()?;
    let scratch = Scratch::new("vm-image")?;
    let product = Product::build()?;
    let tree = demo_tree(&product, interactive)?;
    let spec = if in_memory {
        make_alone(&tree)?;
        if interactive {
            add_shell(&tree)?;
        }
        product.sign_alone(&tree)?;
        let initrd = scratch.path().join("initramfs");
        fs::write(&initrd, initramfs(&tree)?).during(|| "cannot write the initramfs".into())?;
        Spec {
            initrd,
            disk: None,
            payload: None,
            ..disk_spec(&base, &tree, &scratch, terminal(interactive))?
        }
    } else {
        product.sign_over(&tree, &base)?;
        disk_spec(&base, &tree, &scratch, terminal(interactive))?
    };
    say(if interactive { "Ctrl-A X ends QEMU" } else { "Ctrl-C ends QEMU" });
    Machine::boot(&spec)?.wait_gone();
    if interactive { restore_terminal() } else { Ok(()) }
}

/// The steps, the same wherever they run.
fn show(guest: &mut dyn Guest) -> Result<()> {
    step(guest, "agentctl status")?;
    say("a document for the Go agent; the Python agent will sum it up");
    let first = step(guest, &post(DOCUMENTS[0].1))?;
    step(guest, &summary(&first)?)?;
    say("the Python agent is killed, with a second document on its way");
    step(guest, "agentctl kill --signal SIGKILL summarizer.service")?;
    let second = step(guest, &post(DOCUMENTS[1].1))?;
    step(guest, &summary(&second)?)?;
    step(guest, "agentctl status summarizer.service")?;
    step(guest, "agentctl logs -n 20 summarizer.service")?;
    step(guest, "agentctl list").map(|_| ())
}

fn post(document: &str) -> String {
    let name = document.rsplit('/').next().unwrap_or(document);
    format!("curl -sSf --data-binary @/{document} '{ADDRESS}/documents?name={name}'")
}

/// The command that waits for the summary of a document that was just taken in.
fn summary(taken: &str) -> Result<String> {
    let document: serde_json::Value =
        serde_json::from_str(taken).during(|| format!("the library does not answer with JSON: {taken}"))?;
    let id = document["id"].as_str().map_or_else(|| document["id"].to_string(), str::to_owned);
    let sentences = r#"python3 -c 'import json, sys; print(*json.load(sys.stdin)["summary"], sep="\n")'"#;
    Ok(format!("curl -sSf '{ADDRESS}/documents/{id}/summary?wait=30s' | {sentences}"))
}

/// Shows a command, runs it, shows what it prints.
fn step(guest: &mut dyn Guest, command: &str) -> Result<String> {
    println!("\n# {command}");
    let answer = guest.run(command)?;
    println!("{}", answer.text);
    if answer.code == 0 { Ok(answer.text) } else { Err(Error::new(format!("it exits with {}", answer.code))) }
}

fn say(text: &str) {
    println!("\n=== {text}");
}

fn terminal(interactive: bool) -> Terminal {
    if interactive { Terminal::Interactive } else { Terminal::Shown }
}

/// The product with the document, and a shell on the console if a person will sit there.
fn demo_tree(product: &Product, interactive: bool) -> Result<Tree> {
    let tree = product.tree()?;
    for (document, place) in DOCUMENTS {
        tree.copy(&root().join(document), place, &|_| false)?;
    }
    if interactive {
        let link = format!("{ADMIN_UNITS}/multi-user.target.wants/console.service");
        tree.link(&link, "/usr/lib/agentd/units/console.service.toml")?;
    }
    Ok(tree)
}

fn disk_spec(base: &Base, tree: &Tree, scratch: &Scratch, terminal: Terminal) -> Result<Spec> {
    let initrd = scratch.path().join("initrd");
    fs::write(&initrd, base.disk_initrd()?).during(|| "cannot write the initramfs".into())?;
    let payload: PathBuf = scratch.path().join("payload.tar");
    tree.pack(&payload)?;
    let disk = Some(base.disk());
    let (kernel, append) = (base.kernel(), KERNEL_WORDS.to_owned());
    Ok(Spec {
        kernel,
        initrd,
        disk,
        payload: Some(payload),
        append,
        memory: 512,
        terminal,
        clock: Clock::Host,
    })
}

/// QEMU, killed by its monitor, may leave the terminal raw.
fn restore_terminal() -> Result<()> {
    let stty = crate::run::command("stty", &["sane"]).status();
    stty.during(|| "cannot run stty".into()).map(|_| ())
}
