//! What we ship, built and signed: the two programs, the kits, the agents, the units.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::base::Base;
use super::tree::Tree;
use crate::error::{During, Error, Result};
use crate::run::{cargo, command, output, root, run};
use crate::scratch::Scratch;

/// Where the vendor's units stand.
pub const UNITS: &str = "usr/lib/agentd/units";

/// Where the administrator's units stand.
pub const ADMIN_UNITS: &str = "etc/agentd/units";

/// What the signing key is called.
const KEY: &str = "image";

/// The product, and the key that its units are signed with. The key lives as long as this does.
#[derive(Debug)]
pub struct Product {
    tree: Tree,
    agentctl: PathBuf,
    keys: Scratch,
}

impl Product {
    /// Builds everything in release mode. Nothing is signed yet.
    ///
    /// # Errors
    /// Something does not build.
    pub fn build() -> Result<Self> {
        run(&mut cargo(&["build", "--release", "--package", "agentd", "--package", "agentctl"]))?;
        let programs = target_folder()?.join("release");
        let tree = Tree::new()?;
        let sources = root();
        tree.copy(&sources.join("rootfs"), "", &is_left_out)?;
        tree.copy(&sources.join("units"), UNITS, &is_left_out)?;
        for program in ["agentd", "agentctl"] {
            let place = tree.write(&format!("usr/bin/{program}"), 0o755, b"")?;
            // Line tables are four fifths of a program, and a machine reads its disk slowly under emulation.
            let mut strip = command("strip", &["--strip-debug"]);
            run(strip.arg("-o").arg(&place).arg(programs.join(program)))?;
        }
        tree.link("usr/sbin/init", "../bin/agentd")?;
        run(command("sh", &["scripts/build-agents"]).arg(tree.path()))?;
        // What the units' #:schema lines name.
        let schema = output(Command::new(programs.join("agentctl")).arg("schema"))?;
        tree.write("usr/share/agentd/unit.schema.json", 0o644, schema.as_bytes())?;
        let product = Self { tree, agentctl: programs.join("agentctl"), keys: Scratch::new("keys")? };
        product.generate_key()?;
        Ok(product)
    }

    /// A copy of the tree, for additions, without the signatures.
    ///
    /// # Errors
    /// It could not be copied.
    pub fn tree(&self) -> Result<Tree> {
        let copy = Tree::new()?;
        copy.copy(self.tree.path(), "", &|_| false)?;
        Ok(copy)
    }

    /// Signs all units of a tree that will be laid over Debian's `/`.
    ///
    /// # Errors
    /// A unit names a file that is neither in the tree nor in Debian's, or is no unit.
    pub fn sign_over(&self, tree: &Tree, base: &Base) -> Result<()> {
        let merged = base.merged(tree)?;
        self.sign(tree, merged.path())
    }

    /// Signs all units of a tree that will be the whole `/`.
    ///
    /// # Errors
    /// A unit names a file that is not in the tree, or is no unit.
    pub fn sign_alone(&self, tree: &Tree) -> Result<()> {
        self.sign(tree, tree.path())
    }

    /// The signatures are made in `machine`, which stands for the machine's `/`, and belong beside the tree's units.
    fn sign(&self, tree: &Tree, machine: &Path) -> Result<()> {
        let units = units(tree)?;
        let mut sign = Command::new(&self.agentctl);
        sign.arg("sign").arg("--key").arg(self.keys.path().join(KEY).with_extension("key"));
        sign.arg("--root").arg(machine).args(units.iter().map(|unit| machine.join(unit)));
        output(&mut sign)?;
        for unit in units {
            let signature = format!("{}.sig", unit.display());
            let bytes = fs::read(machine.join(&signature))
                .during(|| format!("agentctl sign has not written {signature}"))?;
            tree.write(&signature, 0o644, &bytes)?;
        }
        Ok(())
    }

    fn generate_key(&self) -> Result<()> {
        let mut generate = Command::new(&self.agentctl);
        generate.args(["key", "generate", KEY, "--out"]).arg(self.keys.path());
        output(&mut generate)?;
        let public = self.keys.path().join(KEY).with_extension("pub");
        self.tree.copy(&public, &format!("usr/lib/agentd/keys/{KEY}.pub"), &|_| false)
    }
}

/// The unit files of a tree, in the folders of the vendor and of the administrator.
///
/// # Errors
/// There is none, or a folder could not be read.
pub fn units(tree: &Tree) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in [UNITS, ADMIN_UNITS] {
        let path = tree.path().join(folder);
        if !path.is_dir() {
            continue;
        }
        let cannot = || format!("cannot read {}", path.display());
        for entry in fs::read_dir(&path).during(cannot)? {
            let name = entry.during(cannot)?.file_name();
            if Path::new(&name).extension().is_some_and(|ending| ending == "toml") {
                found.push(Path::new(folder).join(name));
            }
        }
    }
    found.sort();
    if found.is_empty() { Err(Error::new("there is no unit to sign")) } else { Ok(found) }
}

/// What a repository has and a machine does not need.
fn is_left_out(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let agents_in_go = path.parent().is_some_and(|folder| folder.join("main.go").is_file());
    matches!(&*name, "tests" | "examples" | "__pycache__")
        || name.ends_with("_test.go")
        || (agents_in_go && name.ends_with(".go"))
        // The agents' own module file; the programs are built from it.
        || path.ends_with("agents/go.mod")
}

/// Where cargo puts what it builds.
///
/// # Errors
/// Cargo does not say.
pub fn target_folder() -> Result<PathBuf> {
    let text = output(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).during(|| "cargo metadata did not write JSON".into())?;
    match metadata["target_directory"].as_str() {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Err(Error::new("cargo metadata names no target folder")),
    }
}
