//! Running other programs: said aloud, never silent about how they ended.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::{During, Error, Result};
use crate::tools;

/// The top folder of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or(manifest.clone(), Path::to_path_buf)
}

/// A command in the repository's top folder. Its program is looked up in the folders of [`tools::find`].
#[must_use]
pub fn command(program: &str, args: &[&str]) -> Command {
    let found = tools::find(program).unwrap_or_else(|| PathBuf::from(program));
    let mut command = Command::new(found);
    command.args(args).current_dir(root());
    command
}

/// Cargo, the one that runs us.
#[must_use]
pub fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// The command as a person would type it.
#[must_use]
pub fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Runs a command with our own input and output.
///
/// # Errors
/// It could not be started, or did not exit with 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().during(|| format!("cannot run {}", shown(command)))?;
    succeeded(command, status)
}

/// Runs a command and returns what it wrote to standard output; standard error stays ours.
///
/// # Errors
/// It could not be started, did not exit with 0, or wrote something that is not UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .during(|| format!("cannot run {}", shown(command)))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout).during(|| format!("{} did not write text", shown(command)))
}

/// Runs a command, prints each line that it writes to either output, and hands it to `seen` as well.
///
/// # Errors
/// It could not be started or read. How it ended is in the status.
pub fn tee(command: &mut Command, mut seen: impl FnMut(&str)) -> Result<ExitStatus> {
    let name = shown(command);
    let (reader, writer) = pipe().during(|| "cannot make a pipe".into())?;
    let twin = writer.try_clone().during(|| "cannot copy a pipe".into())?;
    command.stdin(Stdio::null()).stdout(twin).stderr(writer);
    let mut child = command.spawn().during(|| format!("cannot run {name}"))?;
    // The command holds the writing ends; without this the pipe would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.during(|| format!("cannot read what {name} writes"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        seen(&line);
    }
    child.wait().during(|| format!("cannot wait for {name}"))
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(Error::new(format!("{} ended with {status}", shown(command))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tee_sees_both_outputs_and_the_status() {
        let mut lines = Vec::new();
        let status = tee(&mut command("sh", &["-c", "echo out; echo err >&2; exit 3"]), |line| {
            lines.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(lines, ["out", "err"]);
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_failing_command_is_named_with_its_status() {
        let error = run(&mut command("sh", &["-c", "exit 7"])).unwrap_err();
        assert_eq!(error.chain(), "sh -c exit 7 ended with exit status: 7");
    }
}
