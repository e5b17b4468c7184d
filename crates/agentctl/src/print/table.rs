//! Columns as systemctl prints them: as wide as their widest cell, one space between, the last one free.

use std::io::{self, Write};

use crate::print::Style;

/// A cell: its text, already safe to show, and whether it asks for attention.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    bad: bool,
}

impl Cell {
    /// A cell in red.
    pub(crate) fn bad(text: impl Into<String>, bad: bool) -> Self {
        Self { text: text.into(), bad }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, bad: false }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Rows of cells below headers.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    headers: [&'static str; N],
    rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub(crate) const fn new(headers: [&'static str; N]) -> Self {
        Self { headers, rows: Vec::new() }
    }

    /// Adds a row below.
    pub(crate) fn row(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    /// How many rows it has.
    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes it all; without rows nothing, as nobody needs headers of what is not there. No line ends in spaces.
    pub(crate) fn write(&self, style: Style, out: &mut impl Write) -> io::Result<()> {
        self.write_rows(style, true, out)
    }

    /// The same, with headers or without.
    pub(crate) fn write_rows(&self, style: Style, headers: bool, out: &mut impl Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].text.chars().count());
            // A column without a name keeps its place.
            let named = Some(self.headers[column]).filter(|header| headers || header.trim().is_empty());
            cells.chain(named.map(|header| header.chars().count())).max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        if headers {
            line(&self.headers.map(Cell::from), &widths, out, |cell, width| {
                style.header(format!("{:width$}", cell.text)).to_string()
            })?;
        }
        for row in &self.rows {
            line(row, &widths, out, |cell, width| {
                let padded = format!("{:width$}", cell.text);
                if cell.bad { style.bad(padded).to_string() } else { padded }
            })?;
        }
        Ok(())
    }
}

fn line<const N: usize>(
    row: &[Cell; N],
    widths: &[usize; N],
    out: &mut impl Write,
    show: impl Fn(&Cell, usize) -> String,
) -> io::Result<()> {
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (at, cell) in row.iter().enumerate().take(last + 1) {
        let text = if at == last { show(cell, 0) } else { show(cell, widths[at]) };
        write!(out, "{}{text}", if at == 0 { "" } else { " " })?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_no_line_ends_in_spaces() {
        let mut table = Table::new(["UNIT", "LOAD", "DESCRIPTION"]);
        table.row(["a-long-name.service".into(), "loaded".into(), "Ä".into()]);
        table.row(["ä.service".into(), "x".into(), "".into()]);
        let mut out = Vec::new();
        table.write(Style::PLAIN, &mut out).unwrap();
        let expected = "UNIT                LOAD   DESCRIPTION\n\
                        a-long-name.service loaded Ä\n\
                        ä.service           x\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
