//! Where unit files are written: into the folders of the manager that is asked, or of the one that would be.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use agentd_protocol::manager::Empty;
use agentd_protocol::method;
use agentd_trust::{durable, key_file};
use agentd_unit::search_path::{Tier, TierKind};
use agentd_unit::{Loader, LoaderConfig, Scope, SearchPath, Trusted};

use crate::client::{ANSWER, Client, ClientError, RELOAD};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::offline;
use crate::verbs::act::problem_line;

/// The folders of one manager, and the manager if it runs.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) search: SearchPath,
    scope: Scope,
    client: Option<Client>,
    /// Whether it runs nothing that is not signed.
    pub(crate) enforces: bool,
}

impl Place {
    /// Asks the manager; where there is none, what it would search is what is written to.
    pub(crate) fn find(context: &Context) -> Result<Self, Failure> {
        let scope = offline::scope(context);
        let mut client = match context.connect() {
            Ok(client) => client,
            Err(ClientError::Connect { error, .. }) if error.kind() != io::ErrorKind::PermissionDenied => {
                let search = offline::search_path(context)?;
                return Ok(Self { search, scope, client: None, enforces: false });
            }
            Err(error) => return Err(error.into()),
        };
        let status = client.call::<method::GetStatus>(&Empty {}, Some(ANSWER))?;
        let tier = |path: &String| {
            let kind = if path.ends_with("/control") { TierKind::Control } else { TierKind::Units };
            Tier { path: path.into(), kind }
        };
        let search = SearchPath { tiers: status.unit_path.iter().map(tier).collect() };
        Ok(Self { search, scope, client: Some(client), enforces: status.trust_policy == "enforce" })
    }

    /// A loader over these folders.
    pub(crate) fn loader(&self) -> Result<Loader, Failure> {
        Ok(Loader::new(LoaderConfig {
            search: self.search.clone(),
            scope: self.scope,
            trusted: Trusted(vec![0, key_file::own_uid()?]),
            specifiers: offline::specifiers(),
            zone: offline::zone(),
        }))
    }

    /// The folder where people write units: the highest that lasts, or the highest that the next boot empties.
    pub(crate) fn units(&self, runtime: bool) -> Result<&Path, Failure> {
        let is_meant = |tier: &&Tier| {
            tier.kind == TierKind::Units
                && self.search.is_runtime(&tier.path) == runtime
                && !tier.path.ends_with("transient")
        };
        let found = self.search.tiers.iter().find(is_meant).map(|tier| tier.path.as_path());
        found.ok_or_else(|| {
            Failure::Usage(
                "no folder of the search path is for that; 'agentctl analyze unit-paths' lists them".into(),
            )
        })
    }

    /// Whether a folder is a person's and not a package's: it lies beside a control folder.
    pub(crate) fn is_administrators(&self, folder: &Path) -> bool {
        let mut control = self.search.tiers.iter().filter(|tier| tier.kind == TierKind::Control);
        control.any(|tier| tier.path.parent().is_some_and(|root| folder.starts_with(root)))
    }

    /// Has the manager, if it runs, load what was written.
    pub(crate) fn reload(&mut self) -> Result<(), Failure> {
        if let Some(client) = &mut self.client {
            for problem in client.call::<method::Reload>(&Empty {}, Some(RELOAD))?.problems {
                eprintln!("Warning: {}", problem_line(&problem));
            }
        }
        Ok(())
    }
}

/// Writes a file whole, and the folders above it.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .and_then(|()| durable::replace(path, text.as_bytes(), mode))
        .map_err(|error| failed(path, "cannot be written", &error))
}

/// Writes a new file whole, and the folders above it.
pub(crate) fn create(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let error = io::ErrorKind::AlreadyExists.into();
        return Err(failed(path, "is not written over; remove it first", &error));
    }
    write(path, text, mode)
}

/// An error about a file.
pub(crate) fn failed(path: &Path, what: &str, error: &io::Error) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; try it as root",
        _ => "",
    };
    Failure::Other { exit: Exit::Failed, message: format!("{} {what}: {error}{advice}", path.display()) }
}
