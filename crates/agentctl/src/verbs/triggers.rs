//! `list-sockets` and `list-paths`: what starts units when something comes.

use std::io::Write;

use agentd_protocol::manager::{Empty, PathInfo, SocketInfo};
use agentd_protocol::method;

use super::list;
use crate::client::ANSWER;
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::print::table::{Cell, Table};
use crate::print::{json, one_line};

/// `agentctl list-sockets`.
pub(crate) fn sockets(context: &Context, out: &mut impl Write) -> Outcome {
    let sockets = context.connect()?.call::<method::ListSockets>(&Empty {}, Some(ANSWER))?.sockets;
    if context.is_json() {
        json(&sockets, out)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["LISTEN", "UNIT", "ACTIVATES"]);
    sockets.iter().for_each(|socket| table.row(socket_row(socket)));
    list::write(context, &table, ["socket", "sockets"], "", out)?;
    Ok(Exit::Done)
}

fn socket_row(socket: &SocketInfo) -> [Cell; 3] {
    [&socket.listen, &socket.id, &socket.unit].map(|text| one_line(text).into_owned().into())
}

/// `agentctl list-paths`.
pub(crate) fn paths(context: &Context, out: &mut impl Write) -> Outcome {
    let paths = context.connect()?.call::<method::ListPaths>(&Empty {}, Some(ANSWER))?.paths;
    if context.is_json() {
        json(&paths, out)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["PATH", "CONDITION", "UNIT", "ACTIVATES"]);
    paths.iter().for_each(|path| table.row(path_row(path)));
    list::write(context, &table, ["path", "paths"], "", out)?;
    Ok(Exit::Done)
}

fn path_row(path: &PathInfo) -> [Cell; 4] {
    [&path.path, &path.condition, &path.id, &path.unit].map(|text| one_line(text).into_owned().into())
}
