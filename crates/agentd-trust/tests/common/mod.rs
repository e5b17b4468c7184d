//! What the tests of this folder share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use agentd_trust::{Manifest, PrivateKey, Sha256Digest};

/// A folder of its own for one test, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("agentd-trust-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that only its owner can change, whatever the umask is, with the folders above it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The key of a seed that is `byte` 32 times.
pub(crate) fn key(byte: u8) -> PrivateKey {
    PrivateKey::from_seed(&[byte; 32])
}

/// A unit with a drop-in, a program and a Python package.
pub(crate) fn manifest() -> Manifest {
    let mut manifest = Manifest::new("web.service").unwrap();
    for (name, bytes) in [
        ("web.service.toml", "unit"),
        ("web.service.d/10-limits.toml", "limits"),
        ("/usr/bin/web", "program"),
        ("/usr/lib/web/app/__init__.py", "init"),
        ("/usr/lib/web/app/text.py", "text"),
        ("/usr/lib/web/app.py", "a file beside the package"),
    ] {
        manifest.insert(name, Sha256Digest::of(bytes.as_bytes())).unwrap();
    }
    manifest
}

/// An error and its causes, as a program prints them.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}

/// Random numbers that are the same for the same seed (splitmix64, by Sebastiano Vigna).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `limit - 1`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Cuts, doubles, overwrites or joins a part of `bytes`, sometimes with a part of `other`.
    pub(crate) fn mangle(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let (a, b) = (self.below(bytes.len() + 1), self.below(bytes.len() + 1));
        let (start, end) = (a.min(b), a.max(b));
        match self.below(6) {
            0 => bytes.truncate(start),
            1 => drop(bytes.drain(start..end)),
            2 => bytes.extend_from_within(start..end),
            3 => bytes[start..end].fill(self.next() as u8),
            4 => {
                let (from, length) = (self.below(other.len()), self.below(200));
                let part = other[from..].iter().take(length).copied();
                drop(bytes.splice(start..start, part));
            }
            _ if start < bytes.len() => bytes[start] = self.next() as u8,
            _ => bytes.push(b'}'),
        }
    }
}
