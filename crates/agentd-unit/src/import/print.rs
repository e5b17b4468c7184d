//! The document as text.

use super::collect::{Document, Entry, Given, Line};
use super::value::{Item, key};
use crate::schema::Shape;

/// The whole file.
pub(super) fn print(document: &Document) -> String {
    let mut text = String::new();
    lines(&document.head, "", &mut text);
    for (number, section) in document.sections.iter().enumerate() {
        if number > 0 && !text.ends_with("\n\n") {
            text.push('\n');
        }
        lines(&section.above, "", &mut text);
        text.push_str(&format!("[{}]\n", key(&section.name)));
        let mut taken_back = false;
        for entry in &section.entries {
            self::entry(entry, &mut taken_back, &mut text);
        }
    }
    lines(&document.tail, "", &mut text);
    let trimmed = text.trim_end().len();
    text.truncate(trimmed);
    text.push('\n');
    text
}

fn lines(lines: &[Line], indent: &str, text: &mut String) {
    for line in lines {
        match line {
            // One empty line says as much as several.
            Line::Blank if text.is_empty() || text.ends_with("\n\n") => {}
            Line::Blank => text.push('\n'),
            Line::Comment(comment) => {
                text.push_str(indent);
                text.push('#');
                if !comment.trim().is_empty() {
                    text.push(' ');
                    text.extend(comment.trim().chars().map(of_comment));
                }
            }
        }
        if matches!(line, Line::Comment(_)) {
            text.push('\n');
        }
    }
}

/// A comment in TOML has no control characters but tabs; one that was there shows that it was.
fn of_comment(character: char) -> char {
    if character.is_control() && character != '\t' { char::REPLACEMENT_CHARACTER } else { character }
}

/// One entry; `taken_back`: a key of the section's sisters took back the values of all of them already.
fn entry(entry: &Entry, taken_back: &mut bool, text: &mut String) {
    match entry {
        Entry::Lines(loose) => lines(loose, "", text),
        Entry::Key { key: name, shape, given, drop_in, shared } => {
            let last_reset = given.iter().rposition(|given| given.item == Item::Reset);
            let counting = &given[last_reset.map_or(0, |reset| reset + 1)..];
            match shape {
                Shape::Text | Shape::Plain | Shape::Bool => {
                    given.iter().for_each(|given| lines(&given.above, "", text));
                    if let Some(Given { item: Item::Scalar(value), .. }) = counting.last() {
                        text.push_str(&format!("{} = {value}\n", key(name)));
                    }
                }
                // Among sisters the first says it for all: a later one would take back what the others set.
                _ if *shared && counting.is_empty() && (!*drop_in || *taken_back) => {
                    given.iter().for_each(|given| lines(&given.above, "", text));
                }
                _ => {
                    // No capability at all is not what a file without the key says.
                    let reaches = *drop_in || *shape == Shape::Capabilities;
                    let resets = last_reset.is_some() && reaches && !(*shared && *taken_back);
                    *taken_back |= *shared && resets;
                    list(name, *shape, given, counting, resets, text);
                }
            }
        }
    }
}

/// A list: on one line where it fits and has no comment inside.
fn list(name: &str, shape: Shape, given: &[Given], counting: &[Given], resets: bool, text: &mut String) {
    let before = given.len() - counting.len();
    given[..before].iter().for_each(|given| lines(&given.above, "", text));
    if let Some(first) = counting.first() {
        lines(&first.above, "", text);
    }
    // A ~ turns its line round: then each line is a list of its own.
    let turned = |given: &Given| given.words.as_ref().is_some_and(|words| words.starts_with('~'));
    let by_line = counting.len() > 1 && counting.iter().any(turned);
    let empty = if shape == Shape::Commands || by_line { "[]" } else { "\"\"" };
    let mut items: Vec<(&[Line], String)> = Vec::new();
    if resets && !counting.is_empty() {
        items.push((&[], empty.to_owned()));
    }
    for (number, given) in counting.iter().enumerate() {
        let Item::Items(values) = &given.item else { continue };
        if by_line {
            let above: &[Line] = if number > 0 { &given.above } else { &[] };
            items.push((above, format!("[{}]", values.join(", "))));
            continue;
        }
        for (place, value) in values.iter().enumerate() {
            let above: &[Line] = if number > 0 && place == 0 { &given.above } else { &[] };
            items.push((above, value.clone()));
        }
    }
    let commented = items.iter().any(|(above, _)| above.iter().any(|line| matches!(line, Line::Comment(_))));
    let values: Vec<&str> = items.iter().map(|(_, value)| value.as_str()).collect();
    let one_line = match (shape, values.as_slice()) {
        // A single command needs no list around it.
        (Shape::Commands, [command]) => format!("{} = {command}\n", key(name)),
        _ => format!("{} = [{}]\n", key(name), values.join(", ")),
    };
    if values.len() < 2 || (!commented && one_line.len() <= 100) {
        return text.push_str(&one_line);
    }
    text.push_str(&format!("{} = [\n", key(name)));
    for (above, value) in items {
        lines(above, "  ", text);
        text.push_str(&format!("  {value},\n"));
    }
    text.push_str("]\n");
}
