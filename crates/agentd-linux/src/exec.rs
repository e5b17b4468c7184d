//! Becoming another program: execve(2) by the manager itself.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Executes a program in place of this one. Children, blocked and pending signals, and descriptors that are not
/// close-on-exec stay; the other threads end. It comes back only with the error.
///
/// # Errors
/// Those of execve(2); EINVAL for a NUL byte in an argument.
pub fn replace(
    program: &Path,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
) -> io::Result<Infallible> {
    let program = CString::new(program.to_path_buf().into_os_string().into_vec())?;
    let arguments =
        arguments.into_iter().map(|text| CString::new(text.into_vec())).collect::<Result<Vec<_>, _>>()?;
    let variables = environment.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        CString::new(name.into_vec())
    });
    let variables = variables.collect::<Result<Vec<_>, _>>()?;
    Ok(nix::unistd::execve(&program, &arguments, &variables)?)
}

/// The file of the program that runs, or the one that has taken its place since.
///
/// # Errors
/// /proc is not mounted.
pub fn own_program() -> io::Result<PathBuf> {
    let path = std::fs::read_link("/proc/self/exe")?;
    // proc_pid_exe(5): so does the kernel mark a file that was removed or replaced.
    let text = path.as_os_str().as_encoded_bytes().strip_suffix(b" (deleted)");
    Ok(text.map_or(path.clone(), |text| OsString::from_vec(text.to_vec()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_executed_leaves_us_as_we_are() {
        let error = replace(Path::new("/nonexistent/program"), Vec::new(), Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(own_program().unwrap().is_file());
    }
}
