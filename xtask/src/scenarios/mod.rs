//! The third ring: scenarios on real kernels.

pub mod harness;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::error::{During, Error, Result};
use crate::image::base::Base;
use crate::report::Report;
use crate::scratch::Scratch;
use crate::tools;
use crate::vm::{Machine, Spec};

/// A scenario: its name, and what it does. It fails by an error.
pub struct Scenario {
    /// Name, as `--only vm::NAME` gives it.
    pub name: &'static str,
    /// The steps.
    pub run: fn(&mut Context) -> Result<()>,
}

/// All of them, cheapest first.
pub const ALL: &[&[Scenario]] = &[harness::SCENARIOS];

/// What scenarios share: the built images, and the machine that runs now.
pub struct Context {
    base: Base,
    initrd: PathBuf,
    scratch: Scratch,
    machine: Option<Machine>,
}

impl Context {
    /// Builds what is not there yet.
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
        Ok(Self { base, initrd, scratch, machine: None })
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
            memory: 512,
        }
    }

    /// Boots a machine; it is this scenario's, and its console is printed if the scenario fails.
    ///
    /// # Errors
    /// QEMU could not be started.
    pub fn boot(&mut self, spec: &Spec) -> Result<&mut Machine> {
        // One at a time: two emulated processors share the little there is.
        self.machine = None;
        Ok(self.machine.insert(Machine::boot(spec)?))
    }
}

/// Runs the scenarios that `wanted` names, one after the other, and counts each.
pub fn run(report: &mut Report, wanted: impl Fn(&str) -> bool) {
    let chosen: Vec<&Scenario> =
        ALL.iter().copied().flatten().filter(|scenario| wanted(&format!("vm::{}", scenario.name))).collect();
    if chosen.is_empty() {
        return;
    }
    let begun = Instant::now();
    let mut context = match Context::new() {
        Ok(context) => context,
        Err(error) => return report.step("vm", || Err(error)),
    };
    for scenario in chosen {
        report.step(&format!("vm::{}", scenario.name), || {
            let result = (scenario.run)(&mut context);
            if let (Err(_), Some(machine)) = (&result, &context.machine) {
                println!("---- console of the machine\n{}----", machine.console().text());
            }
            context.machine = None;
            result
        });
    }
    println!("vm scenarios took {:.0} s", begun.elapsed().as_secs_f64());
}

/// Fails with a sentence unless the two are equal.
///
/// # Errors
/// They are not.
pub fn expect_eq<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::new(format!("{what}: expected {expected:?}, found {found:?}")))
}
