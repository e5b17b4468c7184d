//! The manager's own folder, which cleaners of temporary files empty: what is missing there is made anew at once.

use std::io;
use std::path::PathBuf;

use agentd_linux::folder::FolderWatch;
use agentd_linux::notify::NotifySocket;

use crate::boot::ground;
use crate::config::Folders;
use crate::control::server::Server;
use crate::watch::Sources;
use crate::world::World;

/// Watches the runtime folder.
///
/// # Errors
/// No descriptor, or no watch, is left for this user.
pub fn watch(folders: &Folders) -> io::Result<FolderWatch> {
    let watch = FolderWatch::new()?;
    watch.watch(&folders.runtime)?;
    Ok(watch)
}

/// Makes the folder, the sockets and the lock anew, each where it is missing. What cannot be made is logged; the next
/// thing that leaves the folder, or SIGUSR1 for the control socket, tries again.
pub fn restore(world: &mut World, sources: &mut Sources, control: &mut Server) {
    let folders = world.config.folders.clone();
    let say = |path: PathBuf, result: Result<(), String>| match result {
        Ok(()) => tracing::warn!("{} was removed by somebody else and was made anew", path.display()),
        Err(error) => tracing::error!("{} was removed and cannot be made anew: {error}", path.display()),
    };
    let gone = |path: &PathBuf| {
        std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    if gone(&folders.runtime) {
        say(
            folders.runtime.clone(),
            ground::runtime_folder(&folders.runtime, world.owner.uid).map_err(|e| e.to_string()),
        );
    }
    if let Err(error) = sources.watch_folder(&folders.runtime) {
        tracing::error!(%error, "{} cannot be watched", folders.runtime.display());
    }
    if gone(&folders.control_socket()) {
        say(folders.control_socket(), control.listen(None).map_err(|e| e.to_string()));
    }
    if gone(&folders.notify_socket()) {
        let bound =
            NotifySocket::bind(&folders.notify_socket()).and_then(|socket| sources.set_notify(socket));
        say(folders.notify_socket(), bound.map_err(|e| e.to_string()));
    }
    if gone(&folders.lock()) {
        let lock = ground::lock(&folders.lock()).map(|lock| world.lock = lock);
        say(folders.lock(), lock.map_err(|e| e.to_string()));
    }
}
