//! What comes in at sockets that are armed, and what happens at paths that are waited for.

use std::collections::VecDeque;
use std::time::Duration;

use agentd_engine::Event;

use crate::perform::paths::TOKENS;
use crate::world::World;

/// Tells of each armed socket that something came in for, and of each path unit that has waited long enough. Returns
/// whether there may be more.
pub fn drain(world: &mut World, events: &mut VecDeque<Event>) -> bool {
    let World { sockets, paths, .. } = world;
    let mut tokens = Vec::new();
    if let Err(error) = sockets.epoll.wait(&mut tokens, Some(Duration::ZERO)) {
        tracing::error!(%error, "sockets and paths cannot be waited for");
    }
    let more = !tokens.is_empty();
    tokens.sort_unstable();
    tokens.dedup();
    for token in tokens {
        if token & TOKENS == 0 {
            events.extend(sockets.woken(token).map(|unit| Event::Traffic { unit, path: None }));
        } else if let Some((unit, path)) = paths.woken(&sockets.epoll, token) {
            events.push_back(Event::Traffic { unit, path: Some(path.display().to_string()) });
        }
    }
    more
}
