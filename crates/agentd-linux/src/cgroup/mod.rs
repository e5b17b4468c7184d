//! Control groups, version 2: cgroups(7), cgroup-v2.rst of the kernel.
//!
//! The manager's part of the tree is a [`CgroupRoot`]; each run of a unit has a [`Leaf`] in it, which is where its
//! processes are born, limited, counted, killed, and seen to be gone. [`EventsWatch`] tells of all leaves by one
//! descriptor. Where no cgroup v2 can be written, a unit's processes are found by parenthood ([`crate::tree`]).
//!
//! Why this is by hand: docs/adr/0002-cgroups-by-hand.md.

mod detect;
mod error;
mod leaf;
mod limits;
mod root;
mod stats;
mod sweep;
mod watch;

pub use detect::{Layout, Mount, find_mount, of_process};
pub use error::CgroupError;
pub(crate) use leaf::is_frozen;
pub use leaf::{Leaf, Removal, remove_empty};
pub use limits::{Device, INFINITY, IoBounds, Limits};
pub use root::{CgroupRoot, Controller, Enforceable, INIT_SCOPE, Place, WayBack};
pub use stats::{MemoryEvents, Pressure, Stats};
pub use watch::{Changed, EventsWatch};
