//! What every verb is given: where the manager is, how to print, what time it is.

use std::path::{Path, PathBuf};

use agentd_protocol::unit::GetLogsRequest;
use agentd_protocol::unit::UnitRequest;
use agentd_protocol::{ActiveState, CallError, LoadState, UnitProperties, method};
use agentd_unit::UnitName;

use crate::args::{Format, Global};
use crate::client::{ANSWER, Client, ClientError};
use crate::exit::Failure;
use crate::print::Style;
use crate::print::time::Clock;

/// The setting of one call of agentctl.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The control socket.
    pub(crate) socket: PathBuf,
    /// Whether the manager is a user's: its journal is another one.
    pub(crate) user: bool,
    /// Text or JSON.
    pub(crate) format: Format,
    /// Wait for jobs.
    pub(crate) wait: bool,
    /// Errors only.
    pub(crate) quiet: bool,
    /// Lists have headers and sums.
    pub(crate) legend: bool,
    /// Colours or none.
    pub(crate) style: Style,
    /// Now and here.
    pub(crate) clock: Clock,
}

impl Context {
    /// What the flags and the environment say.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let xdg = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Ok(Self {
            socket: socket(global.user, global.runtime_dir.as_deref(), xdg.as_deref())?,
            user: global.user,
            format: global.output,
            wait: !global.no_block,
            quiet: global.quiet,
            legend: !global.no_legend,
            style: Style::of_stdout(),
            clock: Clock::of_system(),
        })
    }

    /// Whether to print JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&self.socket)
    }
}

/// The control socket's place, design of the control interface: `/run/agentd`, or `$XDG_RUNTIME_DIR/agentd` with `--user`.
fn socket(user: bool, runtime_dir: Option<&Path>, xdg: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = match (runtime_dir, user, xdg) {
        (Some(dir), _, _) => dir.to_owned(),
        (None, false, _) => PathBuf::from("/run/agentd"),
        (None, true, Some(xdg)) if xdg.is_absolute() => xdg.join("agentd"),
        (None, true, _) => {
            return Err(Failure::Usage(
                "--user needs XDG_RUNTIME_DIR, which is not set; set it (usually to /run/user/UID) or name the \
                 folder with --runtime-dir DIR"
                    .to_owned(),
            ));
        }
    };
    Ok(folder.join("control.sock"))
}

/// All properties of a unit.
pub(crate) fn properties(client: &mut Client, unit: &UnitName) -> Result<UnitProperties, ClientError> {
    let request = UnitRequest { unit: unit.to_string() };
    Ok(*client.call::<method::Get>(&request, Some(ANSWER))?.properties)
}

/// The same, or what there is to say of a unit that nobody has heard of: a name more or less takes no answer from others.
pub(crate) fn properties_if_any(client: &mut Client, unit: &UnitName) -> Result<UnitProperties, ClientError> {
    match properties(client, unit) {
        Err(ClientError::Call(CallError::NoSuchUnit { .. })) => Ok(UnitProperties {
            id: unit.to_string(),
            names: vec![unit.to_string()],
            description: unit.to_string(),
            load_state: LoadState::NotFound,
            active_state: ActiveState::Inactive,
            sub_state: "dead".to_owned(),
            ..UnitProperties::default()
        }),
        answer => answer,
    }
}

/// A request for the last lines of a unit.
pub(crate) fn last_lines(unit: &UnitName, lines: Option<u32>, follow: bool) -> GetLogsRequest {
    GetLogsRequest { unit: unit.to_string(), lines, follow }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_where_the_manager_puts_it() {
        let (dir, xdg) = (Path::new("/tmp/x"), Path::new("/run/user/7"));
        for (user, runtime_dir, xdg, expected) in [
            (false, None, Some(xdg), "/run/agentd/control.sock"),
            (true, None, Some(xdg), "/run/user/7/agentd/control.sock"),
            (false, Some(dir), None, "/tmp/x/control.sock"),
            (true, Some(dir), None, "/tmp/x/control.sock"),
        ] {
            assert_eq!(socket(user, runtime_dir, xdg).unwrap(), Path::new(expected));
        }
    }

    #[test]
    fn a_user_without_a_runtime_folder_is_told_what_to_set() {
        for xdg in [None, Some(Path::new("relative"))] {
            let failure = socket(true, None, xdg).unwrap_err();
            assert_eq!(failure.exit() as u8, 2);
            assert!(failure.to_string().contains("XDG_RUNTIME_DIR"));
        }
    }
}
