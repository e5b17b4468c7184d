//! What the files of a manifest are called.
//!
//! A unit file and its drop-ins are named by their file names (`web.service.toml`, `web.service.d/10-limits.toml`),
//! so that a signature stays right when a unit moves from one tier of the search path to another. Every other file
//! is named by the absolute path at which it will be found when it runs.
//!
//! # Invariants
//!
//! - A file has one name: no `.` or `..`, no doubled or trailing slash, no control characters.
//! - The two kinds cannot be confused: exactly the absolute ones begin with a slash.

use std::path::{Component, Path, PathBuf};

/// The longest name in bytes: Linux's PATH_MAX without its final zero.
pub const MAX_NAME_BYTES: usize = 4095;

/// A path that has no name in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The path is not UTF-8, which JSON must be.
    #[error("{}: the name is not UTF-8 and cannot be signed", .0.display())]
    NotUtf8(PathBuf),
    /// The path is not below the folder that will be `/`.
    #[error("{}: is not below the root folder {}", path.display(), root.display())]
    OutsideRoot {
        /// The path asked for.
        path: PathBuf,
        /// The folder given as root.
        root: PathBuf,
    },
    /// The path is relative, empty or climbs with `..`.
    #[error("{}: is not an absolute path without '..'", .0.display())]
    NotAbsolute(PathBuf),
    /// The path does not end in a file name.
    #[error("{}: has no file name", .0.display())]
    NoFileName(PathBuf),
    /// The name breaks the rules of this module.
    #[error("{0:?}: is not a name that a manifest may hold")]
    Invalid(String),
}

/// The name of a unit file or drop-in: its file name, after its folder's name if that ends in `.d`.
///
/// # Errors
/// [`NameError::NoFileName`], [`NameError::NotUtf8`] or [`NameError::Invalid`].
pub fn unit_file_name(path: &Path) -> Result<String, NameError> {
    let file = path.file_name().ok_or_else(|| NameError::NoFileName(path.to_owned()))?;
    let file = file.to_str().ok_or_else(|| NameError::NotUtf8(path.to_owned()))?;
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = match folder {
        Some(folder) if folder.ends_with(".d") => format!("{folder}/{file}"),
        _ => file.to_owned(),
    };
    checked(name)
}

/// The name of any other file: `path` as it will be on the machine whose `/` is now `root`.
///
/// Without a root (or with `/`) that is the path itself. Slashes and `.` are tidied; `..` is refused, since what it
/// means depends on symbolic links.
///
/// # Errors
/// [`NameError::NotAbsolute`], [`NameError::OutsideRoot`], [`NameError::NotUtf8`] or [`NameError::Invalid`].
pub fn installed_name(path: &Path, root: Option<&Path>) -> Result<String, NameError> {
    let inside = match root {
        Some(root) => path
            .strip_prefix(root)
            .map_err(|_| NameError::OutsideRoot { path: path.to_owned(), root: root.to_owned() })?,
        None => path,
    };
    let mut name = String::new();
    for component in inside.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => {
                name.push('/');
                name.push_str(part.to_str().ok_or_else(|| NameError::NotUtf8(path.to_owned()))?);
            }
            Component::ParentDir | Component::Prefix(_) => {
                return Err(NameError::NotAbsolute(path.to_owned()));
            }
        }
    }
    if name.is_empty() || (root.is_none() && !path.is_absolute()) {
        return Err(NameError::NotAbsolute(path.to_owned()));
    }
    checked(name)
}

/// Whether a file below a signed Python package is part of what is signed; `path` is relative to the package.
///
/// Python's own caches are not: they appear when a module is first imported, and signed modules are never run from
/// them. Both the signer and the verifier ask here, so that they see the same tree.
#[must_use]
pub fn is_tree_member(path: &Path) -> bool {
    !path.components().any(|part| part.as_os_str() == "__pycache__")
}

/// Whether `name` keeps the rules of this module.
pub(crate) fn is_valid(name: &str) -> bool {
    let parts = name.strip_prefix('/').unwrap_or(name);
    let absolute = parts.len() < name.len();
    name.len() <= MAX_NAME_BYTES
        && !name.chars().any(char::is_control)
        && parts.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && (absolute || is_relative_form(parts))
}

/// `FILE`, or `FOLDER.d/FILE`.
fn is_relative_form(name: &str) -> bool {
    match name.split_once('/') {
        None => true,
        Some((folder, file)) => folder.ends_with(".d") && !file.contains('/'),
    }
}

fn checked(name: String) -> Result<String, NameError> {
    if is_valid(&name) { Ok(name) } else { Err(NameError::Invalid(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_unit_file_keeps_its_name_in_every_tier() {
        for (path, name) in [
            ("/etc/agentd/units/web.service.toml", "web.service.toml"),
            ("/usr/lib/agentd/units/web.service.toml", "web.service.toml"),
            ("web.service.toml", "web.service.toml"),
            ("/tmp/x.d/../web.service.d/10-limits.toml", "web.service.d/10-limits.toml"),
            ("service.d/all.toml", "service.d/all.toml"),
        ] {
            assert_eq!(unit_file_name(Path::new(path)).as_deref(), Ok(name), "{path}");
        }
        assert_eq!(unit_file_name(Path::new("/")), Err(NameError::NoFileName("/".into())));
    }

    #[test]
    fn another_file_is_named_by_the_path_at_which_it_will_run() {
        for (path, root, name) in [
            ("/usr/bin/web", None, "/usr/bin/web"),
            ("/usr//./bin/web/", None, "/usr/bin/web"),
            ("/usr/bin/web", Some("/"), "/usr/bin/web"),
            ("/srv/image/usr/bin/web", Some("/srv/image"), "/usr/bin/web"),
            ("image/usr/bin/web", Some("image/"), "/usr/bin/web"),
        ] {
            let name = Ok(name.to_owned());
            assert_eq!(installed_name(Path::new(path), root.map(Path::new)), name, "{path}");
        }
    }

    #[test]
    fn a_path_without_one_meaning_has_no_name() {
        for (path, root) in [
            ("usr/bin/web", None),
            ("", None),
            ("/", None),
            ("/usr/../bin/web", None),
            ("/srv/imagined/web", Some("/srv/image")),
            ("/srv/image", Some("/srv/image")),
            ("/srv/image/../web", Some("/srv/image")),
            ("/bin/two\nlines", None),
        ] {
            assert!(installed_name(Path::new(path), root.map(Path::new)).is_err(), "{path:?}");
        }
        let latin = Path::new(OsStr::from_bytes(b"/bin/caf\xe9"));
        assert_eq!(installed_name(latin, None), Err(NameError::NotUtf8(latin.to_owned())));
    }

    #[test]
    fn the_names_of_a_manifest_are_checked() {
        for (name, valid) in [
            ("/a", true),
            ("/a/b c", true),
            ("a.service.toml", true),
            ("a.service.d/b.toml", true),
            ("", false),
            ("/", false),
            ("//a", false),
            ("/a/", false),
            ("/a//b", false),
            ("/a/./b", false),
            ("/a/../b", false),
            ("..", false),
            ("a/b", false),
            ("a.d/b/c", false),
            ("/a\0", false),
            ("/a\u{85}b", false),
        ] {
            assert_eq!(is_valid(name), valid, "{name:?}");
        }
        assert!(is_valid(&format!("/{}", "x".repeat(MAX_NAME_BYTES - 1))));
        assert!(!is_valid(&format!("/{}", "x".repeat(MAX_NAME_BYTES))));
    }

    #[test]
    fn pythons_caches_are_no_part_of_a_tree() {
        assert!(is_tree_member(Path::new("summary/__init__.py")));
        assert!(is_tree_member(Path::new("summary/data.pyc")));
        assert!(!is_tree_member(Path::new("summary/__pycache__/text.cpython-311.pyc")));
    }
}
