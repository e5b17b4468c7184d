//! Bounds on texts and lists, so that every honest answer fits a frame.

use serde::Serialize;

/// The longest text of a unit that goes into a list, in bytes.
pub const TEXT_MAX: usize = 1024;

/// The longest command line of a process, in bytes.
pub const COMMAND_MAX: usize = 4096;

/// The most problems of loading in one answer.
pub const PROBLEMS_MAX: usize = 1000;

/// The size that a page is filled up to, in bytes of JSON.
pub const PAGE: usize = 256 * 1024;

/// The text, cut at a character's edge to `max` bytes with `…` in the place of what is gone.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let room = max.saturating_sub('…'.len_utf8());
    let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Divides a list into pages of at most [`PAGE`] bytes; there is always one, if only an empty one.
///
/// A single item that is longer than a page stands alone.
///
/// # Errors
/// If an item cannot be written as JSON.
pub fn pages<T: Serialize>(items: Vec<T>) -> Result<Vec<Vec<T>>, serde_json::Error> {
    let mut pages = vec![Vec::new()];
    let mut size = 0;
    let mut json = Vec::new();
    for item in items {
        json.clear();
        serde_json::to_writer(&mut json, &item)?;
        let length = json.len() + 1;
        if size > 0 && size + length > PAGE {
            pages.push(Vec::new());
            size = 0;
        }
        size += length;
        if let Some(page) = pages.last_mut() {
            page.push(item);
        }
    }
    Ok(pages)
}

/// Divides a long text into pieces that fit a page each, whatever must be escaped in them.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    // A control character becomes six bytes of JSON.
    const ROOM: usize = PAGE / 6;
    let mut rest = text;
    let mut first = true;
    std::iter::from_fn(move || {
        if rest.is_empty() && !first {
            return None;
        }
        first = false;
        let most = rest.len().min(ROOM);
        let end = (0..=most).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_is_no_longer_than_asked_and_ends_at_a_character() {
        for (text, max, cut_text) in [
            ("short", 10, "short"),
            ("exactly-10", 10, "exactly-10"),
            ("longer than ten", 10, "longer …"),
            ("äöüäöüäöü", 10, "äöü…"),
            ("long", 2, "…"),
        ] {
            assert_eq!(cut(text, max), cut_text);
        }
    }

    #[test]
    fn pages_hold_everything_in_order_and_fit() {
        let items: Vec<String> = (0..5000).map(|n| format!("{n:0200}")).collect();
        let pages = pages(items.clone()).unwrap();
        assert!(pages.len() > 1);
        for page in &pages {
            assert!(serde_json::to_vec(page).unwrap().len() <= PAGE + 2);
        }
        assert_eq!(pages.concat(), items);
        assert_eq!(super::pages(Vec::<u8>::new()).unwrap(), [Vec::<u8>::new()]);
    }

    #[test]
    fn pieces_put_together_are_the_text_and_each_fits_a_page() {
        let text = "\u{1}ä€".repeat(60_000);
        let all: Vec<&str> = pieces(&text).collect();
        assert!(all.len() > 1);
        assert!(all.iter().all(|piece| serde_json::to_vec(piece).unwrap().len() <= PAGE + 2));
        assert_eq!(all.concat(), text);
        assert_eq!(pieces("").collect::<Vec<_>>(), [""], "an empty file is still a file");
    }
}
