//! Sockets and path units as clients see them.

use agentd_engine::UnitView;
use agentd_protocol::manager::{PathInfo, SocketInfo};
use agentd_protocol::unit::UnitProperties;
use agentd_unit::sections::ListenKind;
use agentd_unit::{Body, UnitName};

use super::view::active;

/// Fills in what only they have, and what a unit starts.
pub fn describe(view: &UnitView, p: &mut UnitProperties) {
    p.triggers = view.triggers.iter().map(UnitName::to_string).collect();
    match &view.unit.body {
        Body::Socket(section) => {
            let lines = section.listen.iter().map(|l| format!("{} ({})", l.address, kind(l.kind)));
            p.listen = lines.collect();
        }
        Body::Path(section) => {
            let lines =
                section.watches.iter().map(|(watch, path)| format!("{} ({})", path.display(), watch.key()));
            p.paths = lines.collect();
        }
        Body::Service(_) | Body::Timer(_) | Body::Target | Body::Slice(_) => {}
    }
    if let Some(socket) = view.socket {
        (p.n_accepted, p.n_connections, p.n_refused) = (socket.accepted, socket.connections, socket.refused);
    }
}

/// The lines of `list-sockets`, by address.
pub fn sockets(units: impl Iterator<Item = UnitView>) -> Vec<SocketInfo> {
    let mut lines = Vec::new();
    for view in units {
        let Some(section) = view.unit.as_socket() else { continue };
        let unit = match &view.triggers {
            Some(unit) => unit.to_string(),
            None => format!("{}@.service", view.unit.name.stem()),
        };
        lines.extend(section.listen.iter().map(|listen| SocketInfo {
            id: view.unit.name.to_string(),
            listen: listen.address.to_string(),
            kind: kind(listen.kind).to_owned(),
            unit: unit.clone(),
            active_state: active(view.active),
            sub_state: view.sub.to_owned(),
        }));
    }
    lines.sort_by(|a, b| (&a.listen, &a.id).cmp(&(&b.listen, &b.id)));
    lines
}

/// The lines of `list-paths`, by path.
pub fn paths(units: impl Iterator<Item = UnitView>) -> Vec<PathInfo> {
    let mut lines = Vec::new();
    for view in units {
        let Some(section) = view.unit.as_path() else { continue };
        lines.extend(section.watches.iter().map(|(watch, path)| PathInfo {
            id: view.unit.name.to_string(),
            path: path.display().to_string(),
            condition: watch.key().to_owned(),
            unit: view.triggers.as_ref().map(UnitName::to_string).unwrap_or_default(),
            active_state: active(view.active),
            sub_state: view.sub.to_owned(),
        }));
    }
    lines.sort_by(|a, b| (&a.path, &a.id).cmp(&(&b.path, &b.id)));
    lines
}

/// The word for a kind of listener: its key without `Listen`.
fn kind(kind: ListenKind) -> &'static str {
    kind.key().trim_start_matches("Listen")
}
