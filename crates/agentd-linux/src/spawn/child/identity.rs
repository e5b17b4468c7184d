//! Who the process becomes, and what it may do.

use super::super::raw::{self, CapabilitySets, Errno};
use super::super::step::Step;
use super::{At, Failure, Report, Walk};

impl Walk<'_> {
    pub(super) fn drop_bounding_set(&self) -> Result<(), Errno> {
        for number in 0..64 {
            if self.drop & (1 << number) != 0 {
                raw::prctl(libc::PR_CAPBSET_DROP, number, 0)?;
            }
        }
        Ok(())
    }

    /// Users of its own, if it is born within them, or makes them now; and their maps, by the parent's hand.
    pub(super) fn own_users(&mut self, born_within: bool) -> Result<(), Failure> {
        let Some(ask) = self.ask.filter(|ask| ask.born_within == born_within) else { return Ok(()) };
        if !born_within {
            // The last moment: within, nobody may set groups that are not mapped.
            if let Some(who) = &self.who {
                raw::set_groups(who.groups).at(Step::Group)?;
            }
            raw::unshare(libc::CLONE_NEWUSER).at(Step::PrivateUsers)?;
        }
        let question = Report { step: Report::ASKS_FOR_MAPS, ..Report::default() };
        let Some(fd) = self.report_fd else { return Err(Failure::of(Step::PrivateUsers, libc::EPIPE)) };
        raw::write(fd, &question.bytes()).at(Step::PrivateUsers)?;
        let mut answer = [0; 4];
        match raw::read(ask.reader, &mut answer).at(Step::PrivateUsers)? {
            4 => {}
            _ => return Err(Failure::of(Step::PrivateUsers, libc::EPIPE)),
        }
        match Errno::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(Failure::of(Step::PrivateUsers, errno)),
        }
    }

    pub(super) fn become_user(&self) -> Result<(), Failure> {
        let Some(who) = &self.who else { return Ok(()) };
        // To the kernel this number says "leave it as it is", which would be root.
        if who.gid == u32::MAX {
            return Err(Failure::of(Step::Group, libc::EINVAL));
        }
        if who.uid == u32::MAX {
            return Err(Failure::of(Step::User, libc::EINVAL));
        }
        if self.ambient.is_some_and(|set| set != 0) {
            // The permitted set survives the change of user, to become the ambient one; the exec clears the flag.
            raw::prctl(libc::PR_SET_KEEPCAPS, 1, 0).at(Step::Capabilities)?;
        }
        if self.ask.is_none_or(|ask| ask.born_within) {
            raw::set_groups(who.groups).at(Step::Group)?;
        }
        raw::set_gid(who.gid).at(Step::Group)?;
        raw::set_uid(who.uid).at(Step::User)?;
        Ok(())
    }

    /// Makes the inheritable and the ambient set exactly what was asked for.
    pub(super) fn set_ambient(&self) -> Result<(), Errno> {
        let Some(ambient) = self.ambient else { return Ok(()) };
        raw::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as usize, 0)?;
        let old = raw::capabilities()?;
        // A process that stays root keeps what it has until the exec computes its sets anew; one that became
        // another user keeps nothing else.
        let permitted =
            if self.who.as_ref().is_some_and(|who| who.uid != 0) { ambient } else { old.permitted };
        let sets = CapabilitySets { effective: old.effective & permitted, permitted, inheritable: ambient };
        raw::set_capabilities(sets)?;
        for number in 0..64 {
            if ambient & (1 << number) != 0 {
                raw::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as usize, number)?;
            }
        }
        Ok(())
    }
}
