//! Who may do what: anyone may read; root, the manager's own user and the group `agentd` may act. A process inside a
//! unit, root or not, may act on its own unit only, unless the unit's `ControlAccess` says otherwise.

use agentd_protocol::{CallError, Request};
use agentd_unit::UnitName;
use agentd_unit::sections::ControlAccess;

/// Who is at the other end of a connection, as the kernel says (SO_PEERCRED, unix(7)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The process that connected.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group and supplementary groups.
    pub groups: Vec<u32>,
}

/// What the manager knows of itself for the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user that the manager runs as.
    pub uid: u32,
    /// The group whose members may act.
    pub group: Option<u32>,
}

/// Decides whether the peer may make the request. `unit`: the unit in which it lives, with that unit's `ControlAccess`.
///
/// # Errors
/// [`CallError::NotPermitted`] with the reason and what to do.
pub fn check(
    peer: &Peer,
    unit: Option<&(UnitName, ControlAccess)>,
    owner: Owner,
    request: &Request,
) -> Result<(), CallError> {
    if request.is_read() {
        return Ok(());
    }
    let refused = |message: String| Err(CallError::NotPermitted { message });
    if !is_owner(peer, owner) {
        return refused(format!(
            "user {} may read but not act; become root or join the group 'agentd'",
            peer.uid
        ));
    }
    match unit {
        None | Some((_, ControlAccess::All)) => Ok(()),
        Some((unit, ControlAccess::Own)) if request.unit() == Some(unit.as_str()) => Ok(()),
        Some((unit, ControlAccess::Own)) => refused(format!(
            "a process of {unit} may act on its own unit only; [Agent] ControlAccess = \"all\" would allow more"
        )),
        Some((unit, ControlAccess::None)) => {
            refused(format!("a process of {unit} may not act: its unit has [Agent] ControlAccess = \"none\""))
        }
    }
}

/// Whether the peer's user may act at all.
#[must_use]
pub fn is_owner(peer: &Peer, owner: Owner) -> bool {
    peer.uid == 0 || peer.uid == owner.uid || owner.group.is_some_and(|group| peer.groups.contains(&group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::manager::{Empty, JobRequest, ShutdownRequest};
    use agentd_protocol::{JobMode, ShutdownKind};

    fn start(unit: &str) -> Request {
        Request::StartUnit(JobRequest { unit: unit.into(), mode: JobMode::Replace, wait: true })
    }

    fn peer(
        uid: u32,
        groups: &[u32],
        unit: Option<ControlAccess>,
    ) -> (Peer, Option<(UnitName, ControlAccess)>) {
        let unit = unit.map(|access| (UnitName::parse("own.service").unwrap(), access));
        (Peer { pid: 1, uid, groups: groups.to_vec() }, unit)
    }

    #[test]
    fn anyone_reads_and_few_act() {
        let owner = Owner { uid: 500, group: Some(70) };
        let off = || Request::Shutdown(ShutdownRequest { kind: ShutdownKind::Poweroff, exit_code: None });
        let read = || Request::ListTimers(Empty {});
        for (case, (peer, unit), request, allowed) in [
            ("a stranger reads", peer(1000, &[], None), read(), true),
            ("a stranger acts", peer(1000, &[], None), start("a.service"), false),
            ("root acts", peer(0, &[], None), off(), true),
            ("the manager's user acts", peer(500, &[], None), off(), true),
            ("a member of the group acts", peer(1000, &[5, 70], None), off(), true),
            ("an agent reads", peer(0, &[], Some(ControlAccess::None)), read(), true),
            ("an agent acts on itself", peer(0, &[], Some(ControlAccess::Own)), start("own.service"), true),
            ("an agent acts on another", peer(0, &[], Some(ControlAccess::Own)), start("a.service"), false),
            ("an agent switches off", peer(0, &[], Some(ControlAccess::Own)), off(), false),
            ("an agent with all acts", peer(0, &[], Some(ControlAccess::All)), off(), true),
            ("an agent with all but no rights", peer(9, &[], Some(ControlAccess::All)), off(), false),
            ("an agent with none", peer(0, &[], Some(ControlAccess::None)), start("own.service"), false),
        ] {
            assert_eq!(check(&peer, unit.as_ref(), owner, &request).is_ok(), allowed, "{case}");
        }
    }
}
