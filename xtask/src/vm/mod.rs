//! A virtual machine under test: QEMU without KVM, its console, its commands, its power switch.

pub mod channel;
pub mod container;
pub mod feed;
pub mod qmp;

use std::fs;
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::error::{During, Error, Result};
use crate::run::command;
use crate::scratch::Scratch;
use channel::{Answer, Channel};
use feed::Feed;
use qmp::Qmp;

/// The guest's end of [`channel`], run in the guest by busybox.
pub const GUEST_CONSOLE: &str = include_str!("../../guest/files/console");

/// What agentd says when everything is started.
pub const UP: &str = "Reached target default.target";

/// Four times what a boot under emulation takes on a loaded machine of two processors.
pub const BOOT_TIMEOUT: Duration = Duration::from_secs(120);

/// For one ordinary command in the guest.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// For a whole shutdown: the longest stop timeout of the units under test, and the emulation.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(120);

/// What a machine is made of.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The kernel, unpacked.
    pub kernel: PathBuf,
    /// The initramfs.
    pub initrd: PathBuf,
    /// The root disk, which the guest's writes never reach.
    pub disk: Option<PathBuf>,
    /// A tar archive, given raw as the second disk.
    pub payload: Option<PathBuf>,
    /// More words for the kernel's command line.
    pub append: String,
    /// MiB of memory.
    pub memory: u32,
    /// What becomes of the console beside being read.
    pub terminal: Terminal,
    /// What its time goes by.
    pub clock: Clock,
}

/// What a machine's time goes by while it works; while it sleeps, it goes by the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The host's clock: a boot takes as long as it takes.
    Host,
    /// Instructions, a nanosecond each: the machine is always as fast as a real one to itself, however slow it is emulated.
    /// It takes half as long again.
    Instructions,
}

/// What a person has of a machine's console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// Nothing.
    Hidden,
    /// Its output.
    Shown,
    /// All of it: what is typed goes to the machine, Ctrl-C as well. Ctrl-A X ends QEMU.
    Interactive,
}

impl Terminal {
    fn is_shown(self) -> bool {
        self != Self::Hidden
    }
}

impl Spec {
    /// QEMU's words for the machine itself; its serial lines come from the caller.
    #[must_use]
    pub fn command(&self) -> Command {
        // The kernel ends the machine with whoever started it, however that dies.
        let mut qemu = command("setpriv", &["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        qemu.args(["-M", "pc", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", &self.memory.to_string()]);
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none"]);
        if self.clock == Clock::Instructions {
            qemu.args(["-icount", "shift=0"]);
        }
        qemu.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd);
        // no_timer_check: under load one boot in many found its timer "not connected".
        let fixed = "console=ttyS0 panic=-1 no_timer_check mitigations=off";
        qemu.arg("-append").arg(format!("{fixed} {}", self.append).trim_end());
        if let Some(disk) = &self.disk {
            qemu.args(["-drive", &format!("file={},format=raw,if=virtio,snapshot=on", disk.display())]);
        }
        if let Some(payload) = &self.payload {
            qemu.args(["-drive", &format!("file={},format=raw,if=virtio,readonly=on", payload.display())]);
        }
        qemu
    }
}

/// How a machine ended, by QMP's `SHUTDOWN` event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The guest switched itself off.
    PowerOff,
    /// The guest restarted itself; a panic does that as well, and tells so on the console.
    Reset,
}

/// A running machine. Dropping it kills it.
pub struct Machine {
    qemu: Child,
    /// What is typed on the console; a person's own terminal does that by itself.
    keys: Option<ChildStdin>,
    qmp: Qmp,
    console: Feed,
    channel: Channel,
    /// Holds the sockets; goes last.
    _scratch: Scratch,
}

impl Machine {
    /// Starts the machine. Its kernel has done nothing yet when this returns.
    ///
    /// # Errors
    /// QEMU could not be started; the message has what it said.
    pub fn boot(spec: &Spec) -> Result<Self> {
        let scratch = Scratch::new("vm")?;
        // QEMU connects to us: so nothing has to wait for its sockets to appear.
        let qmp = Listening::new(&scratch, "qmp")?;
        let line = Listening::new(&scratch, "ttyS1")?;
        let mut command = spec.command();
        let (monitor, stdin) = match spec.terminal {
            Terminal::Interactive => (",mux=on", Stdio::inherit()),
            Terminal::Hidden | Terminal::Shown => ("", Stdio::piped()),
        };
        command.args(["-chardev", &format!("stdio,id=c0,signal=off{monitor}"), "-serial", "chardev:c0"]);
        if spec.terminal == Terminal::Interactive {
            command.args(["-mon", "chardev=c0"]);
        }
        command.args(["-chardev", &format!("socket,id=c1,path={}", line.path.display())]);
        command.args(["-serial", "chardev:c1", "-qmp", &format!("unix:{}", qmp.path.display())]);
        command.stdin(stdin).stdout(Stdio::piped());
        let mut qemu = command.spawn().during(|| "cannot start QEMU".into())?;
        let console = qemu.stdout.take().ok_or_else(|| Error::new("QEMU has no output"))?;
        let keys = qemu.stdin.take();
        let console = Feed::new("console (ttyS0)", console, spec.terminal.is_shown());
        let connected = line.accept().and_then(|line| Ok((line, qmp.accept()?)));
        let (line, qmp) = match connected {
            Ok(both) => both,
            Err(error) => {
                end(&mut qemu);
                return Err(error);
            }
        };
        let channel = Channel::new(line)?;
        Ok(Self { keys, qmp: Qmp::new(qmp)?, console, channel, qemu, _scratch: scratch })
    }

    /// What the kernel and the init write to the console.
    #[must_use]
    pub fn console(&self) -> &Feed {
        &self.console
    }

    /// Types a line on the console.
    ///
    /// # Errors
    /// The machine is gone, or a person sits at its console.
    pub fn type_line(&mut self, line: &str) -> Result<()> {
        let keys = self.keys.as_mut().ok_or_else(|| Error::new("a person types on this console"))?;
        keys.write_all(format!("{line}\r").as_bytes()).during(|| "cannot type on the console".into())
    }

    /// Waits until the guest takes commands.
    ///
    /// # Errors
    /// It does not within [`BOOT_TIMEOUT`].
    pub fn wait_ready(&self) -> Result<()> {
        self.wait_ready_for(BOOT_TIMEOUT)
    }

    /// The same with more patience, or less.
    ///
    /// # Errors
    /// It does not within `timeout`.
    pub fn wait_ready_for(&self, timeout: Duration) -> Result<()> {
        self.channel.wait_ready(timeout)
    }

    /// Runs a command in the guest.
    ///
    /// # Errors
    /// It does not end within [`COMMAND_TIMEOUT`].
    pub fn run(&mut self, command: &str) -> Result<Answer> {
        self.run_for(command, COMMAND_TIMEOUT)
    }

    /// The same for a command that may take longer.
    ///
    /// # Errors
    /// It does not end within `timeout`.
    pub fn run_for(&mut self, command: &str, timeout: Duration) -> Result<Answer> {
        self.channel.run(command, timeout)
    }

    /// Hands a command to the guest without waiting for its end.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn send(&mut self, command: &str) -> Result<()> {
        self.channel.send(command)
    }

    /// Presses Ctrl-Alt-Del on the machine's keyboard.
    ///
    /// # Errors
    /// QEMU refuses.
    pub fn ctrl_alt_del(&mut self) -> Result<()> {
        let keys: Vec<_> =
            ["ctrl", "alt", "delete"].map(|key| json!({ "type": "qcode", "data": key })).to_vec();
        self.qmp.execute("send-key", json!({ "keys": keys })).map(|_| ())
    }

    /// Waits, for as long as it takes, until QEMU is gone: the guest ended, or a person ended QEMU.
    pub fn wait_gone(&self) {
        self.console.wait_end_forever();
    }

    /// Waits until the guest ends itself.
    ///
    /// # Errors
    /// It does not within [`SHUTDOWN_TIMEOUT`], or it was ended from outside.
    pub fn ending(&mut self) -> Result<Ending> {
        let data = self.qmp.event("SHUTDOWN", SHUTDOWN_TIMEOUT)?;
        self.console.wait_end(COMMAND_TIMEOUT)?;
        match data["reason"].as_str() {
            Some("guest-shutdown") => Ok(Ending::PowerOff),
            Some("guest-reset") => Ok(Ending::Reset),
            _ => Err(Error::new(format!("the machine was not ended by its guest: {data}"))),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        end(&mut self.qemu);
    }
}

/// Kills and reaps; a machine that is gone already is as good.
fn end(qemu: &mut Child) {
    if qemu.kill().is_ok()
        && let Err(error) = qemu.wait()
    {
        eprintln!("xtask: cannot wait for QEMU: {error}");
    }
}

/// A socket that QEMU is to connect to.
struct Listening {
    path: PathBuf,
    accepted: mpsc::Receiver<std::io::Result<UnixStream>>,
}

impl Listening {
    fn new(scratch: &Scratch, name: &str) -> Result<Self> {
        let path = scratch.path().join(name);
        let listener = UnixListener::bind(&path).during(|| format!("cannot listen on {}", path.display()))?;
        let (sender, accepted) = mpsc::channel();
        thread::spawn(move || {
            // The receiver is gone if QEMU never came and its start was given up.
            sender.send(listener.accept().map(|(stream, _)| stream)).ok();
        });
        Ok(Self { path, accepted })
    }

    fn accept(&self) -> Result<UnixStream> {
        let stream = self.accepted.recv_timeout(COMMAND_TIMEOUT);
        let stream = stream.during(|| "QEMU did not come up; see its message above".into())?;
        stream.during(|| format!("cannot accept on {}", self.path.display()))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Wakes the thread that still waits for QEMU; refused or not, there is nothing left to do.
        drop(UnixStream::connect(&self.path));
        drop(fs::remove_file(&self.path));
    }
}
