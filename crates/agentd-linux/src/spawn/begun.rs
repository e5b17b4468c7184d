//! A birth that goes on by itself, with everything that the child uses until it has left.

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
use std::time::Instant;

use super::child::Walk;
use super::clone::Stack;
use super::papers::Arrays;
use super::presence::{Departure, Presence};
use super::{Born, Child, Place, SpawnError, SpawnPlan, Spawner, Step};

/// The birth, and what the child reads and writes, which nobody else does until it has left.
pub(super) struct Begun {
    born: Born,
    deadline: Instant,
    /// How it has left, once that is known.
    departure: Cell<Departure>,
    /// Dropped before what the child uses, and waits for the child.
    presence: Fixed<Presence>,
    plan: Fixed<SpawnPlan<'static>>,
    _arrays: Fixed<Arrays>,
    /// Points into the plan and the arrays.
    walk: Fixed<Walk<'static>>,
}

impl Begun {
    /// Begins a birth.
    ///
    /// # Errors
    /// As [`Spawner::spawn`], of what comes before the child.
    ///
    /// # Safety
    /// The stack stays, and nobody else uses it, until this is settled or dropped.
    pub(super) unsafe fn new(
        spawner: &mut Spawner,
        plan: SpawnPlan<'_>,
        stack: &Stack,
    ) -> Result<Self, SpawnError> {
        // SAFETY: its descriptors are used until this function comes back. What the child needs of them is its own by then:
        // in slots, or in its copy of the table.
        let plan = Fixed::new(unsafe { plan.outlive() });
        let mut arrays = Fixed::new(Arrays::of(plan.get(), spawner.null()));
        // SAFETY: the plan lies where it is for longer than the walk, and is only read.
        let read = unsafe { plan.0.as_ref() };
        // SAFETY: so do the arrays, of which only the walk makes use.
        let used = unsafe { arrays.0.as_mut() };
        let walk = spawner.walk(read, used).map_err(|error| SpawnError::new(read, Step::Fds, error))?;
        let (walk, presence) = (Fixed::new(walk), Fixed::new(Presence::default()));
        let deadline = Instant::now() + spawner.exec_timeout;
        let place = Place { stack, presence: presence.get() };
        // SAFETY: nothing here uses the walk and the arrays until the child has left, which the drop of the presence waits
        // for as well; the caller vouches for the stack.
        let born = unsafe { spawner.bear(plan.get(), walk.0, Some(place)) }?;
        Ok(Self {
            born,
            deadline,
            departure: Cell::new(Departure::ByItself),
            presence,
            plan,
            _arrays: arrays,
            walk,
        })
    }

    /// Waits until a child that shares our memory has left it, if need be by force.
    pub(super) fn wait(&self) {
        let group = self.plan.get().cgroup;
        let departure = self.presence.get().wait_until(self.deadline, &self.born.pidfd, group);
        if departure != Departure::ByItself {
            self.departure.set(departure);
        }
    }

    /// Waits until the child runs its program or has failed.
    ///
    /// # Errors
    /// As [`Spawner::spawn`].
    pub(super) fn settle(self, spawner: &mut Spawner) -> Result<Child, SpawnError> {
        self.wait();
        let departure = self.departure.get();
        if departure != Departure::ByItself {
            return Err(spawner.left_by_force(self.plan.get(), self.born, departure));
        }
        // SAFETY: plan and walk are those of the birth, and the child has left.
        unsafe { spawner.settle(self.born, self.plan.get(), self.walk.0) }
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Begun").field(&self.born).finish()
    }
}

/// A value at one address, to which others point: a box that does not claim to be the only way there.
struct Fixed<T>(NonNull<T>);

impl<T> Fixed<T> {
    fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(value))))
    }

    /// For what nobody changes.
    fn get(&self) -> &T {
        // SAFETY: the value is there until this is dropped. What others change is never looked at through this.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of the box that `new` has leaked, and nobody points there any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
