//! The environment besides `Environment` itself.

use super::super::{Setting, Slot};
use super::list;
use crate::sections::EnvironmentFile;
use crate::values::{Refused, environment, path};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        "EnvironmentFile",
        Slot::Own("list of absolute paths", |value, d, cx| {
            list(&mut d.service.execution.environment_files, value, cx, "a list of files", file);
        }),
        "Files of NAME=value lines, or patterns of files, read at each start after Environment; with - in front one may be missing.",
    ),
    Setting::new(
        "PassEnvironment",
        Slot::Own("list of names", |value, d, cx| {
            let field = &mut d.service.execution.pass_environment;
            list(field, value, cx, "a list of names", |text| environment::name(text).map(str::to_owned));
        }),
        "Variables of the manager's own environment that are handed on.",
    ),
    Setting::new(
        "UnsetEnvironment",
        Slot::Own("list of names", |value, d, cx| {
            list(&mut d.service.execution.unset_environment, value, cx, "a list of names", unset);
        }),
        "Variables that are taken out last of all; NAME=value takes out that value alone.",
    ),
];

fn file(text: &str) -> Result<EnvironmentFile, Refused> {
    let (optional, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    Ok(EnvironmentFile { path: path::absolute(text)?, optional })
}

fn unset(text: &str) -> Result<String, Refused> {
    environment::name(text.split_once('=').map_or(text, |(name, _)| name))?;
    Ok(text.to_owned())
}
