//! The only place where events are born: what the kernel and the agents say, as the engine's [`Event`]s.
//!
//! No unit policy stands here. Requests of people are handed in by the control server.

pub mod children;
pub mod folder;
pub mod groups;
pub mod mains;
pub mod notifications;
pub mod signals;
pub mod traffic;
pub mod unit_files;
pub mod units;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use agentd_engine::{Deadlines, Event};
use agentd_linux::folder::FolderWatch;
use agentd_linux::notify::NotifySocket;
use agentd_linux::signal::SignalFd;
use agentd_linux::timer::{Clock, Timer, Wake};
use tokio::io::unix::AsyncFd;

use self::unit_files::UnitFilesWatch;
use crate::control::Inbound;
use crate::units::Errand;
use crate::world::World;

/// Which sources have something to say.
#[derive(Debug, Default)]
pub struct Woken {
    signals: bool,
    notify: bool,
    groups: bool,
    mains: bool,
    loaded: bool,
    stored: bool,
    traffic: bool,
    folder: bool,
    unit_files: bool,
    timers: [bool; 3],
    /// A request that came meanwhile.
    pub inbound: Option<Inbound>,
}

/// Descriptors of parts of the world that have something to say.
#[derive(Debug)]
pub struct Told {
    /// The cgroups' inotify descriptor, where there are cgroups.
    pub groups: Option<OwnedFd>,
    /// PID files, and main processes that are no children of ours.
    pub mains: OwnedFd,
    /// The thread that loads units.
    pub loaded: OwnedFd,
    /// What services have left with the manager.
    pub stored: OwnedFd,
    /// Sockets that are armed, and paths that are waited for.
    pub traffic: OwnedFd,
}

/// Every descriptor that the main loop waits on: a handful for the whole manager, none per unit.
#[derive(Debug)]
pub struct Sources {
    signals: AsyncFd<SignalFd>,
    notify: AsyncFd<NotifySocket>,
    groups: Option<AsyncFd<OwnedFd>>,
    mains: AsyncFd<OwnedFd>,
    loaded: AsyncFd<OwnedFd>,
    stored: AsyncFd<OwnedFd>,
    traffic: AsyncFd<OwnedFd>,
    /// None once everything is being stopped.
    folder: Option<AsyncFd<FolderWatch>>,
    unit_files: Option<UnitFilesWatch>,
    timers: [AsyncFd<Timer>; 3],
    armed: Deadlines,
    /// A source that was not read to its end in the last turn.
    left: Woken,
}

impl Sources {
    /// Registers all sources with the runtime that this is called in.
    ///
    /// # Errors
    /// No descriptor left, or the kernel lacks epoll(7).
    pub fn new(signals: SignalFd, notify: NotifySocket, told: Told, folder: FolderWatch) -> io::Result<Self> {
        let timer = |clock| Timer::new(clock).and_then(registered);
        Ok(Self {
            signals: registered(signals)?,
            notify: registered(notify)?,
            groups: told.groups.map(registered).transpose()?,
            loaded: registered(told.loaded)?,
            stored: registered(told.stored)?,
            mains: registered(told.mains)?,
            traffic: registered(told.traffic)?,
            folder: Some(registered(folder)?),
            unit_files: None,
            timers: [timer(Clock::Monotonic)?, timer(Clock::Boottime)?, timer(Clock::Realtime)?],
            armed: Deadlines::default(),
            left: Woken::default(),
        })
    }

    /// Sets the timers to the engine's next deadlines; a timer whose deadline is unchanged costs nothing.
    pub fn arm(&mut self, deadlines: Deadlines) {
        let at = [
            (deadlines.monotonic != self.armed.monotonic).then_some(deadlines.monotonic.map(|at| at.0)),
            (deadlines.boottime != self.armed.boottime).then_some(deadlines.boottime.map(|at| at.0)),
            (deadlines.realtime != self.armed.realtime).then_some(
                deadlines
                    .realtime
                    .map(|at| Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or(0))),
            ),
        ];
        for (timer, at) in self.timers.iter().zip(at) {
            let Some(at) = at else { continue };
            if let Err(error) = timer.get_ref().set(at) {
                tracing::error!(%error, "a timer of the manager cannot be set");
            }
        }
        self.armed = deadlines;
    }

    /// Looks no more at the folders of units and at the runtime folder: for a manager that stops everything, and neither
    /// loads a unit nor makes a socket anew. The kernel waits for tens of milliseconds where it takes inotify(7) watches
    /// away, so that is done alongside, and long before the end, which would wait for it.
    pub fn forget_folders(&mut self) {
        close_alongside((self.unit_files.take(), self.folder.take()));
    }

    /// Closes all of them for good, which the end of the manager does not wait for.
    pub fn let_go(self) {
        close_alongside(self);
    }

    /// Has children looked at: of those that ended under a manager before nobody may tell any more.
    pub fn look_at_children(&mut self) {
        self.left.signals = true;
    }

    /// Waits until a source has something to say.
    pub async fn wait(&mut self) -> Woken {
        poll_fn(|cx| {
            let woken = self.poll(cx);
            if woken.any() { Poll::Ready(woken) } else { Poll::Pending }
        })
        .await
    }

    /// What has something to say now, without waiting.
    pub fn poll_now(&mut self) -> Woken {
        self.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Woken {
        let left = std::mem::take(&mut self.left);
        Woken {
            signals: ready(&self.signals, cx) || left.signals,
            notify: ready(&self.notify, cx) || left.notify,
            groups: self.groups.as_ref().is_some_and(|groups| ready(groups, cx)) || left.groups,
            mains: ready(&self.mains, cx),
            loaded: ready(&self.loaded, cx),
            stored: ready(&self.stored, cx),
            traffic: ready(&self.traffic, cx) || left.traffic,
            folder: self.folder.as_ref().is_some_and(|folder| ready(folder, cx)),
            unit_files: self.unit_files.as_ref().is_some_and(|watch| watch.poll(cx)),
            timers: self.timers.each_ref().map(|timer| ready(timer, cx)),
            inbound: None,
        }
    }

    /// Reads what the woken sources have, notifications before exits.
    pub fn drain(&mut self, woken: &Woken, world: &mut World, events: &mut VecDeque<Event>) {
        if woken.notify || woken.signals {
            self.left.notify = notifications::drain(self.notify.get_mut(), world, events);
        }
        if woken.signals {
            signals::drain(self.signals.get_ref(), world, events);
            // The kernel tells of a death once: nothing else would bring us back to those that were left.
            self.left.signals = world.children_left;
        }
        if woken.groups {
            groups::drain(world, events);
        }
        if woken.mains {
            mains::drain(world, events);
        }
        if woken.loaded {
            units::drain(world, events);
        }
        if woken.stored {
            world.stores.drain();
        }
        if woken.traffic {
            self.left.traffic = traffic::drain(world, events);
        }
        if let Some(folder) = self.folder.as_ref().filter(|_| woken.folder) {
            match folder.get_ref().drain() {
                Ok(something_left) => world.folder_changed |= something_left,
                Err(error) => tracing::error!(%error, "what happens in the runtime folder cannot be read"),
            }
        }
        if woken.unit_files {
            self.look_at_unit_files(world);
        }
        self.tick(woken, events);
    }

    /// Unit files that have changed and settled are loaded.
    fn look_at_unit_files(&mut self, world: &mut World) {
        let Some(watch) = &mut self.unit_files else { return };
        match watch.settled(world.now.monotonic.0, world.loading.is_busy()) {
            Ok(true) => world.errands.push(Errand::Watched(world.config.watch_units)),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "what happens in the folders of units cannot be read"),
        }
    }

    /// Watches the folders of units from now on.
    ///
    /// # Errors
    /// No descriptor is left for this user.
    pub fn watch_unit_files(&mut self, search: Vec<PathBuf>) -> io::Result<()> {
        self.unit_files = Some(UnitFilesWatch::new(search)?);
        Ok(())
    }

    /// The socket for notifications, for a manager that goes on with it.
    #[must_use]
    pub fn notify_socket(&self) -> BorrowedFd<'_> {
        self.notify.get_ref().as_fd()
    }

    /// Watches the runtime folder that stands there now.
    ///
    /// # Errors
    /// There is none, or no watch is left for this user.
    pub fn watch_folder(&self, path: &Path) -> io::Result<()> {
        self.folder.as_ref().map_or(Ok(()), |folder| folder.get_ref().watch(path))
    }

    /// Reads notifications from this socket from now on.
    ///
    /// # Errors
    /// The kernel's epoll(7) has no room.
    pub fn set_notify(&mut self, socket: NotifySocket) -> io::Result<()> {
        self.notify = registered(socket)?;
        Ok(())
    }

    fn tick(&mut self, woken: &Woken, events: &mut VecDeque<Event>) {
        let mut expired = false;
        for (timer, woken) in self.timers.iter().zip(woken.timers) {
            if !woken {
                continue;
            }
            match timer.get_ref().read() {
                Ok(Wake::NotYet) => {}
                Ok(Wake::Expired) => expired = true,
                Ok(Wake::ClockChanged) => events.push_back(Event::ClockChanged),
                Err(error) => tracing::error!(%error, "a timer of the manager cannot be read"),
            }
        }
        if expired || woken.timers[2] {
            // What expired is disarmed now; whatever the engine answers is set anew.
            self.armed = Deadlines::default();
        }
        if expired {
            events.push_back(Event::Tick);
        }
    }
}

impl Woken {
    /// Woken by a request alone.
    #[must_use]
    pub fn by(inbound: Inbound) -> Self {
        Self { inbound: Some(inbound), ..Self::default() }
    }

    fn any(&self) -> bool {
        self.signals
            || self.notify
            || self.groups
            || self.mains
            || self.loaded
            || self.stored
            || self.traffic
            || self.folder
            || self.unit_files
            || self.timers.contains(&true)
    }
}

/// Closes what the kernel takes long to close on a thread of its own; here where there is none.
fn close_alongside(it: impl Send + 'static) {
    let thread = std::thread::Builder::new().name("sources".into());
    if let Err(error) = thread.spawn(move || drop(it)) {
        tracing::debug!(%error, "there is no thread that closes the sources");
    }
}

/// Registers a source with the runtime.
fn registered<T: AsRawFd>(source: T) -> io::Result<AsyncFd<T>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe, as it asks that the descriptor lives as long as the source; each source here \
                  owns its descriptor"
    )]
    AsyncFd::new(source)
}

/// Whether the descriptor became readable, taking the readiness: what comes after the reading is told again.
fn ready<T: AsRawFd>(source: &AsyncFd<T>, cx: &mut Context<'_>) -> bool {
    match source.poll_read_ready(cx) {
        Poll::Ready(Ok(mut guard)) => {
            guard.clear_ready();
            // The next readiness must wake this task, so the interest is registered again at once.
            if let Poll::Ready(Ok(mut again)) = source.poll_read_ready(cx) {
                again.clear_ready();
            }
            true
        }
        Poll::Ready(Err(error)) => {
            tracing::error!(%error, "a source of events cannot be waited for");
            false
        }
        Poll::Pending => false,
    }
}
