//! What passed and what failed, counted over all steps of one run.

use std::process::ExitCode;
use std::time::Instant;

use crate::error::Result;

/// The count of a run. Each step counts itself or the tests in it.
#[derive(Debug, Default)]
pub struct Report {
    passed: u32,
    failed: Vec<String>,
}

impl Report {
    /// Runs a step that counts as one, prints how it went and goes on either way.
    pub fn step(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        println!("== {name}");
        let begun = Instant::now();
        let result = step();
        let seconds = begun.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                println!("PASS {name} ({seconds:.1} s)");
                self.passed += 1;
            }
            Err(error) => {
                println!("FAIL {name} ({seconds:.1} s): {}", error.chain());
                self.failed.push(name.to_owned());
            }
        }
    }

    /// Adds the tests that a test runner counted itself.
    pub fn add(&mut self, name: &str, count: Count) {
        self.passed += count.passed;
        for _ in 0..count.failed {
            self.failed.push(name.to_owned());
        }
    }

    /// Says the sum, the names of what failed, and the exit code.
    #[must_use]
    pub fn close(self) -> ExitCode {
        let mut names = self.failed.clone();
        names.dedup();
        if !names.is_empty() {
            println!("failed: {}", names.join(", "));
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        // A run that tested nothing has proven nothing.
        if self.failed.is_empty() && self.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The tests of one or more runs of a test runner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that did not.
    pub failed: u32,
}

impl Count {
    /// Takes up a line of output; counts those that sum up a run, of cargo nextest or cargo test.
    pub fn read(&mut self, line: &str) {
        let Some(found) = nextest(line).or_else(|| libtest(line)) else { return };
        self.passed += found.passed;
        self.failed += found.failed;
    }
}

/// `Summary [ 0.1s] 12 tests run: 10 passed (1 slow), 2 failed, 0 skipped`: what ran and did not pass has failed.
fn nextest(line: &str) -> Option<Count> {
    let (_, rest) = line.trim_start().strip_prefix("Summary [")?.split_once(']')?;
    let (run, rest) = rest.split_once(" run:")?;
    // After an early end it says `10/12 tests`; the ones that never ran have not passed either.
    let run: u32 = run.split_whitespace().next()?.rsplit('/').next()?.parse().ok()?;
    let passed: u32 = rest.split_once(" passed")?.0.trim().parse().ok()?;
    Some(Count { passed, failed: run.saturating_sub(passed) })
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`
fn libtest(line: &str) -> Option<Count> {
    let rest = line.trim_start().strip_prefix("test result: ")?;
    let number = |word: &str| rest.split_once(word)?.0.rsplit([' ', ';']).next()?.parse().ok();
    Some(Count { passed: number(" passed")?, failed: number(" failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_closing_lines_of_both_test_runners_are_counted() {
        for (line, passed, failed) in [
            ("     Summary [   0.012s] 12 tests run: 12 passed, 0 skipped", 12, 0),
            (
                "     Summary [   0.012s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped",
                10,
                2,
            ),
            ("     Summary [   0.012s] 5/12 tests run: 4 passed, 1 failed, 0 skipped", 4, 8),
            ("     Summary [   0.012s] 1 test run: 1 passed, 0 skipped", 1, 0),
            ("test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out", 3, 2),
            ("test naming::a_test ... ok", 0, 0),
        ] {
            let mut count = Count::default();
            count.read(line);
            assert_eq!(count, Count { passed, failed }, "{line}");
        }
    }

    #[test]
    fn a_run_without_a_test_is_a_failure() {
        assert_eq!(format!("{:?}", Report::default().close()), format!("{:?}", ExitCode::FAILURE));
    }

    #[test]
    fn one_failed_step_fails_the_run() {
        let mut report = Report::default();
        report.step("good", || Ok(()));
        report.step("bad", || Err(Error::new("planted")));
        assert_eq!(format!("{:?}", report.close()), format!("{:?}", ExitCode::FAILURE));
    }
}
