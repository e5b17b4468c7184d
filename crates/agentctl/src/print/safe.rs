//! Text from units, made safe to show: nothing in it may steer the terminal of whoever looks.

use std::borrow::Cow;
use std::fmt::Write;

/// Control characters of C0 and C1, DEL, and those that turn the direction of writing around and so can make one
/// text look like another.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text as part of one line: every unsafe character, the tab and the end of line too, becomes an escape.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// The text as whole lines: tabs and ends of lines stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n' || c == '\t')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let bad = |c: char| is_unsafe(c) && !keep(c);
    if !text.chars().any(bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if bad(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// A JSON text in which unsafe characters, which stand in its strings only, are written as `\uXXXX`.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    let bad = |c: char| is_unsafe(c) && c != '\n';
    if !text.chars().any(bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if bad(c) {
            // Every unsafe character is below U+10000, so one unit of four digits is enough.
            _ = write!(safe, "\\u{:04x}", c as u32);
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_shown_and_not_sent() {
        for (text, line) in [
            ("plain äöü ✓", "plain äöü ✓"),
            ("\x1b[31mred\x1b[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("two\nlines\tand a tab\r", "two\\nlines\\tand a tab\\r"),
            ("bell\x07 del\x7f csi\u{9b}", "bell\\u{7} del\\u{7f} csi\\u{9b}"),
            ("abc\u{202e}txt.exe", "abc\\u{202e}txt.exe"),
        ] {
            assert_eq!(one_line(text), line);
        }
        assert_eq!(plain("two\nlines\t\x1b"), "two\nlines\t\\u{1b}");
    }

    #[test]
    fn json_stays_the_same_value_without_characters_that_steer() {
        let value = serde_json::json!({"a\u{9b}": "x\u{7f}\u{202e}y\n"});
        let printed = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&printed);
        assert!(!safe.chars().any(|c| is_unsafe(c) && c != '\n'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
