//! Enabling and masking: markers and masks in the control folders, each written whole or not at all.
//!
//! What stands below a control folder is not signed. So nothing here says what a unit *is*: a marker only lets the
//! `[Install]` of its own, signed file count or not, and a mask only takes away.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use agentd_protocol::CallError;
use agentd_protocol::unit_files::FileChange;
use agentd_protocol::words::FileChangeKind;
use agentd_unit::{LoadState, SearchPath, Unit, UnitName, UnitType};

/// What a mask leads to.
const NOTHING: &str = "/dev/null";

/// What is to be done with each of the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Part of what boots.
    Enable,
    /// Not part of what boots.
    Disable,
    /// Never to start.
    Mask,
    /// May start again.
    Unmask,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Change {
    /// What.
    pub wish: Wish,
    /// With which units.
    pub units: Vec<UnitName>,
    /// Until the next boot only.
    pub runtime: bool,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// The files, in order.
    pub changes: Vec<FileChange>,
    /// The units that the names came to.
    pub units: Vec<UnitName>,
    /// Those without `[Install]`.
    pub without_install: Vec<UnitName>,
}

/// Does it. `load` reads one unit by any of its names. All names are checked before the first file is written.
///
/// # Errors
/// A unit that is not there, is masked or cannot be loaded; a folder that cannot be written.
pub fn carry_out(
    change: &Change,
    search: &SearchPath,
    load: impl Fn(&UnitName) -> Unit,
) -> Result<Done, CallError> {
    let folder = search.control(change.runtime).ok_or_else(|| no_folder(&change.units))?;
    let mut done = Done::default();
    for name in &change.units {
        match change.wish {
            Wish::Mask | Wish::Unmask => done.units.push(name.clone()),
            Wish::Enable | Wish::Disable => match markable(name, change.wish, &load)? {
                Markable::Unit(id) => done.units.push(id),
                Markable::WithoutInstall(id) => done.without_install.push(id),
            },
        }
    }
    if change.runtime
        && let Some(lasting) = search.control(false)
    {
        done.units.iter().try_for_each(|unit| not_overruled(lasting, unit, change.wish))?;
    }
    let mut folders = Files { changes: Vec::new() };
    let result = done.units.iter().try_for_each(|unit| match change.wish {
        Wish::Enable => folders.mark(folder, unit, true),
        Wish::Disable => folders.mark(folder, unit, false),
        Wish::Mask => folders.mask(folder, unit),
        Wish::Unmask if change.runtime => folders.unmask(folder, unit),
        Wish::Unmask => [false, true]
            .into_iter()
            .filter_map(|runtime| search.control(runtime))
            .try_for_each(|folder| folders.unmask(folder, unit)),
    });
    done.changes = folders.changes;
    result.map(|()| done)
}

pub(super) fn no_folder(units: &[UnitName]) -> CallError {
    let unit = units.first().map(UnitName::to_string).unwrap_or_default();
    let message = "this manager has no control folder to keep that in: AGENTD_UNIT_PATH_EXCLUSIVE leaves it the folders \
                   of development alone; start it without, or write Enabled = false into [Install]";
    CallError::NotApplicable { unit, message: message.to_owned() }
}

/// What the name of a unit comes to that is to be enabled or disabled.
enum Markable {
    Unit(UnitName),
    WithoutInstall(UnitName),
}

fn markable(name: &UnitName, wish: Wish, load: &impl Fn(&UnitName) -> Unit) -> Result<Markable, CallError> {
    let text = name.to_string();
    if name.is_template() {
        let instance = text.replacen('@', "@NAME", 1);
        let message = format!("{name} is a template; name an instance of it, as in {instance}");
        return Err(CallError::NotApplicable { unit: text, message });
    }
    let unit = load(name);
    match &unit.load {
        LoadState::NotFound => {
            let message = format!("Unit file {name} does not exist.");
            return Err(CallError::NoSuchUnit { unit: text, message });
        }
        LoadState::Masked if wish == Wish::Enable => {
            let message = format!("Unit {name} is masked; 'agentctl unmask {name}' takes that back.");
            return Err(CallError::UnitMasked { unit: text, message });
        }
        // Nothing is known of a file that may not be trusted or read: there is no [Install] to let count.
        LoadState::Error(why) | LoadState::BadSetting(why) if wish == Wish::Enable => {
            return Err(CallError::LoadFailed { unit: text, message: why.clone() });
        }
        LoadState::Masked | LoadState::Error(_) | LoadState::BadSetting(_) => {
            return Ok(Markable::Unit(unit.name));
        }
        LoadState::Loaded => {}
    }
    if unit.install.present {
        return Ok(Markable::Unit(unit.name));
    }
    // The [Install] of a service that brings its own timer is the timer's.
    let timer =
        (unit.name.unit_type() == UnitType::Service).then(|| load(&unit.name.with_type(UnitType::Timer)));
    match timer {
        Some(timer) if timer.install.present && timer.fragment == unit.fragment => {
            Ok(Markable::Unit(timer.name))
        }
        _ => Ok(Markable::WithoutInstall(unit.name)),
    }
}

/// A marker that lasts decides over one that does not.
fn not_overruled(lasting: &Path, unit: &UnitName, wish: Wish) -> Result<(), CallError> {
    let against = match wish {
        Wish::Enable => lasting.join(format!("{unit}.disabled")),
        Wish::Disable => lasting.join(format!("{unit}.enabled")),
        Wish::Mask | Wish::Unmask => return Ok(()),
    };
    if fs::symlink_metadata(&against).is_err() {
        return Ok(());
    }
    let message = format!("{} decides over it; leave --runtime out", against.display());
    Err(CallError::NotApplicable { unit: unit.to_string(), message })
}

/// The files that were changed so far.
struct Files {
    changes: Vec<FileChange>,
}

impl Files {
    /// Writes the one marker and takes the other away, in that order: whenever it ends, one of them decides. Of both,
    /// the no does.
    fn mark(&mut self, folder: &Path, unit: &UnitName, enabled: bool) -> Result<(), CallError> {
        let (yes, no) = (folder.join(format!("{unit}.enabled")), folder.join(format!("{unit}.disabled")));
        let (wanted, other) = if enabled { (yes, no) } else { (no, yes) };
        if fs::symlink_metadata(&wanted).is_err() {
            make(folder)?;
            agentd_state::write_atomic(&wanted, b"", 0o644).map_err(|e| failed("written", &wanted, &e))?;
            self.push(FileChangeKind::Created, wanted, None);
        }
        self.remove(folder, other)
    }

    fn mask(&mut self, folder: &Path, unit: &UnitName) -> Result<(), CallError> {
        if masks(folder, unit).iter().any(|path| is_mask(path)) {
            return Ok(());
        }
        make(folder)?;
        let path = folder.join(unit.as_str());
        // symlink(2) is whole or not at all, and replaces nothing.
        symlink(NOTHING, &path)
            .and_then(|()| File::open(folder)?.sync_all())
            .map_err(|error| failed("made", &path, &error))?;
        self.push(FileChangeKind::Created, path, Some(NOTHING.to_owned()));
        Ok(())
    }

    fn unmask(&mut self, folder: &Path, unit: &UnitName) -> Result<(), CallError> {
        masks(folder, unit)
            .into_iter()
            .filter(|path| is_mask(path))
            .try_for_each(|path| self.remove(folder, path))
    }

    fn remove(&mut self, folder: &Path, path: PathBuf) -> Result<(), CallError> {
        match fs::remove_file(&path).and_then(|()| File::open(folder)?.sync_all()) {
            Ok(()) => self.push(FileChangeKind::Removed, path, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("removed", &path, &error)),
        }
        Ok(())
    }

    fn push(&mut self, kind: FileChangeKind, path: PathBuf, target: Option<String>) {
        self.changes.push(FileChange { kind, path: path.display().to_string(), target });
    }
}

/// Where a mask of the unit may lie: a person may have named it as a file in TOML.
fn masks(folder: &Path, unit: &UnitName) -> [PathBuf; 2] {
    [folder.join(unit.as_str()), folder.join(format!("{unit}.toml"))]
}

/// A link to /dev/null, or an empty file.
fn is_mask(path: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else { return false };
    if meta.is_symlink() {
        fs::read_link(path).is_ok_and(|target| target == Path::new(NOTHING))
    } else {
        meta.is_file() && meta.len() == 0
    }
}

pub(super) fn make(folder: &Path) -> Result<(), CallError> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
    made.map_err(|error| failed("made", folder, &error))
}

pub(super) fn failed(what: &str, path: &Path, error: &io::Error) -> CallError {
    let advice = if error.kind() == io::ErrorKind::ReadOnlyFilesystem {
        "; with --runtime it is kept below /run, until the next boot"
    } else {
        ""
    };
    CallError::Failed { message: format!("{} cannot be {what}: {error}{advice}", path.display()) }
}
