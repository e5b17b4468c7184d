//! The one error of the tool: what was being done, and what stood in the way.

use std::error::Error as StdError;
use std::fmt;

/// What was being done, to which thing, with the cause below it.
#[derive(Debug)]
pub struct Error {
    what: String,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that has no cause but itself.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None }
    }

    /// The whole chain on one line, outermost first.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.what.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}

/// Says what was being done when something else failed.
pub trait During<T> {
    /// Wraps the error with a sentence that names the thing.
    ///
    /// # Errors
    /// The same failure, with `what` in front of it.
    fn during(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: StdError + Send + Sync + 'static> During<T> for std::result::Result<T, E> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error { what: what(), cause: Some(Box::new(cause)) })
    }
}
