//! The unit files of the corpus under the real systemd, as the PID 1 of a container on this kernel: each unit has the
//! edges there that agentd gives it, and `systemctl show` tells of it what `agentctl show` does, or docs/differences.md
//! names the rule by which they differ.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::compare::UP;
use super::context::Context;
use super::{Scenario, expect};
use crate::corpus;
use crate::error::{During, Result};
use crate::run::{cargo, root, run};
use crate::scratch::Scratch;

/// See the module.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "container::same-edges-as-systemd", run: |context| compare(context, "edges") },
    Scenario { name: "container::same-properties-as-systemd", run: |context| compare(context, "properties") },
];

/// Tells the links in `.wants` and `.requires` that the container itself has, as FOLDER/UNIT.
const LINKS: &str = "cd / && for folder in etc/systemd/system usr/lib/systemd/system run/systemd/generator*; do \
                     [ ! -d $folder ] || find $folder -type l -path '*.*s/*' -printf '%P\\n'; done";

/// The types that agentd has.
const TYPES: [&str; 6] = ["service", "timer", "socket", "target", "path", "slice"];

/// By an example of `agentd-unit`.
fn compare(context: &mut Context, example: &str) -> Result<()> {
    let (_set, packages) = corpus::fetch()?;
    let mut files = BTreeMap::new();
    for package in entries(&packages)? {
        for folder in ["lib/systemd/system", "usr/lib/systemd/system"] {
            find(&package.join(folder), Path::new(""), &mut files)?;
        }
    }
    // Nothing of the corpus is to start: the container has a target of its own.
    files.remove("default.target");
    let scratch = Scratch::new(example)?;
    let folder = scratch.path().join("units");
    for (name, path) in &files {
        copy(path, &folder.join(name))?;
    }
    let shown = {
        let mut container = context.container_of_systemd(|tree| {
            for (name, path) in &files {
                copy(path, &tree.path().join("etc/systemd/system").join(name))?;
            }
            tree.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/basic.target")
        })?;
        container.run(UP)?;
        let links = container.run(LINKS)?;
        for link in links.text.lines().filter_map(|line| line.rsplit_once('/')) {
            pull(&folder, link)?;
        }
        let names: Vec<String> =
            files.keys().filter(|name| is_unit(name)).map(|name| format!("'{name}'")).collect();
        container.run(&format!("systemctl show --all -- {}", names.join(" ")))?
    };
    expect(shown.code == 0, || format!("systemctl show ended with {}:\n{}", shown.code, shown.text))?;
    let text = scratch.path().join("shown");
    fs::write(&text, shown.text).during(|| format!("cannot write {}", text.display()))?;
    let example = ["run", "--quiet", "--package", "agentd-unit", "--example", example, "--"];
    run(cargo(&example).args([folder, text, root().join("docs/differences.md")]))
}

/// A link in `.wants` or `.requires` for agentd too.
fn pull(units: &Path, (owner, unit): (&str, &str)) -> Result<()> {
    let of_ours = TYPES.iter().any(|kind| unit.ends_with(&format!(".{kind}")));
    if !of_ours || !(owner.ends_with(".wants") || owner.ends_with(".requires")) {
        return Ok(());
    }
    let folder = units.join(owner);
    fs::create_dir_all(&folder).during(|| format!("cannot make {}", folder.display()))?;
    let link = folder.join(unit);
    match std::os::unix::fs::symlink(format!("../{unit}"), &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error).during(|| format!("cannot make the link {}", link.display()))
        }
        _ => Ok(()),
    }
}

/// A unit by its name that can be asked for: no template, and no drop-in.
fn is_unit(name: &str) -> bool {
    let is_of_type = TYPES.iter().any(|kind| name.ends_with(&format!(".{kind}")));
    is_of_type && !name.contains('/') && !name.contains("@.")
}

/// The files of units and their drop-ins; of one name the first counts. What is empty would be a mask.
fn find(folder: &Path, inside: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for path in entries(folder)? {
        let Some(file) = path.file_name() else { continue };
        let name = inside.join(file);
        let meta = fs::symlink_metadata(&path).during(|| format!("cannot read {}", path.display()))?;
        let is_drop_ins = inside.as_os_str().is_empty() && file.to_string_lossy().ends_with(".d");
        if meta.is_dir() && is_drop_ins {
            find(&path, &name, files)?;
        } else if meta.is_file() && meta.len() > 0 || is_alias(&path, inside) {
            files.entry(name.to_string_lossy().into_owned()).or_insert(path);
        }
    }
    Ok(())
}

/// Another name of a unit beside it.
fn is_alias(path: &Path, inside: &Path) -> bool {
    inside.as_os_str().is_empty() && fs::read_link(path).is_ok_and(|target| target.components().count() == 1)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let found = fs::read_dir(folder).during(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = found.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    to.parent().map_or(Ok(()), fs::create_dir_all).during(cannot)?;
    if let Ok(target) = fs::read_link(from) {
        return std::os::unix::fs::symlink(target, to).during(cannot);
    }
    fs::copy(from, to).during(cannot).map(|_| ())
}
