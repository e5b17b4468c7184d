//! Unit files without a manager: the search path that one would have, and what stands in it.

use std::collections::BTreeMap;
use std::path::Path;

use agentd_trust::key_file;
use agentd_unit::{Loader, LoaderConfig, LocalZone, Scope, SearchPath, SpecifierContext, Trusted};

use crate::context::Context;
use crate::exit::Failure;

/// A loader over the search path that a manager would have which was started here and now.
pub(crate) fn loader(context: &Context) -> Result<Loader, Failure> {
    let own = key_file::own_uid()?;
    Ok(Loader::new(LoaderConfig {
        search: search_path(context)?,
        scope: scope(context),
        trusted: Trusted(vec![0, own]),
        specifiers: specifiers(),
        zone: zone(),
    }))
}

/// Whose manager is meant.
pub(crate) const fn scope(context: &Context) -> Scope {
    if context.user { Scope::User } else { Scope::System }
}

/// The folders where a manager would look.
pub(crate) fn search_path(context: &Context) -> Result<SearchPath, Failure> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    SearchPath::new(scope(context), &[], &environment, false)
        .map_err(|error| Failure::Usage(error.to_string()))
}

/// The zone of the calling process, as the C library chooses it: `TZ`, else the machine's.
pub(crate) fn zone() -> LocalZone {
    let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
    let named = named.and_then(|name| LocalZone::named(name.trim_start_matches(':')).ok());
    named.unwrap_or_else(|| LocalZone::of_machine(Path::new("/etc/localtime")))
}

/// What specifiers stand for, where that can be known without a manager; names of the machine are placeholders.
pub(crate) fn specifiers() -> SpecifierContext {
    SpecifierContext::elsewhere()
}
