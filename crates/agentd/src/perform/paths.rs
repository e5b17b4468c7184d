//! What path units wait for: looked at when they begin to wait, and again whenever inotify(7) tells of the paths or of
//! what leads to them. Nothing is looked at by the clock.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd_linux::epoll::Epoll;
use agentd_linux::paths::{Interest, PathWatch, WatchId};
use agentd_unit::sections::{PathSection, PathWatch as Kind};
use agentd_unit::{Unit, UnitName, UnitSet};

use super::conditions;
use crate::takeover::handover::{Handover, Item};

/// Tokens of paths have this bit, those of sockets have not.
pub const TOKENS: u64 = 1 << 63;

/// One path unit.
#[derive(Debug)]
struct Held {
    unit: Arc<Unit>,
    /// Which of its paths were there when they were last looked at.
    existed: Vec<bool>,
    /// While it waits: what tells, its name, and the watch of each path itself.
    waits: Option<(PathWatch, u64, Vec<Option<WatchId>>)>,
    /// What the manager before has left: it has told since of what happened, and the watch of each path itself.
    left: Option<(PathWatch, Vec<Option<WatchId>>)>,
}

/// All path units that wait, or whose unit runs.
#[derive(Debug, Default)]
pub struct Paths {
    units: BTreeMap<UnitName, Held>,
    names: HashMap<u64, UnitName>,
    last_token: u64,
    /// While a re-execution waits: nothing is told of any path.
    is_held: bool,
}

impl Paths {
    /// Begins to wait; the path, if there is nothing to wait for.
    ///
    /// # Errors
    /// One sentence: the path, the call and the errno.
    pub fn watch(&mut self, epoll: &Epoll, unit: &Arc<Unit>, first: bool) -> Result<Option<PathBuf>, String> {
        let section = unit.as_path().ok_or_else(|| format!("{} is no path unit", unit.name))?;
        self.stop(epoll, &unit.name);
        if first && section.make_directory {
            make_folders(section)?;
        }
        if first || !self.units.contains_key(&unit.name) {
            let existed = section.watches.iter().map(|(kind, path)| is_there(*kind, path)).collect();
            self.units.insert(unit.name.clone(), Held::new(unit, existed));
        }
        let Some(held) = self.units.get_mut(&unit.name) else { return Ok(None) };
        let (watch, told, before) = match held.left.take() {
            Some((watch, own)) if self.is_held => (watch, Vec::new(), Some(own)),
            Some((watch, own)) => {
                let told = watch.drain().map_err(|error| format!("inotify: {error}"))?;
                (watch, told, Some(own))
            }
            None => (new_watch()?, Vec::new(), None),
        };
        let own = match &before {
            Some(own) if self.is_held => own.clone(),
            _ => held.look_out(&watch)?,
        };
        self.last_token += 1;
        let token = TOKENS | self.last_token;
        // While it is held the successor, as it begins to wait, finds what is so already or has been told of.
        if !self.is_held {
            // Looked at behind the watches, so that nothing can happen in between.
            if let Some(path) = held.happened(&told, before.as_ref().unwrap_or(&own), &own) {
                return Ok(Some(path));
            }
            epoll.add(&watch, token).map_err(|error| format!("epoll: {error}"))?;
        }
        self.names.insert(token, unit.name.clone());
        held.waits = Some((watch, token, own));
        Ok(None)
    }

    /// Has nothing told of any path: units that come and go all the time would never let a re-execution begin.
    pub fn hold(&mut self, epoll: &Epoll) {
        self.is_held = true;
        for (watch, ..) in self.units.values().filter_map(|held| held.waits.as_ref()) {
            // An error says that it was not in the set.
            let _not_there = epoll.remove(watch);
        }
    }

    /// Tells of paths again; what has happened meanwhile.
    pub fn go_on(&mut self, epoll: &Epoll) -> Vec<(UnitName, PathBuf)> {
        self.is_held = false;
        for (watch, token, _) in self.units.values().filter_map(|held| held.waits.as_ref()) {
            if let Err(error) = epoll.add(watch, *token) {
                tracing::error!(%error, "paths cannot be waited for");
            }
        }
        let mut tokens: Vec<u64> = self.names.keys().copied().collect();
        tokens.sort_unstable();
        tokens.into_iter().filter_map(|token| self.woken(epoll, token)).collect()
    }

    /// Takes what the manager before has left of path units that are still there, and watch as many paths.
    pub fn inherit(&mut self, held: &mut Handover<OwnedFd>, loaded: &UnitSet) {
        let left = held.take(|item, fd| match item {
            Item::Path { unit, existed, own } => Ok((unit, existed, own, fd)),
            other => Err((other, fd)),
        });
        for (name, existed, own, fd) in left {
            let Some(unit) = loaded.get(&name) else { continue };
            if unit.as_path().is_none_or(|section| section.watches.len() != existed.len()) {
                continue;
            }
            let own = own.into_iter().map(|id| id.map(WatchId)).collect();
            let left = fd.map(|fd| (PathWatch::from(fd), own));
            self.units.insert(name, Held { left, ..Held::new(unit, existed) });
        }
    }

    /// All that a successor goes on with.
    pub fn hand_on(&self) -> impl Iterator<Item = (Item, Option<BorrowedFd<'_>>)> {
        self.units.iter().map(|(unit, held)| {
            let own = held.waits.iter().flat_map(|(_, _, own)| own);
            let own = own.map(|id| id.map(|WatchId(number)| number)).collect();
            let item = Item::Path { unit: unit.clone(), existed: held.existed.clone(), own };
            (item, held.waits.as_ref().map(|(watch, ..)| watch.as_fd()))
        })
    }

    /// Waits no more, and forgets what was there.
    pub fn unwatch(&mut self, epoll: &Epoll, name: &UnitName) {
        self.stop(epoll, name);
        self.units.remove(name);
    }

    fn stop(&mut self, epoll: &Epoll, name: &UnitName) {
        let Some((watch, token, _)) = self.units.get_mut(name).and_then(|held| held.waits.take()) else {
            return;
        };
        self.names.remove(&token);
        // An error says that it was not in the set.
        let _not_there = epoll.remove(&watch);
    }

    /// Something was told under this name: the unit and the path, if what it waits for has happened.
    pub fn woken(&mut self, epoll: &Epoll, token: u64) -> Option<(UnitName, PathBuf)> {
        let name = self.names.get(&token)?.clone();
        let held = self.units.get_mut(&name)?;
        let (watch, token, own) = held.waits.take()?;
        let told = watch.drain().unwrap_or_else(|error| {
            tracing::error!(unit = %name, %error, "what happens to its paths cannot be read");
            Vec::new()
        });
        // What leads to the paths may be other folders now.
        let renewed = held.look_out(&watch).unwrap_or_else(|error| {
            tracing::error!(unit = %name, "{error}");
            own.clone()
        });
        let happened = held.happened(&told, &own, &renewed);
        held.waits = Some((watch, token, renewed));
        if happened.is_some() {
            self.stop(epoll, &name);
        }
        happened.map(|path| (name, path))
    }
}

impl Held {
    fn new(unit: &Arc<Unit>, existed: Vec<bool>) -> Self {
        Self { unit: Arc::clone(unit), existed, waits: None, left: None }
    }

    fn watches(&self) -> &[(Kind, PathBuf)] {
        self.unit.as_path().map_or(&[], |section| &section.watches)
    }

    /// Watches all paths as they stand; the watch of each path itself, where it is there.
    fn look_out(&self, watch: &PathWatch) -> Result<Vec<Option<WatchId>>, String> {
        let mut own = Vec::new();
        for (kind, path) in self.watches() {
            let interest = match kind {
                Kind::Exists => Interest::Presence,
                Kind::ExistsGlob | Kind::DirectoryNotEmpty => Interest::Entries,
                Kind::Changed => Interest::Changes,
                Kind::Modified => Interest::Writes,
            };
            let failed = |error: io::Error| format!("{}: inotify_add_watch: {error}", path.display());
            if *kind == Kind::ExistsGlob {
                for folder in conditions::folders_of_glob(&path.to_string_lossy()) {
                    watch.watch(&folder, interest).map_err(failed)?;
                }
                own.push(None);
            } else {
                own.push(watch.watch(path, interest).map_err(failed)?);
            }
        }
        Ok(own)
    }

    /// The first path at which what is waited for has happened: by what was told of it, or by how it stands. A path that
    /// means another file than before, as a link on the way is another one, has changed.
    fn happened(
        &mut self,
        told: &[WatchId],
        own: &[Option<WatchId>],
        renewed: &[Option<WatchId>],
    ) -> Option<PathBuf> {
        let now: Vec<bool> = self.watches().iter().map(|(kind, path)| is_there(*kind, path)).collect();
        let was = std::mem::replace(&mut self.existed, now);
        let mut each = self.watches().iter().zip(&self.existed).zip(was).zip(own.iter().zip(renewed));
        each.find_map(|((((kind, path), now), was), (own, renewed))| {
            let holds = match kind {
                Kind::Exists | Kind::ExistsGlob | Kind::DirectoryNotEmpty => *now,
                Kind::Changed | Kind::Modified => {
                    *now != was || own != renewed || own.is_some_and(|own| told.contains(&own))
                }
            };
            holds.then(|| path.clone())
        })
    }
}

fn new_watch() -> Result<PathWatch, String> {
    PathWatch::new().map_err(|error| {
        format!("inotify_init: {error}; fs.inotify.max_user_instances says how many there may be")
    })
}

fn is_there(kind: Kind, path: &Path) -> bool {
    match kind {
        Kind::Exists | Kind::Changed | Kind::Modified => path.exists(),
        Kind::ExistsGlob => conditions::glob(Path::new("/"), &path.to_string_lossy()),
        // As systemd has it: hidden files and the copies of editors do not count.
        Kind::DirectoryNotEmpty => fs::read_dir(path).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                !name.starts_with('.') && !name.ends_with('~')
            })
        }),
    }
}

/// `MakeDirectory`: all that is waited for but what only has to come to be.
fn make_folders(section: &PathSection) -> Result<(), String> {
    let wanted = section.watches.iter().filter(|(kind, _)| !matches!(kind, Kind::Exists | Kind::ExistsGlob));
    for (_, path) in wanted.filter(|(_, path)| !path.exists()) {
        let mode = section.directory_mode;
        let made = fs::DirBuilder::new().recursive(true).mode(mode).create(path);
        let made = made.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
        made.map_err(|error| format!("MakeDirectory: {}: {error}", path.display()))?;
    }
    Ok(())
}
