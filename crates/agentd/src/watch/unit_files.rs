//! Unit files that are dropped in, changed or taken away, noticed by inotify(7): `WatchUnits` in agentd.toml.
//!
//! # Invariants
//!
//! - Nothing is read before it has settled: nothing was written for [`QUIET`] ticks, and no file is open that was
//!   written to. Somebody who never stops writing is waited for no longer than [`LIMIT`].
//! - The timer runs only while something settles. Meanwhile the loop is woken by the timer alone, so that a flood of
//!   changes costs one wake-up a [`TICK`] and one loading a [`LIMIT`].
//! - The folders are watched before they are read: what changes later is told later.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::task::Context;
use std::time::Duration;

use agentd_linux::folder_tree::FolderTreeWatch;
use agentd_linux::timer::{Clock, Timer, Wake};
use tokio::io::unix::AsyncFd;

use super::{ready, registered};

/// How often the folders are looked at while they settle: short beside the time that people wait without noticing.
const TICK: Duration = Duration::from_millis(100);
/// Ticks without a change after which the folders have settled: longer than a script needs from one file to the next.
const QUIET: u32 = 3;
/// What a change waits at most while others go on: a file that is touched forever must not hide the rest.
const LIMIT: Duration = Duration::from_secs(5);
/// Folders beside the units that are read with them.
const BESIDE: [&str; 4] = [".d", ".wants", ".requires", ".upholds"];
/// How often a folder is looked for that comes and goes while it is.
const ATTEMPTS: usize = 8;

/// The folders of the search path, and what happens in them.
#[derive(Debug)]
pub struct UnitFilesWatch {
    search: Vec<PathBuf>,
    folders: AsyncFd<FolderTreeWatch>,
    timer: AsyncFd<Timer>,
    settling: Option<Settling>,
    /// What was said of folders that cannot be watched, so that it is said once.
    said: BTreeSet<String>,
}

/// Something changed, and more may follow.
#[derive(Debug, Clone, Copy)]
struct Settling {
    /// When the first change was seen, on the monotonic clock.
    since: Duration,
    /// Ticks in a row without a change.
    quiet: u32,
}

impl UnitFilesWatch {
    /// Watches the folders of a search path, those too that are not there yet.
    ///
    /// # Errors
    /// No descriptor is left for this user.
    pub fn new(search: Vec<PathBuf>) -> io::Result<Self> {
        let mut said = BTreeSet::new();
        let folders = watch_all(&search, FolderTreeWatch::new()?, &mut said);
        let timer = registered(Timer::new(Clock::Monotonic)?)?;
        Ok(Self { search, folders: registered(folders)?, timer, settling: None, said })
    }

    /// Whether there is something to look at.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> bool {
        if self.settling.is_some() { ready(&self.timer, cx) } else { ready(&self.folders, cx) }
    }

    /// Looks at what happened; whether there is something new that has settled. `busy`: units are being read just now.
    ///
    /// # Errors
    /// None that these descriptors can have.
    pub fn settled(&mut self, now: Duration, busy: bool) -> io::Result<bool> {
        if self.settling.is_some() && self.timer.get_ref().read()? != Wake::Expired {
            return Ok(false);
        }
        let changes = self.folders.get_mut().drain()?;
        let Some(mut settling) = self.settling.or(changes.any.then_some(Settling { since: now, quiet: 0 }))
        else {
            return Ok(false);
        };
        settling.quiet = if changes.any { 0 } else { settling.quiet + 1 };
        let rests = settling.quiet >= QUIET && !self.folders.get_ref().is_unfinished() && !busy;
        if rests || now.saturating_sub(settling.since) >= LIMIT {
            self.settling = None;
            self.renew();
            return Ok(true);
        }
        if changes.folders {
            self.look_again();
        }
        self.settling = Some(settling);
        self.timer.get_ref().set(Some(now + TICK))?;
        Ok(false)
    }

    /// Watches the folders that have come meanwhile too.
    fn look_again(&mut self) {
        watch_each(&self.search, self.folders.get_mut(), &mut self.said);
    }

    /// Watches what is there now, and nothing that was taken away or renamed.
    fn renew(&mut self) {
        let new = FolderTreeWatch::new()
            .map(|watch| watch_all(&self.search, watch, &mut self.said))
            .and_then(registered);
        match new {
            Ok(folders) => self.folders = folders,
            Err(error) => {
                tracing::error!(%error, "the folders of units cannot be watched anew, and are watched as they were");
                self.look_again();
                self.folders.get_mut().forget_unfinished();
            }
        }
    }
}

fn watch_all(search: &[PathBuf], mut watch: FolderTreeWatch, said: &mut BTreeSet<String>) -> FolderTreeWatch {
    watch_each(search, &mut watch, said);
    watch
}

fn watch_each(search: &[PathBuf], watch: &mut FolderTreeWatch, said: &mut BTreeSet<String>) {
    for tier in search {
        if let Err((folder, error)) = watch_tier(tier, watch) {
            let line = format!(
                "{} is not watched for units: {error}; 'agentctl daemon-reload' reads what changes there",
                folder.display()
            );
            if said.insert(line.clone()) {
                tracing::error!("{line}");
            }
        }
    }
}

type NotWatched = (PathBuf, io::Error);

/// Watches a folder of the search path with the folders beside its units, or else for it to come.
fn watch_tier(tier: &Path, watch: &mut FolderTreeWatch) -> Result<(), NotWatched> {
    for _ in 0..ATTEMPTS {
        // Where it is a link, or is replaced as a whole, only the folder above tells.
        let above = watch_above(tier, watch)?;
        match watch.watch(tier) {
            Ok(_) => return watch_beside(tier, watch),
            Err(error) if !is_missing(&error) => return Err((tier.to_owned(), error)),
            Err(_) if !above.is_dir() => return Ok(()),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Watches for the first folder on the way that is not there, or for the last one; that folder.
fn watch_above(tier: &Path, watch: &mut FolderTreeWatch) -> Result<PathBuf, NotWatched> {
    let mut wanted = tier;
    while let (Some(parent), Some(name)) = (wanted.parent(), wanted.file_name()) {
        match watch.watch_for(parent, name) {
            Ok(()) => break,
            Err(error) if is_missing(&error) => wanted = parent,
            Err(error) => return Err((parent.to_owned(), error)),
        }
    }
    Ok(wanted.to_owned())
}

fn watch_beside(tier: &Path, watch: &mut FolderTreeWatch) -> Result<(), NotWatched> {
    // What cannot be read is told by the loading.
    for entry in tier.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| BESIDE.iter().any(|ending| name.ends_with(ending))) {
            continue;
        }
        match watch.watch(&entry.path()) {
            Err(error) if !is_missing(&error) => return Err((entry.path(), error)),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// A watch whose clock and timer the test moves by hand: what was set is past at once.
    fn ticks(watch: &mut UnitFilesWatch, now: &mut Duration, count: u32) -> Vec<bool> {
        (0..count)
            .map(|_| {
                *now += TICK;
                watch.timer.get_ref().set(Some(MILLISECOND)).unwrap();
                watch.settled(*now, false).unwrap()
            })
            .collect()
    }

    fn in_folder(name: &str, test: impl FnOnce(&Path, &mut UnitFilesWatch, &mut Duration)) {
        let folder = std::env::temp_dir().join(format!("agentd-watch-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let mut watch = UnitFilesWatch::new(vec![folder.join("a/units")]).unwrap();
            test(&folder, &mut watch, &mut Duration::from_secs(100));
        });
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_change_settles_after_three_quiet_ticks_and_not_before_its_writer_has_closed_the_file() {
        in_folder("settles", |folder, watch, now| {
            let units = folder.join("a/units");
            assert!(!watch.settled(*now, false).unwrap(), "nothing happened");
            fs::create_dir_all(&units).unwrap();
            assert!(!watch.settled(*now, false).unwrap(), "a folder has come");
            let mut file = File::create(units.join("web.service")).unwrap();
            assert_eq!(ticks(watch, now, 10), [false; 10], "the file is open");
            file.write_all(b"[Service]\n").unwrap();
            drop(file);
            assert_eq!(ticks(watch, now, 4), [false, false, false, true]);
            assert!(watch.settling.is_none());
            assert!(!watch.settled(*now, false).unwrap(), "told once");
        });
    }

    #[test]
    fn a_file_that_is_written_forever_delays_the_rest_by_the_limit_at_most() {
        in_folder("forever", |folder, watch, now| {
            let units = folder.join("a/units");
            fs::create_dir_all(&units).unwrap();
            assert!(!watch.settled(*now, false).unwrap());
            let mut file = File::create(units.join("web.service")).unwrap();
            let limit = u32::try_from(LIMIT.as_millis() / TICK.as_millis()).unwrap();
            let mut loadings = 0;
            for _ in 0..3 * limit {
                file.write_all(b"#").unwrap();
                // Once it settled, the folders wake the loop; before, the timer.
                loadings += u32::from(ticks(watch, now, 1)[0]);
            }
            assert!((2..=3).contains(&loadings), "{loadings} loadings in three times the limit");
        });
    }

    #[test]
    fn folders_that_come_later_or_are_replaced_are_watched() {
        in_folder("later", |folder, watch, now| {
            let settle = |watch: &mut UnitFilesWatch, now: &mut Duration| {
                let first = watch.settled(*now, false).unwrap();
                first || ticks(watch, now, 5).contains(&true)
            };
            assert!(!settle(watch, now));
            fs::create_dir_all(folder.join("a/units/web.service.d")).unwrap();
            assert!(settle(watch, now), "the folder");
            fs::write(folder.join("a/units/web.service.d/10.conf"), "x").unwrap();
            assert!(settle(watch, now), "a drop-in");
            fs::create_dir_all(folder.join("b/default.target.wants")).unwrap();
            fs::rename(folder.join("a/units"), folder.join("a/old")).unwrap();
            assert!(settle(watch, now), "taken away");
            fs::rename(folder.join("b"), folder.join("a/units")).unwrap();
            assert!(settle(watch, now), "replaced");
            fs::write(folder.join("a/old/web.service"), "x").unwrap();
            assert!(!settle(watch, now), "the old folder is none of ours");
            fs::write(folder.join("a/units/default.target.wants/web.service"), "x").unwrap();
            assert!(settle(watch, now), "a folder that came in another");
            fs::create_dir(folder.join("a/units/other")).unwrap();
            assert!(settle(watch, now));
            fs::write(folder.join("a/units/other/web.service"), "x").unwrap();
            assert!(!settle(watch, now), "a folder that is not read");
        });
    }

    #[test]
    fn a_loading_that_is_under_way_is_waited_for() {
        in_folder("busy", |folder, watch, now| {
            fs::create_dir_all(folder.join("a/units")).unwrap();
            assert!(!watch.settled(*now, true).unwrap());
            for _ in 0..8 {
                *now += TICK;
                watch.timer.get_ref().set(Some(MILLISECOND)).unwrap();
                assert!(!watch.settled(*now, true).unwrap());
            }
            assert_eq!(ticks(watch, now, 1), [true]);
        });
    }
}
