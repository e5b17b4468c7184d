//! Unit files and what they are for the boot: the methods behind `enable`, `mask`, `list-unit-files` and their kin.

use serde::{Deserialize, Serialize};

use crate::manager::{Problem, or_default};
use crate::words::{FileChangeKind, UnitFileState};

/// `EnableUnitFiles`, `DisableUnitFiles`, `MaskUnitFiles`, `UnmaskUnitFiles`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitFilesRequest {
    /// Full names; either all of them are done or none is.
    pub units: Vec<String>,
    /// Until the next boot only.
    #[serde(default, deserialize_with = "or_default")]
    pub runtime: bool,
}

/// `SetProperties`: limits of one unit, as `KEY=VALUE`; an empty value takes back what was set this way before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetPropertiesRequest {
    /// The unit's full name.
    pub unit: String,
    /// The assignments; either all of them are made or none is.
    pub properties: Vec<String>,
    /// Until the next boot only.
    #[serde(default, deserialize_with = "or_default")]
    pub runtime: bool,
}

/// The answer to a [`UnitFilesRequest`]: the files are written, and the units are loaded anew.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnitFilesReply {
    /// What was done, in order; empty: everything was so already.
    pub changes: Vec<FileChange>,
    /// The units that the request came to: the id for an alias, the timer for a service that brings its own.
    pub units: Vec<String>,
    /// Units that have no `[Install]`, so that they cannot be enabled or disabled.
    pub without_install: Vec<String>,
    /// What is wrong with the units named, as they are loaded now.
    pub problems: Vec<Problem>,
}

/// One file that was made or removed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FileChange {
    /// Which of the two.
    #[serde(rename = "Type")]
    pub kind: FileChangeKind,
    /// Where.
    pub path: String,
    /// What a link leads to; null: it is no link.
    pub target: Option<String>,
}

/// `ListUnitFiles`. Every filter that is not empty must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListUnitFilesRequest {
    /// Unit types: `service`, `timer` …
    #[serde(default, deserialize_with = "or_default")]
    pub types: Vec<String>,
    /// Words of [`UnitFileState`].
    #[serde(default, deserialize_with = "or_default")]
    pub states: Vec<String>,
    /// Names with the wildcards `*`, `?` and `[…]`, glob(7).
    #[serde(default, deserialize_with = "or_default")]
    pub patterns: Vec<String>,
}

/// One page of the answer to `ListUnitFiles`; further pages follow while the reply `continues`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListUnitFilesReply {
    /// In the order of their names.
    pub files: Vec<UnitFileInfo>,
}

/// One name of the search path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct UnitFileInfo {
    /// The unit, template or alias.
    pub id: String,
    /// The file or link; empty: the manager made the unit itself.
    pub path: String,
    /// What it is for the boot.
    pub unit_file_state: UnitFileState,
}

/// The answer to `GetUnitFileState`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnitFileStateReply {
    /// What was asked for.
    pub file: UnitFileInfo,
}
