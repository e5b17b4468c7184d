//! agentd as PID 1 of a virtual machine: from the kernel's start to the first and the last of 100 services.
//!
//! The machine is an initramfs with agentd, its targets, 100 trivial services and nothing else; agentd checks the
//! signature and the digest of each, as it does in every machine. The floor is an init that starts the same programs
//! with vfork and exec. The machine is emulated, so the figures say little beside those of real ones, but for the ratio.

use std::fs;
use std::path::Path;

use super::Bench;
use super::manager::unit_text;
use super::table::{Line, Unit};
use crate::error::{During, Error, Result};
use crate::image::base::Base;
use crate::image::product::{ADMIN_UNITS, Product, UNITS};
use crate::image::tree::Tree;
use crate::image::{initramfs, make_alone};
use crate::scratch::Scratch;
use crate::tools;
use crate::vm::{BOOT_TIMEOUT, Clock, Machine, Spec, Terminal};

/// As many as `init` of `xtask/bench/driver.c` starts.
const SERVICES: usize = 100;

/// Where the services' FIFO is in the guest.
const FIFO: &str = "/run/marks";

/// Nanoseconds from the kernel's start to the first and to the last mark, one entry a run.
#[derive(Debug, Default)]
struct Way {
    first: Vec<f64>,
    last: Vec<f64>,
}

/// See the module.
///
/// # Errors
/// A program is missing, or the machine does not come up.
pub fn measure(bench: &mut Bench) -> Result<Vec<Line>> {
    tools::need(tools::IMAGE)?;
    tools::need(tools::VM)?;
    let base = Base::get()?;
    let (ours, floor) = (tree(bench)?, floor_tree(bench)?);
    let scratch = Scratch::new("bench-boot")?;
    let [mut with_agentd, mut bare] = [Way::default(), Way::default()];
    for _ in 0..bench.runs(3, 1) {
        bare.add(boot(&base, &floor, &scratch)?);
        with_agentd.add(boot(&base, &ours, &scratch)?);
    }
    const NAME: &str = "a bare init";
    Ok(vec![
        Line::new("kernel's start to the first service, in the VM", Unit::Time, &with_agentd.first)
            .beside(NAME, &bare.first),
        Line::new("kernel's start to the last of 100, in the VM", Unit::Time, &with_agentd.last)
            .beside(NAME, &bare.last),
    ])
}

impl Way {
    fn add(&mut self, (first, last): (f64, f64)) {
        self.first.push(first);
        self.last.push(last);
    }
}

fn tree(bench: &Bench) -> Result<Tree> {
    let product = Product::build()?;
    let tree = product.tree()?;
    make_alone(&tree)?;
    let units = tree.path().join(UNITS);
    let cannot = || format!("cannot change {}", units.display());
    for unit in fs::read_dir(&units).during(cannot)? {
        let path = unit.during(cannot)?.path();
        if path.is_file() && !path.display().to_string().ends_with(".target.toml") {
            fs::remove_file(&path).during(cannot)?;
        }
    }
    add_programs(bench, &tree)?;
    let unit = |name: &str, words: &[&Path]| {
        let text = unit_text("multi-user.target", "", words);
        tree.write(&format!("{ADMIN_UNITS}/{name}.service.toml"), 0o644, text.as_bytes()).map(|_| ())
    };
    let count = SERVICES.to_string();
    unit("collector", &["/usr/bin/driver", "collect", FIFO, &count].map(Path::new))?;
    for number in 0..SERVICES {
        unit(&format!("s{number}"), &["/usr/bin/mark", FIFO].map(Path::new))?;
    }
    product.sign_alone(&tree)?;
    Ok(tree)
}

fn floor_tree(bench: &Bench) -> Result<Tree> {
    let tree = Tree::new()?;
    add_programs(bench, &tree)?;
    tree.link("init", "usr/bin/driver")?;
    for folder in ["run", "proc"] {
        let path = tree.path().join(folder);
        fs::create_dir(&path).during(|| format!("cannot make {}", path.display()))?;
    }
    Ok(tree)
}

fn add_programs(bench: &Bench, tree: &Tree) -> Result<()> {
    for (name, program) in [("mark", &bench.cast.mark), ("driver", &bench.cast.driver)] {
        let bytes = fs::read(program).during(|| format!("cannot read {}", program.display()))?;
        tree.write(&format!("usr/bin/{name}"), 0o755, &bytes)?;
    }
    Ok(())
}

/// Boots a tree as an initramfs; what its collector tells.
fn boot(base: &Base, tree: &Tree, scratch: &Scratch) -> Result<(f64, f64)> {
    let initrd = scratch.path().join("initramfs");
    fs::write(&initrd, initramfs(tree)?).during(|| "cannot write the initramfs".into())?;
    let spec = Spec {
        kernel: base.kernel(),
        initrd,
        disk: None,
        payload: None,
        append: "quiet".into(),
        memory: 512,
        terminal: Terminal::Hidden,
        clock: Clock::Host,
    };
    let machine = Machine::boot(&spec)?;
    let line = machine.console().wait_for(0, "MARKS ", BOOT_TIMEOUT)?;
    let figures: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match figures[..] {
        [.., first, last] => Ok((first, last)),
        _ => Err(Error::new(format!("the collector told no figures: {line}"))),
    }
}
