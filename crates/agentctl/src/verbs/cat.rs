//! `cat`: the files that define a unit, each below its path, as they are now.

use std::io::{self, IsTerminal, Write};

use agentd_protocol::method;
use agentd_protocol::unit::{FileContent, GetFilesRequest};
use agentd_unit::UnitName;

use crate::client::{ANSWER, ClientError};
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::print::{Style, json, one_line, plain};
use crate::report::only_this_unit;

/// `agentctl cat UNIT…`.
pub(crate) fn cat(context: &Context, units: &[UnitName], out: &mut impl Write) -> Outcome {
    let mut client = context.connect()?;
    let mut worst = Exit::Done;
    let mut all = Vec::new();
    for unit in units {
        let mut files = Vec::new();
        let request = GetFilesRequest { unit: unit.to_string(), running: false };
        let answer = client.stream::<method::GetFiles, ClientError>(&request, Some(ANSWER), |page| {
            files.extend(page.files);
            Ok(())
        });
        let missing = match answer.map_err(only_this_unit) {
            Ok(()) => files.is_empty().then(|| "it has none".to_owned()),
            Err(error) => Some(error?.to_string()),
        };
        if let Some(reason) = missing {
            eprintln!("No files found for {unit}: {}", one_line(&reason));
            worst = worst.max(Exit::NoSuchUnit);
        }
        all.extend(joined(files));
    }
    if context.is_json() {
        json(&all, out)?;
    } else {
        // A file that goes on into another program is passed as it is.
        write_files(context.style, &all, io::stdout().is_terminal(), out)?;
    }
    Ok(worst)
}

/// Puts the pieces of long files together.
pub(crate) fn joined(pieces: Vec<FileContent>) -> Vec<FileContent> {
    let mut files: Vec<FileContent> = Vec::new();
    for piece in pieces {
        match files.last_mut() {
            Some(last) if last.path == piece.path => last.content.push_str(&piece.content),
            _ => files.push(piece),
        }
    }
    files
}

fn write_files(style: Style, files: &[FileContent], escape: bool, out: &mut impl Write) -> io::Result<()> {
    for (at, file) in files.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", style.comment(format!("# {}", one_line(&file.path))))?;
        if escape {
            write!(out, "{}", plain(&file.content))?;
        } else {
            write!(out, "{}", file.content)?;
        }
        if !file.content.ends_with('\n') {
            writeln!(out)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(path: &str, content: &str) -> FileContent {
        FileContent { path: path.into(), content: content.into() }
    }

    #[test]
    fn files_stand_below_their_paths_and_pieces_are_put_together() {
        let files =
            joined(vec![piece("/u/a", "one\n"), piece("/u/a", "two"), piece("/u/a.d/b", "\x1b[2J\n")]);
        let mut out = Vec::new();
        write_files(Style::PLAIN, &files, true, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "# /u/a\none\ntwo\n\n# /u/a.d/b\n\\u{1b}[2J\n");
    }

    #[test]
    fn what_goes_into_a_program_is_the_file_to_the_byte() {
        let mut out = Vec::new();
        write_files(Style::PLAIN, &[piece("/u/a", "x\r\n\x0b\n")], false, &mut out).unwrap();
        assert_eq!(out, b"# /u/a\nx\r\n\x0b\n");
    }
}
