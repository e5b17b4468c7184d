//! The folders that the manager makes for a service.

use super::super::slot::{names, put};
use super::super::{Setting, Slot};
use super::octal;
use crate::schema::apply::set;
use crate::sections::Preserve;

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "RuntimeDirectory",
        Slot::LinkedPathsBelow(|d| &mut d.service.execution.runtime_directory.names),
        "Folders below /run, made before the start, owned by the user and gone after the stop; path:link makes a link to one as well.",
    ),
    Setting::new(
        "RuntimeDirectoryMode",
        Slot::Own(MODE, |v, d, cx| set(&mut d.service.execution.runtime_directory.mode, octal(v, cx))),
        "Their mode; default 0755.",
    ),
    Setting::new(
        "RuntimeDirectoryPreserve",
        Slot::Choice(names::<Preserve>, |d, word| put(&mut d.service.execution.runtime_preserve, word)),
        "Whether they stay: no, yes, or over an automatic restart; default no.",
    ),
    Setting::new(
        "StateDirectoryMode",
        Slot::Own(MODE, |v, d, cx| set(&mut d.service.execution.state_directory_mode, octal(v, cx))),
        "The mode of StateDirectory; default 0755.",
    ),
    Setting::new(
        "CacheDirectory",
        Slot::LinkedPathsBelow(|d| &mut d.service.execution.cache_directory.names),
        "Folders below /var/cache, made before the start and owned by the user.",
    ),
    Setting::new(
        "CacheDirectoryMode",
        Slot::Own(MODE, |v, d, cx| set(&mut d.service.execution.cache_directory.mode, octal(v, cx))),
        "Their mode; default 0755.",
    ),
    Setting::new(
        "LogsDirectory",
        Slot::LinkedPathsBelow(|d| &mut d.service.execution.logs_directory.names),
        "Folders below /var/log, made before the start and owned by the user.",
    ),
    Setting::new(
        "LogsDirectoryMode",
        Slot::Own(MODE, |v, d, cx| set(&mut d.service.execution.logs_directory.mode, octal(v, cx))),
        "Their mode; default 0755.",
    ),
    Setting::new(
        "ConfigurationDirectory",
        Slot::PathsBelow(|d| &mut d.service.execution.configuration_directory.names),
        "Folders below /etc, made before the start and owned by root.",
    ),
    Setting::new(
        "ConfigurationDirectoryMode",
        Slot::Own(MODE, |v, d, cx| set(&mut d.service.execution.configuration_directory.mode, octal(v, cx))),
        "Their mode; default 0755.",
    ),
];

const MODE: &str = "octal digits";
