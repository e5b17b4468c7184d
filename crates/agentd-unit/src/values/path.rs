//! Paths as units name them.

use std::path::{Path, PathBuf};

use super::Refused;

/// The longest path, in bytes: PATH_MAX less its end.
const PATH_MAX: usize = 4095;

/// An absolute path, made simple: `//`, `/./` and a slash at the end go.
///
/// # Errors
/// A relative path, one with `..` (where it leads depends on links), and one longer than 4095 bytes.
pub fn absolute(text: &str) -> Result<PathBuf, Refused> {
    absolute_text(text).map(PathBuf::from)
}

/// The same as text.
pub(crate) fn absolute_text(text: &str) -> Result<String, Refused> {
    let Some(below) = text.strip_prefix('/') else {
        return Err(Refused::of(text, "is no absolute path", "write the whole path from /"));
    };
    let is_simple = text.len() <= PATH_MAX && below.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_simple { Ok(text.to_owned()) } else { Ok(format!("/{}", simple(text)?)) }
}

/// A path below a folder that the manager makes, as `StateDirectory` has them: relative, and no way out of it.
///
/// # Errors
/// An absolute path, an empty one, and one with `..`.
pub fn below(text: &str) -> Result<PathBuf, Refused> {
    if text.starts_with('/') {
        return Err(Refused::of(
            text,
            "is absolute",
            "write the path below the folder that the manager makes",
        ));
    }
    match simple(text)? {
        path if path.is_empty() => {
            Err(Refused::with_help("the path is empty", "write a name such as \"web\""))
        }
        path => Ok(PathBuf::from(path)),
    }
}

/// A folder below one that the manager makes.
///
/// # Errors
/// As [`below`]; a colon, which would stand between a folder and a link to it.
pub fn folder(text: &str) -> Result<PathBuf, Refused> {
    if text.contains(':') {
        return Err(Refused::of(
            text,
            "has a colon",
            "a link beside the folder is the administrator's to make",
        ));
    }
    below(text)
}

/// The same, or `FOLDER:LINK` with the path of a link to it; see [`linked`].
///
/// # Errors
/// As [`below`]; more than one colon.
pub fn linked_folder(text: &str) -> Result<PathBuf, Refused> {
    let Some((path, link)) = text.split_once(':') else { return below(text) };
    if link.contains(':') {
        return Err(Refused::of(
            text,
            "has more than one colon",
            "write FOLDER:LINK, and each pair by itself",
        ));
    }
    let (path, link) = (below(path)?, below(link)?);
    Ok(PathBuf::from(format!("{}:{}", path.display(), link.display())))
}

/// The folder of what [`linked_folder`] gives, and the link to it if there is to be one.
#[must_use]
pub fn linked(path: &Path) -> (&Path, Option<&Path>) {
    match path.to_str().and_then(|text| text.split_once(':')) {
        Some((folder, link)) => (Path::new(folder), Some(Path::new(link))),
        None => (path, None),
    }
}

fn simple(text: &str) -> Result<String, Refused> {
    if text.len() > PATH_MAX {
        return Err(Refused::of(text, "is longer than 4095 bytes", "no path can be"));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(Refused::of(text, "goes up with '..'", "write where it leads"));
    }
    Ok(parts.join("/"))
}
