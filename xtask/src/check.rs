//! The verbs `check`, `test`, `arrows` and `deny`: rings of tests, from the cheapest to the dearest.

use std::process::ExitCode;

use crate::arrows;
use crate::arrows::graph::Graph;
use crate::corpus;
use crate::error::{Error, Result};
use crate::report::{Count, Report, Runner};
use crate::run::{cargo, command, root, run, tee};
use crate::scenarios;
use crate::tools;

/// Tests in a file of this beginning make namespaces and want root; `check` leaves them out.
const NAMESPACE_PREFIX: &str = "namespace";

/// `cargo xtask arrows`.
///
/// # Errors
/// The architecture is broken; each place was printed.
pub fn arrows() -> Result<()> {
    arrows::enforce(&root())
}

/// `cargo xtask check`: what each commit must pass.
///
/// # Errors
/// A step could not even be begun.
pub fn check() -> Result<ExitCode> {
    tools::need(tools::UNIT)?;
    let mut report = Report::default();
    lints(&mut report, &Only(&[]));
    tests(&mut report, "unit", &TestTargets::in_process()?);
    Ok(report.close())
}

/// `cargo xtask test`: everything, or what `only` names.
///
/// # Errors
/// A step could not even be begun, or `only` names nothing.
pub fn test(only: &[String]) -> Result<ExitCode> {
    let only = Only(only);
    let mut report = Report::default();
    lints(&mut report, &only);
    if only.wants("unit") {
        tools::need(tools::UNIT)?;
        tests(&mut report, "unit", &TestTargets::in_process()?);
        report.step("doc", || run(&mut cargo(&["test", "--quiet", "--workspace", "--doc"])));
    }
    if only.wants("corpus") {
        report.step("corpus", corpus::check);
    }
    if only.wants("namespace") {
        let targets = TestTargets::namespace()?;
        if !targets.is_empty() {
            tools::need(tools::NAMESPACE)?;
            tests(&mut report, "namespace", &targets);
        }
    }
    if only.wants("agents") && root().join("scripts/test-agents").exists() {
        tools::need(tools::AGENTS)?;
        report.step("agents", || run(&mut command("bash", &["scripts/test-agents"])));
    }
    scenarios::run(&mut report, |name| only.wants(name));
    Ok(report.close())
}

/// `cargo xtask deny`.
///
/// # Errors
/// cargo-deny is not installed, or it found something.
pub fn deny() -> Result<()> {
    if tools::find("cargo-deny").is_none() {
        return Err(Error::new("cargo-deny is not installed; run: cargo install --locked cargo-deny"));
    }
    run(&mut cargo(&["deny", "--workspace", "check", "licenses", "bans", "sources"]))
}

/// The names given by `--only`.
struct Only<'a>(&'a [String]);

impl Only<'_> {
    fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| name.contains(word.as_str()))
    }
}

fn lints(report: &mut Report, only: &Only<'_>) {
    if only.wants("format") {
        report.step("format", || run(&mut cargo(&["fmt", "--all", "--check"])));
    }
    if only.wants("lints") {
        let args = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
        report.step("lints", || run(&mut cargo(&args)));
    }
    if only.wants("arrows") {
        report.step("arrows", arrows);
    }
}

/// Which test programs to run, as words for cargo.
struct TestTargets(Vec<String>);

impl TestTargets {
    /// Everything but the namespace tests.
    fn in_process() -> Result<Self> {
        let mut words = vec!["--lib".to_owned(), "--bins".to_owned()];
        words.extend(test_files(|name| !name.starts_with(NAMESPACE_PREFIX))?);
        Ok(Self(words))
    }

    fn namespace() -> Result<Self> {
        test_files(|name| name.starts_with(NAMESPACE_PREFIX)).map(Self)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn test_files(wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let graph = Graph::of_workspace()?;
    let mut names: Vec<&str> = graph
        .members()
        .flat_map(|package| &package.tests)
        .map(String::as_str)
        .filter(|n| wanted(n))
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.iter().flat_map(|name| ["--test".to_owned(), (*name).to_owned()]).collect())
}

/// Runs tests with cargo nextest where it is installed, else with cargo test, and counts each of them.
fn tests(report: &mut Report, name: &str, targets: &TestTargets) {
    let (runner, words): (Runner, &[&str]) = match tools::find("cargo-nextest") {
        Some(_) => (Runner::Nextest, &["nextest", "run", "--no-fail-fast"]),
        None => (Runner::Libtest, &["test", "--no-fail-fast"]),
    };
    let mut command = cargo(words);
    command.arg("--workspace").args(&targets.0);
    println!("== {name}");
    let mut count = Count::of(runner);
    let ended = tee(&mut command, |line| count.read(line));
    report.add(name, &count);
    match ended {
        Ok(status) if status.success() => {}
        // The failed tests are counted already.
        Ok(_) if count.failed > 0 => {}
        Ok(status) => {
            report.step(name, || Err(Error::new(format!("the test runner ended with {status}"))));
        }
        Err(error) => report.step(name, || Err(error)),
    }
}
