//! The time zone that calendars without one of their own use.

use std::path::Path;

use jiff::tz::TimeZone;

use crate::values::Refused;

/// A time zone with its rules.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalZone(pub(crate) TimeZone);

impl LocalZone {
    /// Universal time.
    #[must_use]
    pub const fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// A zone of the IANA database on this machine, such as `Europe/Paris`; `UTC` needs no database.
    ///
    /// # Errors
    /// A name that the database does not have, or no database.
    pub fn named(name: &str) -> Result<Self, Refused> {
        if name == "UTC" {
            return Ok(Self::utc());
        }
        TimeZone::get(name).map(Self).map_err(|_| {
            Refused::of(
                name,
                "is no time zone that this machine knows",
                "zones are files below /usr/share/zoneinfo",
            )
        })
    }

    /// The machine's zone: `/etc/localtime`, localtime(5). Without that file, and with one that is no zone: UTC,
    /// as the C library does.
    #[must_use]
    pub fn of_machine(localtime: &Path) -> Self {
        let target = std::fs::read_link(localtime).ok();
        let name = target.as_deref().and_then(Path::to_str);
        let name = name.and_then(|target| target.split_once("zoneinfo/").map(|(_, name)| name));
        // The file itself has the rules. To look its name up would read the list of all zones and keep it.
        let bytes = std::fs::read(localtime).ok();
        let read = bytes.and_then(|bytes| TimeZone::tzif(name.unwrap_or("localtime"), &bytes).ok());
        read.map(Self).or_else(|| name.and_then(|name| Self::named(name).ok())).unwrap_or_else(Self::utc)
    }
}
