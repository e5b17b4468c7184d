//! What scenarios share: the built images, and the machine that runs now.

use std::fs;
use std::path::PathBuf;

use super::compare::machines::Pair;
use crate::error::{During, Error, Result};
use crate::image::base::Base;
use crate::image::product::{ADMIN_UNITS, Product};
use crate::image::tree::Tree;
use crate::image::{initramfs, make_alone};
use crate::run::root;
use crate::scratch::Scratch;
use crate::tools;
use crate::vm::container::Container;
use crate::vm::{BOOT_TIMEOUT, Clock, Machine, Spec, Terminal, UP};

/// Where the tests' own files stand in a guest.
pub const FILES: &str = "usr/lib/agentd-test";

/// Words for the kernel: its own lines come into the middle of those of programs, which tests compare whole.
const QUIET: &str = "loglevel=4";
/// The same for a disk, which agentd makes writable.
const QUIET_DISK: &str = "ro loglevel=4";

/// MiB of memory of a machine under test: Debian with Python, redis and journald fits.
const MEMORY: u32 = 512;

/// See the module.
pub struct Context {
    base: Base,
    initrd: PathBuf,
    product: Option<Product>,
    machine: Option<Machine>,
    /// Whether the machine that runs is the one that scenarios share.
    shared: bool,
    /// The two machines of the comparisons.
    pair: Option<Pair>,
    scratch: Scratch,
}

impl Context {
    /// Builds the ground if it is not there yet.
    ///
    /// # Errors
    /// A program is missing, or the images could not be built.
    pub fn new() -> Result<Self> {
        tools::need(tools::IMAGE)?;
        tools::need(tools::VM)?;
        let base = Base::get()?;
        let scratch = Scratch::new("scenarios")?;
        let initrd = scratch.path().join("initrd");
        fs::write(&initrd, base.disk_initrd()?).during(|| "cannot write the initramfs".into())?;
        Ok(Self { base, initrd, product: None, machine: None, shared: false, pair: None, scratch })
    }

    /// A folder for the scenario's own files.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// A machine with the disk image, and `payload` laid over it.
    #[must_use]
    pub fn disk(&self, payload: PathBuf, append: &str) -> Spec {
        Spec {
            kernel: self.base.kernel(),
            initrd: self.initrd.clone(),
            disk: Some(self.base.disk()),
            payload: Some(payload),
            append: append.to_owned(),
            memory: MEMORY,
            terminal: Terminal::Hidden,
            clock: Clock::Host,
        }
    }

    /// The product with the tests' units, as a disk image, signed. `change` is done to the tree after it was signed.
    ///
    /// # Errors
    /// Something does not build.
    pub fn product_disk(&mut self, change: impl FnOnce(&Tree) -> Result<()>) -> Result<Spec> {
        let tree = self.test_tree()?;
        let redis = root().join("units/examples/redis-server.service.toml");
        tree.copy(&redis, &format!("{ADMIN_UNITS}/redis-server.service.toml"), &|_| false)?;
        built(&mut self.product)?.sign_over(&tree, &self.base)?;
        change(&tree)?;
        let payload = self.scratch.path().join("payload.tar");
        tree.pack(&payload)?;
        Ok(self.disk(payload, QUIET_DISK))
    }

    /// The product with the tests' units in a container of this machine, up.
    ///
    /// # Errors
    /// It does not come up.
    pub fn container(&mut self) -> Result<Container> {
        self.container_with(|_| Ok(()))
    }

    /// Debian's own init in a container, with `lay` laid over it.
    ///
    /// # Errors
    /// It does not come up.
    pub fn container_of_systemd(&mut self, lay: impl Fn(&Tree) -> Result<()>) -> Result<Container> {
        tools::need(tools::NAMESPACE)?;
        let tree = Tree::new()?;
        // A container counts as begun when it speaks, and systemd says nothing where there is no terminal.
        let init = "#!/bin/sh\necho systemd begins\nexec /usr/lib/systemd/systemd\n";
        tree.write("usr/sbin/init", 0o755, init.as_bytes())?;
        lay(&tree)?;
        Container::start(self.base.merged(&tree)?, Terminal::Hidden)
    }

    /// The product with the tests' units and what `lay` lays over it in a container, up.
    ///
    /// # Errors
    /// It does not come up.
    pub fn container_with(&mut self, lay: impl Fn(&Tree) -> Result<()>) -> Result<Container> {
        tools::need(tools::NAMESPACE)?;
        let tree = self.test_tree()?;
        // Its serial line is not there.
        let console = tree.path().join(ADMIN_UNITS).join("test-console.service.toml");
        fs::remove_file(&console).during(|| format!("cannot remove {}", console.display()))?;
        built(&mut self.product)?.sign_over(&tree, &self.base)?;
        lay(&tree)?;
        let container = Container::start(self.base.merged(&tree)?, Terminal::Hidden)?;
        container.wait_ready()?;
        Ok(container)
    }

    /// The same as an initramfs with agentd as `/init`, and nothing of Debian.
    ///
    /// # Errors
    /// Something does not build.
    pub fn product_initramfs(&mut self) -> Result<Spec> {
        let tree = self.test_tree()?;
        make_alone(&tree)?;
        built(&mut self.product)?.sign_alone(&tree)?;
        let initrd = self.scratch.path().join("initramfs");
        fs::write(&initrd, initramfs(&tree)?).during(|| "cannot write the initramfs".into())?;
        let kernel = self.base.kernel();
        Ok(Spec {
            kernel,
            initrd,
            disk: None,
            payload: None,
            append: QUIET.to_owned(),
            memory: MEMORY,
            terminal: Terminal::Hidden,
            clock: Clock::Host,
        })
    }

    /// Boots a machine that is this scenario's own, with agentd as its init, and waits until everything is started.
    ///
    /// # Errors
    /// It does not come up.
    pub fn boot(&mut self, spec: &Spec) -> Result<&mut Machine> {
        let machine = self.boot_any(spec)?;
        machine.console().wait_for(0, UP, BOOT_TIMEOUT)?;
        Ok(machine)
    }

    /// Boots a machine that is this scenario's own, with any init, and waits until it takes commands.
    ///
    /// # Errors
    /// It does not come up.
    pub fn boot_any(&mut self, spec: &Spec) -> Result<&mut Machine> {
        let machine = self.switch_on(spec)?;
        machine.wait_ready()?;
        Ok(machine)
    }

    /// Starts a machine that is this scenario's own, of which there is only the console.
    ///
    /// # Errors
    /// QEMU does not start.
    pub fn switch_on(&mut self, spec: &Spec) -> Result<&mut Machine> {
        // One at a time: two emulated processors share the little there is.
        self.machine = None;
        self.shared = false;
        self.pair = None;
        Ok(self.machine.insert(Machine::boot(spec)?))
    }

    /// The machine that scenarios share: the product on a disk, booted once.
    ///
    /// # Errors
    /// It does not come up.
    pub fn shared(&mut self) -> Result<&mut Machine> {
        if !self.shared {
            let spec = self.product_disk(|_| Ok(()))?;
            self.boot(&spec)?;
            self.shared = true;
        }
        self.machine.as_mut().ok_or_else(|| Error::new("there is no machine"))
    }

    /// The two machines of the comparisons, booted once, with `lay` laid over both.
    ///
    /// # Errors
    /// One of them does not come up.
    pub fn pair(&mut self, lay: impl Fn(&Tree) -> Result<()>) -> Result<&mut Pair> {
        if self.pair.is_none() {
            self.machine = None;
            self.shared = false;
            self.pair = Some(Pair::boot(self, lay)?);
        }
        self.pair.as_mut().ok_or_else(|| Error::new("there are no machines"))
    }

    /// Ends a scenario: a failed one leaves its console behind and takes the machine with it.
    pub fn settle(&mut self, passed: bool) {
        if !passed && let Some(machine) = &mut self.machine {
            println!("---- console of the machine\n{}----", machine.console().text());
            // What agents said is in the journal alone, if the machine still answers and has one.
            if let Ok(answer) = machine.run("journalctl --no-pager -n 60 -o short-monotonic") {
                println!("---- its journal\n{}\n----", answer.text);
            }
        }
        if !passed || !self.shared {
            self.machine = None;
            self.shared = false;
        }
        if !passed {
            self.pair = None;
        }
    }

    /// The product's tree with what the tests add.
    fn test_tree(&mut self) -> Result<Tree> {
        let tree = built(&mut self.product)?.tree()?;
        let guest = root().join("xtask/guest");
        tree.test_console()?;
        tree.copy(&guest.join("files"), FILES, &|path| path.ends_with("console"))?;
        tree.copy(&guest.join("units"), ADMIN_UNITS, &|_| false)?;
        let library = tree.path().join("usr/lib/agents/bin/library");
        tree.copy(&library, &format!("{FILES}/library"), &|_| false)?;
        Ok(tree)
    }
}

/// The product, built when it is first asked for.
fn built(product: &mut Option<Product>) -> Result<&Product> {
    if product.is_none() {
        *product = Some(Product::build()?);
    }
    product.as_ref().ok_or_else(|| Error::new("the product was not built"))
}
