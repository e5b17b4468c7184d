//! What passed and what failed, counted over all steps of one run.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use crate::error::Result;

/// The count of a run. Each step counts itself or the tests in it.
#[derive(Debug, Default)]
pub struct Report {
    passed: u32,
    failed: Vec<Failure>,
}

/// What failed: a step with its reason, or a test, whose reason stands in the output of its runner.
#[derive(Debug)]
struct Failure {
    name: String,
    reason: Option<String>,
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
                let reason = error.chain();
                println!("FAIL {name} ({seconds:.1} s): {reason}");
                self.failed.push(Failure { name: name.to_owned(), reason: Some(reason) });
            }
        }
    }

    /// Adds the tests that a test runner counted itself.
    pub fn add(&mut self, name: &str, count: &Count) {
        self.passed += count.passed;
        let named = count.names.iter().map(|test| format!("{name}: {test}"));
        // What a runner counted and did not name is a failure too.
        let unnamed = (count.failed as usize).saturating_sub(count.names.len());
        let names = named.chain(std::iter::repeat_n(name.to_owned(), unnamed));
        self.failed.extend(names.map(|name| Failure { name, reason: None }));
    }

    /// Says what failed and why, the sum, and the exit code: the end of a long log tells all.
    #[must_use]
    pub fn close(self) -> ExitCode {
        for Failure { name, reason } in &self.failed {
            match reason {
                Some(reason) => println!("failed: {name}: {reason}"),
                None => println!("failed: {name}"),
            }
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        // A run that tested nothing has proven nothing.
        if self.failed.is_empty() && self.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Who runs tests and tells how they went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Runner {
    /// cargo nextest, which shows what failing test programs wrote: lines of libtest too, which count nothing.
    #[default]
    Nextest,
    /// cargo test.
    Libtest,
}

/// The tests of one or more runs of a test runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    runner: Runner,
    /// Tests that passed.
    pub passed: u32,
    /// Tests that did not.
    pub failed: u32,
    /// The names of those that did not, as far as the runner says them in a way that is known.
    pub names: BTreeSet<String>,
}

impl Count {
    /// None yet, of this runner.
    #[must_use]
    pub fn of(runner: Runner) -> Self {
        Self { runner, ..Self::default() }
    }

    /// Takes up a line of output; counts by those that sum up a run.
    pub fn read(&mut self, line: &str) {
        let (name, found) = match self.runner {
            Runner::Nextest => (nextest_failure(line), nextest(line)),
            Runner::Libtest => (libtest_failure(line), libtest(line)),
        };
        self.names.extend(name);
        if let Some((passed, failed)) = found {
            self.passed += passed;
            self.failed += failed;
        }
    }
}

/// `test a_test ... FAILED`
fn libtest_failure(line: &str) -> Option<String> {
    line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")).map(str::to_owned)
}

/// `FAIL [   0.119s] ( 470/1269) agentd::wait a_test`, or a signal or `TIMEOUT` in place of `FAIL`.
fn nextest_failure(line: &str) -> Option<String> {
    let (state, rest) = line.trim().split_once(" [")?;
    if !matches!(state, "FAIL" | "TIMEOUT" | "ABORT" | "LEAK-FAIL") && !state.starts_with("SIG") {
        return None;
    }
    let (_, rest) = rest.split_once("s] ")?;
    let name = rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(rest, |(_, name)| name);
    Some(name.trim().to_owned())
}

/// `Summary [ 0.1s] 12 tests run: 10 passed (1 slow), 2 failed, 0 skipped`: what ran and did not pass has failed.
fn nextest(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.trim_start().strip_prefix("Summary [")?.split_once(']')?;
    let (run, rest) = rest.split_once(" run:")?;
    // After an early end it says `10/12 tests`; the ones that never ran have not passed either.
    let run: u32 = run.split_whitespace().next()?.rsplit('/').next()?.parse().ok()?;
    let passed: u32 = rest.split_once(" passed")?.0.trim().parse().ok()?;
    Some((passed, run.saturating_sub(passed)))
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`
fn libtest(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| rest.split_once(word)?.0.rsplit([' ', ';']).next()?.parse().ok();
    Some((number(" passed")?, number(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_closing_lines_of_both_test_runners_are_counted() {
        use Runner::{Libtest, Nextest};
        for (runner, line, passed, failed) in [
            (Nextest, "     Summary [   0.012s] 12 tests run: 12 passed, 0 skipped", 12, 0),
            (
                Nextest,
                "     Summary [   0.012s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped",
                10,
                2,
            ),
            (Nextest, "     Summary [   0.012s] 5/12 tests run: 4 passed, 1 failed, 0 skipped", 4, 8),
            (Nextest, "     Summary [   0.012s] 1 test run: 1 passed, 0 skipped", 1, 0),
            (Libtest, "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out", 3, 2),
            (Nextest, "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured", 0, 0),
            (Libtest, "test naming::a_test ... ok", 0, 0),
        ] {
            let mut count = Count::of(runner);
            count.read(line);
            assert_eq!((count.passed, count.failed), (passed, failed), "{line}");
            assert!(count.names.is_empty(), "{line}");
        }
    }

    #[test]
    fn the_tests_that_failed_are_known_by_name_and_once() {
        let names = |runner, lines: &[&str]| {
            let mut count = Count::of(runner);
            lines.iter().for_each(|line| count.read(line));
            count.names.into_iter().collect::<Vec<_>>()
        };
        let lines = [
            "        PASS [   0.119s] ( 470/1269) agentd::wait a_restart_that_waits",
            "        FAIL [   0.119s] ( 471/1269) agentd::wait a_stop",
            "    test a_stop ... FAILED",
            "        FAIL [   0.119s] ( 471/1269) agentd::wait a_stop",
            "     SIGABRT [   0.010s] (12/12) agentd-engine walk::tests::a_walk",
            "     TIMEOUT [  60.010s] agentd::long a_wait",
            "FAIL vm::a-scenario (3.1 s): said by a step",
        ];
        let failed = ["agentd-engine walk::tests::a_walk", "agentd::long a_wait", "agentd::wait a_stop"];
        assert_eq!(names(Runner::Nextest, &lines), failed);
        let lines = ["test naming::a_test ... FAILED", "test naming::another ... ok"];
        assert_eq!(names(Runner::Libtest, &lines), ["naming::a_test"]);
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
