//! What may be executed, and how to execute exactly what was verified.
//!
//! # Invariants
//!
//! - A file is opened once; what is hashed is what that descriptor holds. It is not read again where it has not changed
//!   since it was hashed the last time ([`Digests`]).
//! - In `enforce` the program that runs is that descriptor, or a path that nobody but the manager's own user can change
//!   and that still names the verified inode, or a private copy of the verified bytes.
//! - Nothing is executed to learn what it is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agentd_linux::executable::{PathError, settled_path};
use agentd_trust::{Decision, KeyRing, Policy, Sha256Digest, TrustError, Verdict, decide, judge, name};
use agentd_unit::{Unit, UnitName};

use super::archive;
use super::digests::Digests;

/// The policy and the keys.
#[derive(Debug)]
pub struct Trust {
    /// What happens to what is not signed.
    pub policy: Policy,
    /// The keys that may sign.
    pub ring: KeyRing,
    /// Whose files count as unchangeable: root's, and a user manager's own.
    pub owners: Vec<u32>,
    /// Where private copies are put.
    pub copies: PathBuf,
    /// Whether execveat(2) by descriptor names the process right: Linux 6.14.
    pub by_descriptor: bool,
    /// The runs that have copies.
    pub copied: RefCell<BTreeSet<String>>,
    /// What programs hold that were hashed before.
    pub digests: RefCell<Digests>,
}

/// What to hand to execve.
#[derive(Debug)]
pub enum Executable {
    /// This path.
    Path(PathBuf),
    /// This descriptor.
    Descriptor(OwnedFd),
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The policy does not let it.
    #[error("{0}")]
    Trust(String),
    /// It cannot be read.
    #[error("{} cannot be {step}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Refusal {
    fn io(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, step, source }
    }
}

/// A Python module, ready to be handed to the runner.
#[derive(Debug)]
pub struct Module {
    /// The sealed bytes: the source of a module, or a zip of its package.
    pub bytes: OwnedFd,
}

impl Trust {
    /// The verdict on a unit's signature alone, without its programs.
    #[must_use]
    pub fn verdict(&self, unit: &Unit) -> Verdict {
        judge(unit.signature.as_deref(), &self.ring, |manifest| manifest.check_unit(&signed_name(&unit.name)))
    }

    /// Whether the program may run, and as what. `name` is what it was signed as; where links within `RootDirectory` lead
    /// to, `program` is another path.
    ///
    /// # Errors
    /// The policy refuses it, or it cannot be read.
    pub fn admit(&self, unit: &Unit, name: &Path, program: &Path, run: &str) -> Result<Executable, Refusal> {
        if self.policy == Policy::Off {
            return Ok(Executable::Path(program.to_owned()));
        }
        let mut file = open(program)?;
        let digest = self.digests.borrow_mut().of(&file, |meta| self.is_owned(meta));
        let digest = digest.map_err(Refusal::io("read", program))?;
        self.check(unit, name, digest)?;
        if self.policy != Policy::Enforce {
            return Ok(Executable::Path(program.to_owned()));
        }
        io::Seek::rewind(&mut file).map_err(Refusal::io("read", program))?;
        self.executable(file, program, run, digest)
    }

    /// What runs exactly the verified bytes.
    fn executable(
        &self,
        mut file: File,
        program: &Path,
        run: &str,
        digest: Sha256Digest,
    ) -> Result<Executable, Refusal> {
        let owned = self.is_owned(&file.metadata().map_err(Refusal::io("looked at", program))?);
        let mut magic = [0_u8; 2];
        file.read_exact(&mut magic).map_err(Refusal::io("read", program))?;
        io::Seek::rewind(&mut file).map_err(Refusal::io("read", program))?;
        let script = &magic == b"#!";
        // Who else may write to it could do so between the look at it and the exec.
        if self.by_descriptor && !script && owned {
            return Ok(Executable::Descriptor(file.into()));
        }
        if self.is_settled(program, &file)? {
            return Ok(Executable::Path(program.to_owned()));
        }
        self.copy(file, program, run, digest).map(Executable::Path)
    }

    /// Whether only the owners can make the path name another file than this one, or change the file.
    fn is_settled(&self, program: &Path, file: &File) -> Result<bool, Refusal> {
        match settled_path(program, file, &self.owners) {
            Ok(_) => Ok(true),
            Err(PathError::Access { path, source }) => Err(Refusal::io("looked at", &path)(source)),
            Err(
                PathError::Owner { .. }
                | PathError::Writable { .. }
                | PathError::Replaced { .. }
                | PathError::Unresolvable { .. },
            ) => Ok(false),
        }
    }

    /// Whether only the owners can write to it: to a folder so that what lies in it and is theirs becomes another's.
    fn is_owned(&self, meta: &fs::Metadata) -> bool {
        let kind = meta.file_type();
        // Whoever can write to a sticky folder can put something there, but can neither remove nor rename what is the
        // owners', unlink(2). The mode of a symbolic link means nothing; its owner and its folder do.
        let harmless = kind.is_symlink() || kind.is_dir() && meta.mode() & 0o1000 != 0;
        self.owners.contains(&meta.uid()) && (harmless || meta.mode() & 0o022 == 0)
    }

    /// A copy that only the manager's user can change, under the program's own name. It is the copy that must hold what
    /// was verified: the file may have been changed meanwhile.
    fn copy(
        &self,
        mut file: File,
        program: &Path,
        run: &str,
        digest: Sha256Digest,
    ) -> Result<PathBuf, Refusal> {
        let folder = self.copies.join(run);
        self.copied.borrow_mut().insert(run.to_owned());
        let name = program.file_name().unwrap_or(program.as_os_str());
        let path = folder.join(name);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755).create(&folder).map_err(Refusal::io("copied", program))?;
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o755);
        let mut copy = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path).and_then(|()| options.open(&path))
            }
            result => result,
        }
        .map_err(Refusal::io("copied", program))?;
        let copied = io::copy(&mut file, &mut copy).and_then(|_| io::Seek::rewind(&mut copy));
        let copied = copied.and_then(|()| Sha256Digest::of_reader(&copy));
        if copied.map_err(Refusal::io("copied", program))? == digest {
            return Ok(path);
        }
        let text = format!("{} was changed while it was verified; start the unit again", program.display());
        Err(Refusal::Trust(text))
    }

    /// Removes the copies of a run.
    pub fn forget(&self, run: &str) {
        if !self.copied.borrow_mut().remove(run) {
            return;
        }
        let folder = self.copies.join(run);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "{} cannot be removed", folder.display());
            }
            _ => {}
        }
    }

    /// Reads, verifies and seals the module of a Python agent.
    ///
    /// # Errors
    /// The policy refuses it, or it cannot be read.
    pub fn admit_module(&self, unit: &Unit, module: &Path) -> Result<Module, Refusal> {
        let meta = fs::metadata(module).map_err(Refusal::io("read", module))?;
        let bytes = if meta.is_dir() { self.package(unit, module)? } else { self.source(unit, module)? };
        let sealed = agentd_linux::memfd::sealed(c"agentd-module", &bytes);
        Ok(Module { bytes: sealed.map_err(Refusal::io("copied", module))? })
    }

    fn source(&self, unit: &Unit, module: &Path) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        open(module)?.read_to_end(&mut bytes).map_err(Refusal::io("read", module))?;
        self.admit_bytes(unit, module, &bytes)?;
        Ok(bytes)
    }

    /// Whether these bytes are what was signed under the path: of a file that a unit reads, such as `EnvironmentFile`.
    ///
    /// # Errors
    /// The policy refuses them.
    pub fn admit_bytes(&self, unit: &Unit, path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
        if self.policy == Policy::Off {
            return Ok(());
        }
        self.check(unit, path, Sha256Digest::of(bytes))
    }

    /// The files below a folder that a unit uses as a whole, verified: no more of them and no fewer.
    ///
    /// # Errors
    /// The folder cannot be read, or is not as it was signed.
    pub fn admit_tree(&self, unit: &Unit, folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Refusal> {
        let tree = agentd_trust::tree::read(folder).map_err(Refusal::io("read", folder))?;
        if self.policy != Policy::Off {
            let digests: BTreeMap<String, Sha256Digest> = tree
                .iter()
                .map(|(path, bytes)| (path.display().to_string(), Sha256Digest::of(bytes)))
                .collect();
            let name = folder.display().to_string();
            self.decide(unit, folder, |manifest| manifest.check_tree(&name, &digests))?;
        }
        Ok(tree)
    }

    fn package(&self, unit: &Unit, package: &Path) -> Result<Vec<u8>, Refusal> {
        let tree = self.admit_tree(unit, package)?;
        archive::zip(package.parent().unwrap_or(package), &tree).map_err(Refusal::io("copied", package))
    }

    fn check(&self, unit: &Unit, path: &Path, digest: Sha256Digest) -> Result<(), Refusal> {
        let text = name::installed_name(path, None).map_err(|e| Refusal::Trust(e.to_string()))?;
        self.decide(unit, path, |manifest| manifest.check(&text, digest))
    }

    fn decide(
        &self,
        unit: &Unit,
        path: &Path,
        check: impl FnOnce(&agentd_trust::VerifiedManifest) -> Result<(), TrustError>,
    ) -> Result<(), Refusal> {
        let verdict = judge(unit.signature.as_deref(), &self.ring, |manifest| {
            manifest.check_unit(&signed_name(&unit.name))?;
            check(manifest)
        });
        match decide(self.policy, &verdict) {
            Decision::Allowed => Ok(()),
            Decision::AllowedWithWarning(line) => {
                tracing::warn!(unit = %unit.name, "{} runs all the same (trust policy warn): {line}", path.display());
                Ok(())
            }
            Decision::Refused(line) => Err(Refusal::Trust(line)),
        }
    }
}

/// The unit that a signature is for: the template of an instance, the unit itself otherwise.
#[must_use]
pub fn signed_name(unit: &UnitName) -> String {
    unit.template().as_ref().unwrap_or(unit).to_string()
}

/// Opens a regular file to be read, without waiting for a FIFO's writer.
fn open(path: &Path) -> Result<File, Refusal> {
    let file = File::options()
        .read(true)
        .custom_flags(agentd_linux::open::NONBLOCK | agentd_linux::open::NOCTTY)
        .open(path)
        .map_err(Refusal::io("opened", path))?;
    let meta = file.metadata().map_err(Refusal::io("looked at", path))?;
    if meta.is_file() {
        return Ok(file);
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "is no regular file");
    Err(Refusal::Io { path: path.to_owned(), step: "executed", source })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A policy whose owner is the test's user, and a program in a folder that is removed with it.
    struct Setup {
        trust: Trust,
        folder: PathBuf,
        program: PathBuf,
    }

    impl Setup {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("agentd-trust-{}-{name}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            let program = folder.join("program");
            fs::write(&program, "what was signed").unwrap();
            let own = fs::metadata(&program).unwrap().uid();
            let trust = Trust {
                policy: Policy::Enforce,
                ring: KeyRing::default(),
                owners: vec![0, own],
                copies: folder.join("copies"),
                by_descriptor: true,
                copied: RefCell::default(),
                digests: RefCell::default(),
            };
            let setup = Self { trust, folder, program };
            setup.mode(0o755, 0o755);
            setup
        }

        fn mode(&self, folder: u32, program: u32) {
            let set =
                |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            set(&self.folder, folder);
            set(&self.program, program);
        }

        fn executable(&self) -> Result<Executable, Refusal> {
            let digest = Sha256Digest::of(b"what was signed");
            self.trust.executable(open(&self.program).unwrap(), &self.program, "run", digest)
        }
    }

    impl Drop for Setup {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.folder).unwrap();
        }
    }

    #[test]
    fn a_path_is_settled_if_nobody_else_can_make_it_name_another_file() {
        let setup = Setup::new("settled");
        for (folder, program, settled) in [
            (0o755, 0o755, true),
            (0o1777, 0o755, true),
            (0o777, 0o755, false),
            (0o775, 0o755, false),
            (0o755, 0o775, false),
            (0o755, 0o1757, false),
        ] {
            setup.mode(folder, program);
            let file = open(&setup.program).unwrap();
            let found = setup.trust.is_settled(&setup.program, &file).unwrap();
            assert_eq!(found, settled, "{folder:o} {program:o}");
        }
    }

    #[test]
    fn what_others_can_write_to_runs_from_a_copy_of_what_was_verified() {
        let setup = Setup::new("copy");
        assert!(matches!(setup.executable().unwrap(), Executable::Descriptor(_)));
        setup.mode(0o755, 0o757);
        let Executable::Path(copy) = setup.executable().unwrap() else { panic!("the descriptor is no copy") };
        assert_eq!(fs::read(&copy).unwrap(), b"what was signed");
        assert_ne!(copy, setup.program);
        fs::write(&setup.program, "what was written since").unwrap();
        assert!(matches!(setup.executable(), Err(Refusal::Trust(line)) if line.contains("was changed")));
    }
}
