//! The rules of Landlock: opened once all is mounted and while every place can be reached, and in force just before the
//! filters of system calls.

use core::ffi::{CStr, c_int};
use std::os::fd::RawFd;

use super::super::raw::{self, Errno};
use super::super::step::Step;
use super::{At, Failure, Walk};
use crate::landlock::OF_FILES;

impl Walk<'_> {
    /// Behind the placing of descriptors, which would overwrite the one that is made here, and before limits and users, which
    /// could keep it from being made.
    pub(super) fn prepare_landlock(&mut self) -> Result<(), Failure> {
        let Some(rules) = self.landlock else { return Ok(()) };
        let ruleset = raw::create_ruleset(&rules.handled).at(Step::Landlock)? as RawFd;
        for (item, (path, allowed)) in (1..).zip(&rules.paths) {
            allow_place(ruleset, path, *allowed).at_item(Step::Landlock, item)?;
        }
        if rules.own_output != 0 {
            for output in [1, 2] {
                // A pipe or a socket has no place that a rule could be about, and needs none.
                let _no_file = raw::allow_beneath(ruleset, output, rules.own_output);
            }
        }
        self.ruleset = Some(ruleset);
        Ok(())
    }

    pub(super) fn hold_to_landlock(&self) -> Result<(), Failure> {
        let Some(ruleset) = self.ruleset else { return Ok(()) };
        raw::restrict_self(ruleset).at(Step::Landlock)?;
        raw::close(ruleset).at(Step::Landlock)?;
        Ok(())
    }
}

/// A place that is not there, or that cannot be reached, is left out: then nothing is allowed there.
fn allow_place(ruleset: c_int, path: &CStr, allowed: u64) -> Result<(), Errno> {
    let place = match raw::open_place(path) {
        Ok(fd) => fd as c_int,
        Err(libc::ENOENT | libc::ENOTDIR | libc::EACCES) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let added = match raw::allow_beneath(ruleset, place, allowed) {
        // What it is open on is a file, with which less can be done.
        Err(libc::EINVAL) if allowed & OF_FILES != 0 => {
            raw::allow_beneath(ruleset, place, allowed & OF_FILES)
        }
        other => other,
    };
    raw::close(place)?;
    added.map(|_| ())
}
