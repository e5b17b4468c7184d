//! The figures, in one table for people and as JSON for programs.

use std::fmt;

use serde_json::{Value, json};

/// In what a figure is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, shown as µs, ms or s.
    Time,
    /// Bytes, shown as MB of a million.
    Size,
    /// Things in a second.
    PerSecond,
    /// Bytes in a second, shown as MB/s.
    Rate,
    /// Things.
    Count,
}

/// What a figure has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// At most so many times what stands beside it.
    Times(f64),
    /// At least so many times what stands beside it.
    AtLeastTimes(f64),
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// One figure.
#[derive(Debug, Clone)]
pub struct Line {
    /// What was measured.
    pub what: String,
    /// In what.
    pub unit: Unit,
    /// The median over the runs.
    pub value: f64,
    /// Over how many.
    pub runs: usize,
    /// What did the same work in the same run, and its median.
    pub beside: Option<(&'static str, f64)>,
    /// What is to be reached; None: the figure is only told.
    pub bar: Option<Bar>,
}

impl Line {
    /// The median of what was measured, with nothing beside it.
    #[must_use]
    pub fn new(what: impl Into<String>, unit: Unit, values: &[f64]) -> Self {
        let (value, runs) = (quantile(values, 0.5), values.len());
        Self { what: what.into(), unit, value, runs, beside: None, bar: None }
    }

    /// With the median of something else beside it.
    #[must_use]
    pub fn beside(self, name: &'static str, values: &[f64]) -> Self {
        Self { beside: Some((name, quantile(values, 0.5))), ..self }
    }

    /// With a bar.
    #[must_use]
    pub fn bar(self, bar: Bar) -> Self {
        Self { bar: Some(bar), ..self }
    }

    fn ratio(&self) -> Option<f64> {
        self.beside.map(|(_, other)| self.value / other)
    }

    /// Whether the bar is held; None without a bar.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        Some(match self.bar? {
            Bar::Times(most) => self.ratio()? <= most,
            Bar::AtLeastTimes(least) => self.ratio()? >= least,
            Bar::AtMost(most) => self.value <= most,
            Bar::AtLeast(least) => self.value >= least,
        })
    }

    fn cells(&self) -> [String; 7] {
        let beside =
            self.beside.map_or("-".into(), |(name, value)| format!("{} {name}", shown(self.unit, value)));
        let ratio = self.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let bar = match self.bar {
            None => "-".into(),
            Some(Bar::Times(most)) => format!("<= {most}x"),
            Some(Bar::AtLeastTimes(least)) => format!(">= {least}x"),
            Some(Bar::AtMost(most)) => format!("<= {}", shown(self.unit, most)),
            Some(Bar::AtLeast(least)) => format!(">= {}", shown(self.unit, least)),
        };
        let verdict = match self.is_met() {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        let (what, runs, value) = (self.what.clone(), self.runs.to_string(), shown(self.unit, self.value));
        [what, runs, value, beside, ratio, bar, verdict.into()]
    }
}

/// The value below which this part of the values lies; 0.5 is the median. 0 for no values.
#[must_use]
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let at = (part * last as f64).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time if value < 1e6 => format!("{:.1} µs", value / 1e3),
        Unit::Time if value < 1e9 => format!("{:.1} ms", value / 1e6),
        Unit::Time => format!("{:.2} s", value / 1e9),
        Unit::Size => format!("{:.2} MB", value / 1e6),
        Unit::PerSecond => format!("{value:.0} /s"),
        Unit::Rate => format!("{:.0} MB/s", value / 1e6),
        Unit::Count => format!("{value:.0}"),
    }
}

/// All lines.
#[derive(Debug, Default)]
pub struct Table(Vec<Line>);

impl Table {
    /// Adds the lines of one measure.
    pub fn add(&mut self, lines: Vec<Line>) {
        self.0.extend(lines);
    }

    /// The same for programs. Times are in nanoseconds, sizes in bytes.
    #[must_use]
    pub fn json(&self, machine: &str, notes: &[String]) -> Value {
        let lines = self.0.iter().map(|line| {
            let (beside, other) = line.beside.unzip();
            let [.., bar, _] = line.cells();
            json!({
                "what": line.what, "unit": format!("{:?}", line.unit), "value": line.value, "runs": line.runs,
                "beside": beside, "beside_value": other, "ratio": line.ratio(), "bar": bar, "met": line.is_met(),
            })
        });
        json!({ "machine": machine, "notes": notes, "lines": lines.collect::<Vec<_>>() })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["measure", "runs", "agentd", "beside", "ratio", "bar", ""].map(str::to_owned);
        let rows: Vec<[String; 7]> = std::iter::once(head).chain(self.0.iter().map(Line::cells)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 7] = std::array::from_fn(width);
        for row in &rows {
            let mut text = format!("{:w$}", row[0], w = widths[0]);
            for (cell, width) in row.iter().zip(widths).skip(1) {
                text += &format!("  {cell:>width$}");
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: f64, other: f64, bar: Bar) -> Line {
        Line::new("a", Unit::Time, &[value]).beside("floor", &[other]).bar(bar)
    }

    #[test]
    fn a_bar_is_held_or_missed() {
        for (case, line, met) in [
            ("just within the times", line(160.0, 100.0, Bar::Times(1.6)), true),
            ("beyond the times", line(161.0, 100.0, Bar::Times(1.6)), false),
            ("as fast as the other", line(100.0, 100.0, Bar::AtLeastTimes(1.0)), true),
            ("slower than the other", line(99.0, 100.0, Bar::AtLeastTimes(1.0)), false),
            ("at most", line(5.0, 100.0, Bar::AtMost(5.0)), true),
            ("more than at most", line(6.0, 100.0, Bar::AtMost(5.0)), false),
            ("at least", line(5.0, 100.0, Bar::AtLeast(5.0)), true),
            ("less than at least", line(4.0, 100.0, Bar::AtLeast(5.0)), false),
        ] {
            assert_eq!(line.is_met(), Some(met), "{case}");
        }
    }

    #[test]
    fn the_median_and_the_tail_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 101.0);
        assert_eq!(quantile(&values, 0.99), 198.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let mut table = Table::default();
        table.add(vec![line(2.5e6, 1e6, Bar::Times(2.0)), Line::new("told", Unit::Size, &[6.1e6])]);
        let text = table.to_string();
        assert!(text.contains("2.5 ms  1.0 ms floor   2.50  <= 2x  MISSED"), "{text}");
        assert!(text.contains("6.10 MB"), "{text}");
        let json = table.json("here", &[]);
        assert_eq!(json["lines"][0]["met"], false);
        assert_eq!(json["lines"][1]["met"], Value::Null);
    }
}
