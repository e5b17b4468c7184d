//! One module for each family of verbs.

pub(crate) mod act;
pub(crate) mod analyze;
pub(crate) mod apply;
pub(crate) mod cat;
pub(crate) mod closure;
pub(crate) mod dependencies;
pub(crate) mod diff;
pub(crate) mod edit;
mod ends;
pub(crate) mod import;
pub(crate) mod jobs;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod new;
pub(crate) mod overview;
pub(crate) mod query;
pub(crate) mod revert;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod sign;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod triggers;
pub(crate) mod unit_files;
pub(crate) mod verify;
