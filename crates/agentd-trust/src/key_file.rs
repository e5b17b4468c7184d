//! Keys on disk: `NAME.key` (private, 0600) and `NAME.pub`.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::{KeyError, KeyId, PrivateKey, PublicKey, durable};

/// The most bytes of a key file; an Ed25519 key in PEM has 120, and a comment before it may be longer.
pub const MAX_KEY_FILE_BYTES: u64 = 16 * 1024;

/// The folder, within a keys folder, whose files revoke keys.
pub const REVOKED_FOLDER: &str = "revoked";

/// What happened to a key file.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct KeyFileError {
    /// The file.
    pub path: PathBuf,
    /// What happened to it.
    #[source]
    pub kind: KeyFileErrorKind,
}

/// The ways in which a key file can be no use.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileErrorKind {
    /// It could not be read or written.
    #[error("cannot be read or written")]
    Io(#[from] io::Error),
    /// A folder, link, pipe or device.
    #[error("is no regular file (symbolic links are not followed; copy the key here)")]
    NotRegular,
    /// Larger than [`MAX_KEY_FILE_BYTES`].
    #[error("has more than {MAX_KEY_FILE_BYTES} bytes")]
    TooLarge,
    /// A public key, where a private one is needed.
    #[error("is a public key, which signs nothing; name the private one, made beside it as NAME.key")]
    Public,
    /// Other users may read a private key.
    #[error("has mode {mode:04o}, so others may use the key; make it private with 'chmod 600'")]
    Exposed {
        /// The permission bits.
        mode: u32,
    },
    /// Others than the owner may write a file that is to be trusted.
    #[error("has mode {mode:04o}, so others may change it; 'chmod go-w' it")]
    WritableByOthers {
        /// The permission bits.
        mode: u32,
    },
    /// The owner is none of those who may say what is trusted.
    #[error("belongs to the user {uid}, who may not say what is trusted here; 'chown' it")]
    ForeignOwner {
        /// The owner.
        uid: u32,
    },
    /// The text is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No random numbers.
    #[error("no key can be made without random numbers from the kernel")]
    Random(#[source] getrandom::Error),
    /// Not the name of a key.
    #[error("is no name for a key; use letters, digits, '-', '_' and '.', not '.' first")]
    Name,
    /// Nothing is overwritten: a private key that is replaced is lost.
    #[error("is there already; choose another name or remove it first")]
    Exists,
}

impl KeyFileErrorKind {
    /// This, at the file `path`.
    pub(crate) fn at(self, path: &Path) -> KeyFileError {
        KeyFileError { path: path.to_owned(), kind: self }
    }
}

/// A new pair of keys on disk.
#[derive(Debug)]
pub struct GeneratedKey {
    /// `DIR/NAME.key`.
    pub private_path: PathBuf,
    /// `DIR/NAME.pub`.
    pub public_path: PathBuf,
    /// The id of the pair.
    pub id: KeyId,
}

/// Makes a new pair: `folder/NAME.key` with mode 0600 and `folder/NAME.pub` with mode 0644.
///
/// # Errors
/// [`KeyFileError`] naming the file. If either file exists, or one cannot be written, neither is made.
pub fn generate(folder: &Path, name: &str) -> Result<GeneratedKey, KeyFileError> {
    if !is_key_name(name) {
        return Err(KeyFileErrorKind::Name.at(Path::new(name)));
    }
    let key = PrivateKey::generate().map_err(|error| KeyFileErrorKind::Random(error).at(folder))?;
    write_pair(folder, name, &key)
}

fn write_pair(folder: &Path, name: &str, key: &PrivateKey) -> Result<GeneratedKey, KeyFileError> {
    let private_path = folder.join(format!("{name}.key"));
    let public_path = folder.join(format!("{name}.pub"));
    let private = key.to_pem().map_err(|error| KeyFileErrorKind::Key(error).at(&private_path))?;
    let public = key.public().to_pem().map_err(|error| KeyFileErrorKind::Key(error).at(&public_path))?;
    create(&private_path, private.as_bytes(), 0o600)?;
    if let Err(error) = create(&public_path, public.as_bytes(), 0o644) {
        // Half a pair would only stand in the way of the next try; it is our own file of a moment ago.
        fs::remove_file(&private_path).map_err(|error| KeyFileErrorKind::Io(error).at(&private_path))?;
        return Err(error);
    }
    Ok(GeneratedKey { private_path, public_path, id: key.public().id() })
}

fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), KeyFileError> {
    durable::create(path, bytes, mode).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => KeyFileErrorKind::Exists.at(path),
        _ => KeyFileErrorKind::Io(error).at(path),
    })
}

fn is_key_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(fits)
}

/// Reads a private key that only its owner can read.
///
/// # Errors
/// [`KeyFileError`] naming the file.
pub fn read_private(path: &Path) -> Result<PrivateKey, KeyFileError> {
    let read = || {
        let (metadata, text) = read_regular(&fs::canonicalize(path)?)?;
        match metadata.mode() & 0o7777 {
            _ if PublicKey::from_pem(&text).is_ok() => Err(KeyFileErrorKind::Public),
            mode if mode & 0o077 != 0 => Err(KeyFileErrorKind::Exposed { mode }),
            _ => Ok(PrivateKey::from_pem(&text)?),
        }
    };
    read().map_err(|kind: KeyFileErrorKind| kind.at(path))
}

/// Reads a public key, whoever owns it; for what is to be trusted use [`KeyRing::load`](crate::KeyRing::load).
///
/// # Errors
/// [`KeyFileError`] naming the file.
pub fn read_public(path: &Path) -> Result<PublicKey, KeyFileError> {
    let read = || Ok(PublicKey::from_pem(&read_regular(&fs::canonicalize(path)?)?.1)?);
    read().map_err(|kind: KeyFileErrorKind| kind.at(path))
}

/// Revokes a key: writes a copy of it as `folder/revoked/KEYID.pub`, and returns that path.
///
/// # Errors
/// [`KeyFileError`] naming the file. A key that is revoked already is no error.
pub fn revoke(folder: &Path, key: &PublicKey) -> Result<PathBuf, KeyFileError> {
    let revoked = folder.join(REVOKED_FOLDER);
    let path = revoked.join(format!("{}.pub", key.id()));
    fs::create_dir_all(&revoked).map_err(|error| KeyFileErrorKind::Io(error).at(&revoked))?;
    let text = key.to_pem().map_err(|error| KeyFileErrorKind::Key(error).at(&path))?;
    durable::replace(&path, text.as_bytes(), 0o644).map_err(|error| KeyFileErrorKind::Io(error).at(&path))?;
    Ok(path)
}

/// The user that this process runs as, from the owner of `/proc/self`, proc_pid_status(5): the owner that
/// [`KeyRing::load`](crate::KeyRing::load) should accept beside root.
///
/// # Errors
/// What the kernel says, as where `/proc` is not mounted.
pub fn own_uid() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// Reads a small regular file, and tells about the very file that was read.
pub(crate) fn read_regular(path: &Path) -> Result<(Metadata, Zeroizing<Vec<u8>>), KeyFileErrorKind> {
    // Look before opening: to open a pipe or a device may block, or have effects.
    let before = fs::symlink_metadata(path)?;
    if !before.is_file() {
        return Err(KeyFileErrorKind::NotRegular);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if (before.dev(), before.ino()) != (metadata.dev(), metadata.ino()) {
        return Err(io::Error::other("was replaced while it was being opened").into());
    }
    // The room is made at once, so that no copy of a secret stays behind in a vector that grew.
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_KEY_FILE_BYTES as usize + 1));
    file.take(MAX_KEY_FILE_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_KEY_FILE_BYTES {
        return Err(KeyFileErrorKind::TooLarge);
    }
    Ok((metadata, text))
}

/// Whether only root and `owners` can change the file or folder.
pub(crate) fn check_owner(metadata: &Metadata, owners: &[u32]) -> Result<(), KeyFileErrorKind> {
    let (uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if uid != 0 && !owners.contains(&uid) {
        return Err(KeyFileErrorKind::ForeignOwner { uid });
    }
    if mode & 0o022 != 0 {
        return Err(KeyFileErrorKind::WritableByOthers { mode });
    }
    Ok(())
}
