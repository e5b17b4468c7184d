//! A Python package as one zip archive in memory, so that what is imported is what was verified.
//!
//! The format is PKWARE's APPNOTE.TXT 4.3, entries stored uncompressed; zipimport(3) of Python reads it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

fn invalid(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", path.display()))
}

/// The files as a zip archive, named from `base` on.
///
/// # Errors
/// A file that does not lie below `base`, or whose name is not UTF-8.
pub fn zip(base: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (path, content) in files {
        let name = path.strip_prefix(base).ok().and_then(Path::to_str);
        let name = name.ok_or_else(|| invalid(path, "has no name in an archive"))?;
        let offset = size(out.len())?;
        let entry = header(name, content)?;
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&entry);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(content);
        directory.extend_from_slice(b"PK\x01\x02");
        directory.extend_from_slice(&20_u16.to_le_bytes());
        directory.extend_from_slice(&entry);
        // No comment, disk 0, no attributes.
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let count = u16::try_from(files.len()).map_err(|_| invalid(base, "has too many files"))?;
    let (start, length) = (size(out.len())?, size(directory.len())?);
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    Ok(out)
}

/// What the local header and the central directory have in common: version, flags (UTF-8 names), method, time, sum,
/// sizes and lengths.
fn header(name: &str, content: &[u8]) -> io::Result<Vec<u8>> {
    // 1980-01-01: the same tree always gives the same archive.
    const DATE: u16 = 1 << 5 | 1;
    let length = size(content.len())?;
    let mut out = Vec::with_capacity(26);
    for word in [20_u16, 1 << 11, 0, 0, DATE] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for word in [crc32(content), length, length] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let name = u16::try_from(name.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
    out.extend_from_slice(&name.to_le_bytes());
    out.extend_from_slice(&0_u16.to_le_bytes());
    Ok(out)
}

fn size(n: usize) -> io::Result<u32> {
    u32::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
}

/// CRC-32 as zip has it: reflected, polynomial 0xEDB88320.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn the_sum_is_the_standard_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn python_imports_a_package_from_the_archive() {
        let base = std::env::temp_dir().join(format!("agentd-archive-{}", std::process::id()));
        fs::create_dir_all(base.join("pkg/sub/__pycache__")).unwrap();
        fs::write(base.join("pkg/__init__.py"), "from .sub import value\n").unwrap();
        fs::write(base.join("pkg/sub/__init__.py"), "value = 'näive'\n").unwrap();
        fs::write(base.join("pkg/sub/__pycache__/x.pyc"), "stale").unwrap();
        let tree = agentd_trust::tree::read(&base.join("pkg")).unwrap();
        assert_eq!(tree.len(), 2, "caches are left out");
        let archive = base.join("pkg.zip");
        fs::write(&archive, zip(&base, &tree).unwrap()).unwrap();
        let code =
            format!("import sys; sys.path[:] = [{archive:?}] + sys.path; import pkg; print(pkg.value)");
        let output = Command::new("python3").args(["-I", "-c", &code]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "näive", "{output:?}");
        fs::remove_dir_all(base).unwrap();
    }
}
