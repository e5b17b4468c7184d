//! `EnvironmentFile`: lines of NAME=value as a shell would write them, systemd.exec(5).

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::iter::{Copied, Peekable};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::slice::Iter;

/// What is left of a text.
type Bytes<'t> = Peekable<Copied<Iter<'t, u8>>>;

/// More than any environment can be: the kernel takes a quarter of the stack's limit, 2 MiB by default.
const MAX_BYTES: u64 = 2 << 20;

/// What a file says, to be verified and parsed.
///
/// # Errors
/// It cannot be read, is no regular file (which reading could wait for without end) or is too long.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(agentd_linux::open::NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = Vec::new();
    if file.take(MAX_BYTES + 1).read_to_end(&mut text)? as u64 > MAX_BYTES {
        return Err(io::Error::other("it is longer than an environment can be"));
    }
    Ok(text)
}

/// The variables, in the order of the text.
///
/// Lines that begin with `#` or `;` are comments; a line that assigns nothing, or to no name, is left out. A value ends
/// with its line. Quotes count where a value begins and right behind quotes, and what is between them may be several
/// lines; behind the first plain character they are characters like any other. Outside of quotes a backslash takes the
/// next character as it is; within double quotes only before `"`, `\`, `` ` `` and `$`; within single quotes never. A
/// backslash at the end of a line joins the next one.
///
/// # Errors
/// A name or a value is not UTF-8; a comment may be anything.
pub fn parse(text: &[u8]) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut bytes: Bytes<'_> = text.iter().copied().peekable();
    loop {
        while bytes.next_if(|c| is_white(*c)).is_some() {}
        match bytes.peek() {
            None => return Ok(found),
            Some(b'#' | b';') => skip_comment(&mut bytes),
            Some(_) => {
                let mut name = Vec::new();
                while let Some(c) = bytes.next_if(|c| *c != b'=' && !is_end(*c)) {
                    name.push(c);
                }
                if bytes.next_if_eq(&b'=').is_none() {
                    continue;
                }
                let value = value(&mut bytes);
                let name = utf8(name, "a name")?;
                let name = name.trim_end_matches([' ', '\t']);
                let value = utf8(value, &format!("the value of {name}"))?;
                if agentd_unit::values::environment::name(name).is_ok() {
                    found.push((name.to_owned(), value));
                }
            }
        }
    }
}

fn utf8(bytes: Vec<u8>, what: &str) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{what} is not UTF-8")))
}

fn is_white(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a line ends here: that of Windows ends in two such characters.
fn is_end(c: u8) -> bool {
    matches!(c, b'\n' | b'\r')
}

/// To the end of the line; one that ends in a backslash goes on.
fn skip_comment(bytes: &mut Bytes<'_>) {
    while let Some(c) = bytes.next() {
        match c {
            c if is_end(c) => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

fn value(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    while let Some(c) = bytes.next_if(|c| !is_end(*c)) {
        match c {
            b'\'' => value.extend(bytes.by_ref().take_while(|c| *c != b'\'')),
            b'"' => double_quoted(bytes, &mut value),
            c if is_white(c) => {}
            c => {
                plain(c, bytes, &mut value);
                break;
            }
        }
    }
    value
}

/// From the first character without quotes to the end of the line, where white space does not count unless it is
/// escaped.
fn plain(first: u8, bytes: &mut Bytes<'_>, value: &mut Vec<u8>) {
    let mut kept = value.len();
    let mut next = Some(first);
    while let Some(c) = next {
        if c == b'\\' {
            value.extend(bytes.next().filter(|c| !is_end(*c)));
            kept = value.len();
        } else {
            value.push(c);
            if !is_white(c) {
                kept = value.len();
            }
        }
        next = bytes.next_if(|c| !is_end(*c));
    }
    value.truncate(kept);
}

fn double_quoted(bytes: &mut Bytes<'_>, value: &mut Vec<u8>) {
    while let Some(c) = bytes.next() {
        match c {
            b'"' => return,
            b'\\' => match bytes.next() {
                Some(b'\n') => {}
                Some(c @ (b'"' | b'\\' | b'`' | b'$')) => value.push(c),
                Some(c) => value.extend([b'\\', c]),
                None => value.push(b'\\'),
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
            ("A=1\r\nB=2\r\n# c\rC=3", vec![("A", "1"), ("B", "2"), ("C", "3")]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            assert_eq!(parse(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    /// What systemd 252's own library says of each.
    #[test]
    fn quotes_count_only_where_a_value_begins_and_behind_quotes() {
        for (text, expected) in [
            (r#"A={"a": 1}"#, vec![("A", r#"{"a": 1}"#)]),
            (r#"A=--opt="foo bar" -x"#, vec![("A", r#"--opt="foo bar" -x"#)]),
            ("A=it's fine\nB='q'", vec![("A", "it's fine"), ("B", "q")]),
            (r#"A="double" tail"#, vec![("A", "doubletail")]),
            ("A='a'\"b\" c 'd' e\"", vec![("A", "abc 'd' e\"")]),
            (r#"A="x" \y 'q'"#, vec![("A", "xy 'q'")]),
            ("A= 'a' \nB=\"a \"   \nC=a \\ ", vec![("A", "a"), ("B", "a "), ("C", "a  ")]),
            ("A= \"a\nb\" \"c\"   \"d\n", vec![("A", "a\nbcd\n")]),
            ("A=x \\\r\nB=3", vec![("A", "x "), ("B", "3")]),
            ("A=\"a\\\r\nb\"", vec![("A", "a\\\r\nb")]),
            ("A=a\\", vec![("A", "a")]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            assert_eq!(parse(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn only_names_and_values_must_be_utf8() {
        let found = parse(b"# G\xfcnther\n;\xff\n\xff\nA=\xc3\xbc\n").unwrap();
        assert_eq!(found, [("A".to_owned(), "\u{fc}".to_owned())]);
        for text in [&b"A=\xfc"[..], b"B=1\n\xfc=2", b"A='\xfc'"] {
            assert!(parse(text).unwrap_err().to_string().contains("not UTF-8"), "{text:?}");
        }
    }
}
