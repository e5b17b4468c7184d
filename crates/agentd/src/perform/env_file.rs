//! `EnvironmentFile`: lines of NAME=value as a shell would write them, systemd.exec(5).

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::iter::Peekable;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::Chars;

/// More than any environment can be: the kernel takes a quarter of the stack's limit, 2 MiB by default.
const MAX_BYTES: u64 = 2 << 20;

/// What a file says, to be verified and parsed.
///
/// # Errors
/// It cannot be read, is no regular file (which reading could wait for without end), is too long or not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(agentd_linux::open::NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    if file.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
        return Err(io::Error::other("it is longer than an environment can be"));
    }
    Ok(text)
}

/// The variables, in the order of the text.
///
/// Lines that begin with `#` or `;` are comments; a line that assigns nothing, or to no name, is left out. A value ends
/// with its line. Outside of quotes a backslash takes the next character as it is; within double quotes only before
/// `"`, `\`, `` ` `` and `$`; within single quotes never. A backslash at the end of a line joins the next one.
#[must_use]
pub fn parse(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.peek() {
            None => return found,
            Some('#' | ';') => skip_comment(&mut chars),
            Some(_) => {
                let mut name = String::new();
                while let Some(c) = chars.next_if(|c| !matches!(c, '=' | '\n')) {
                    name.push(c);
                }
                if chars.next_if_eq(&'=').is_none() {
                    continue;
                }
                let value = value(&mut chars);
                let name = name.trim();
                if agentd_unit::values::environment::name(name).is_ok() {
                    found.push((name.to_owned(), value));
                }
            }
        }
    }
}

/// To the end of the line; one that ends in a backslash goes on.
fn skip_comment(chars: &mut Peekable<Chars<'_>>) {
    while let Some(c) = chars.next() {
        match c {
            '\n' => return,
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
}

fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut value = String::new();
    // White space before and behind the value does not count, unless it is quoted or escaped.
    while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    let mut kept = 0;
    while let Some(c) = chars.next() {
        match c {
            '\n' => break,
            '\'' => {
                value.extend(chars.by_ref().take_while(|c| *c != '\''));
                kept = value.len();
            }
            '"' => {
                double_quoted(chars, &mut value);
                kept = value.len();
            }
            '\\' => {
                value.extend(chars.next().filter(|c| *c != '\n'));
                kept = value.len();
            }
            c => {
                value.push(c);
                if !c.is_whitespace() {
                    kept = value.len();
                }
            }
        }
    }
    value.truncate(kept);
    value
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>, value: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            '"' => return,
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(c @ ('"' | '\\' | '`' | '$')) => value.push(c),
                Some(c) => value.extend(['\\', c]),
                None => value.push('\\'),
            },
            c => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_a_shell_reads_them() {
        for (text, expected) in [
            ("A=1\nB=2", vec![("A", "1"), ("B", "2")]),
            ("# c\n; d\n\n  A = x y  \n", vec![("A", "x y")]),
            ("A='a \"b\" $C'", vec![("A", "a \"b\" $C")]),
            ("A=\"one\ntwo \\\"q\\\" \\n\"", vec![("A", "one\ntwo \"q\" \\n")]),
            ("A=a\\\nb\nB=\\ c\\ ", vec![("A", "ab"), ("B", " c ")]),
            ("A=\nB", vec![("A", "")]),
            ("1A=x\nno name=x\nC=y", vec![("C", "y")]),
            ("# comment \\\nA=1\nB=2", vec![("B", "2")]),
            ("A='un\nclosed", vec![("A", "un\nclosed")]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
