//! `analyze verify`: what is wrong with unit files, found before a manager meets it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd_unit::edges::Edges;
use agentd_unit::loader::read_file;
use agentd_unit::{
    Body, ExecKind, LoadState, Loader, OpenGate, ParseContext, Parsed, SourceFile, Unit, UnitName, UnitSet,
    UnitType, parse_unit,
};

use super::{Finding, programs};
use crate::args::analyze::AnalyzeVerify;
use crate::context::Context;
use crate::exit::{Exit, Failure, Outcome};
use crate::offline;
use crate::print::json;
use crate::verbs::closure::Definition;

/// `agentctl analyze verify FILE…|--all`: 0 only if there is nothing to say.
pub(crate) fn verify(context: &Context, arguments: &AnalyzeVerify, out: &mut impl Write) -> Outcome {
    let mut check = Check::new(context)?;
    if arguments.all {
        check.all();
        if check.names.is_empty() {
            eprintln!(
                "There are no unit files; 'agentctl analyze unit-paths' lists where they are looked for."
            );
        }
    }
    for file in &arguments.files {
        check.file(file);
    }
    let findings = check.finish();
    if context.is_json() {
        json(&findings, out)?;
    } else {
        for finding in &findings {
            writeln!(out, "{}", finding.text())?;
        }
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Failed })
}

/// What is wrong with the texts of a unit that is not in its place yet.
pub(crate) fn of_texts(unit: &UnitName, sources: &[Arc<SourceFile>], colour: bool) -> Vec<Finding> {
    let (specifiers, zone) = (offline::specifiers(), offline::zone());
    let context = ParseContext { specifiers: &specifiers, zone: &zone };
    let found = parse_unit(unit, sources, &context).diagnostics;
    found.iter().map(|found| Finding::of_text(unit, found, colour)).collect()
}

/// The units of the search path with the files in question among them, and what was found so far.
struct Check {
    loader: Loader,
    set: UnitSet,
    /// The units in question.
    names: BTreeSet<UnitName>,
    findings: Vec<Finding>,
    problems: Vec<Finding>,
    colour: bool,
}

impl Check {
    fn new(context: &Context) -> Result<Self, Failure> {
        let loader = offline::loader(context)?;
        let report = loader.load(&OpenGate);
        let problem = |problem: &agentd_unit::Problem| {
            Finding::whole(None, Some(problem.path.display().to_string()), problem.message.clone())
        };
        Ok(Self {
            loader,
            set: report.set,
            names: BTreeSet::new(),
            findings: Vec::new(),
            problems: report.problems.iter().map(problem).collect(),
            colour: context.style.is_coloured(),
        })
    }

    /// Every unit that a file describes.
    fn all(&mut self) {
        self.findings.append(&mut self.problems);
        let units: Vec<Arc<Unit>> = self.set.iter().filter(|unit| unit.fragment.is_some()).cloned().collect();
        for unit in units {
            match &unit.load {
                LoadState::Error(why) => self.whole(&unit.name, why.clone()),
                LoadState::Masked | LoadState::NotFound => {}
                LoadState::Loaded | LoadState::BadSetting(_) => self.texts_of(&unit),
            }
            self.names.insert(unit.name.clone());
        }
    }

    /// The same bytes again, since a loaded unit remembers its first error alone.
    fn texts_of(&mut self, unit: &Unit) {
        let made_by_service = unit.name.unit_type() == UnitType::Timer
            && unit
                .fragment
                .as_deref()
                .is_some_and(|path| UnitName::of_file(path).is_ok_and(|name| name != unit.name));
        if made_by_service {
            return;
        }
        let mut files = Vec::new();
        for path in unit.fragment.iter().chain(&unit.drop_ins) {
            match read_file(path, &self.loader.config().trusted) {
                Ok(bytes) => files.push((path.to_path_buf(), bytes)),
                Err(error) => self.whole(&unit.name, error.one_line()),
            }
        }
        self.parse(&unit.name, &files);
    }

    fn file(&mut self, path: &Path) {
        // As the manager would name it.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match Definition::read(&path, Path::new("/")) {
            Ok(definition) => self.definition(&definition.unit, &definition.files),
            Err(error) => {
                let path = path.display().to_string();
                self.findings.push(Finding::whole(None, None, error.to_string()).at(path));
            }
        }
    }

    fn definition(&mut self, unit: &UnitName, files: &[(PathBuf, Vec<u8>)]) {
        let Parsed { unit: parsed, own, .. } = self.parse(unit, files);
        self.names.insert(unit.clone());
        if !unit.is_template() {
            self.set.insert(parsed);
            own.into_iter().for_each(|unit| self.set.insert(unit));
        }
    }

    fn parse(&mut self, unit: &UnitName, files: &[(PathBuf, Vec<u8>)]) -> Parsed {
        let sources: Vec<Arc<SourceFile>> =
            files.iter().map(|(path, bytes)| Arc::new(SourceFile::from_bytes(path, bytes))).collect();
        let config = self.loader.config();
        let context = ParseContext { specifiers: &config.specifiers, zone: &config.zone };
        let parsed = parse_unit(unit, &sources, &context);
        let colour = self.colour;
        self.findings.extend(parsed.diagnostics.iter().map(|found| Finding::of_text(unit, found, colour)));
        parsed
    }

    fn whole(&mut self, unit: &UnitName, message: String) {
        self.findings.push(Finding::whole(Some(unit), None, message));
    }

    /// What is wrong between the units, and with what they run.
    fn finish(mut self) -> Vec<Finding> {
        let units: Vec<Arc<Unit>> =
            self.names.iter().filter_map(|name| self.set.get(name)).cloned().collect();
        for unit in units.iter().filter(|unit| unit.load == LoadState::Loaded) {
            self.programs(unit);
            self.requirements(unit);
        }
        self.cycles();
        let mut seen = BTreeSet::new();
        self.findings.retain(|finding| seen.insert(finding.clone()));
        self.findings
    }

    fn programs(&mut self, unit: &Unit) {
        let Some(body) = unit.as_service() else { return };
        for kind in ExecKind::ALL {
            for command in body.service.commands(kind) {
                if let Err(why) = programs::find(kind, &command.program, &body.service) {
                    self.whole(&unit.name, format!("Command {} {why}", command.program));
                }
            }
        }
        let module = body.agent.as_ref().and_then(|agent| agent.module.as_deref());
        if let Some(module) = module.map(|module| body.module_file(module))
            && let Err(error) = fs::metadata(&module)
        {
            self.whole(&unit.name, format!("Module {} cannot be run: {error}", module.display()));
        }
    }

    fn requirements(&mut self, unit: &Unit) {
        let section = &unit.unit;
        for (key, names) in [
            ("Requires", &section.requires),
            ("Requisite", &section.requisite),
            ("BindsTo", &section.binds_to),
        ] {
            for name in names {
                if let Some(why) = self.cannot_start(name) {
                    self.whole(&unit.name, format!("{key} {name}, {why}"));
                }
            }
        }
        let started = match &unit.body {
            Body::Timer(timer) => timer.unit.clone().or_else(|| Some(unit.name.with_type(UnitType::Service))),
            _ => None,
        };
        if let Some((name, why)) = started.and_then(|name| Some((name.clone(), self.cannot_start(&name)?))) {
            self.whole(&unit.name, format!("starts {name}, {why}"));
        }
        for (key, names) in [("OnFailure", &section.on_failure), ("OnSuccess", &section.on_success)] {
            for name in names {
                if let Some(why) = self.cannot_start(name) {
                    let finding = Finding::whole(Some(&unit.name), None, format!("{key} {name}, {why}"));
                    self.findings.push(finding.but_a_warning());
                }
            }
        }
    }

    /// Why a unit that is named could never be started.
    fn cannot_start(&self, name: &UnitName) -> Option<String> {
        let known = self.set.get(name).map(|unit| unit.load.clone());
        let load = known
            .or_else(|| self.loader.instantiate(name, &OpenGate).map(|unit| unit.load))
            .unwrap_or(LoadState::NotFound);
        match load {
            LoadState::Loaded => None,
            LoadState::NotFound => Some("which no search path has".to_owned()),
            LoadState::Masked => Some("which is masked".to_owned()),
            LoadState::BadSetting(_) | LoadState::Error(_) => Some("which cannot be loaded".to_owned()),
        }
    }

    fn cycles(&mut self) {
        for cycle in Edges::of(&self.set).cycles() {
            let Some(unit) = cycle.members.iter().find(|member| self.names.contains(*member)) else {
                continue;
            };
            let path: Vec<&str> = cycle.path.iter().map(UnitName::as_str).collect();
            let path = path.join(" -> ");
            self.findings.push(match &cycle.given_up {
                None => {
                    let members: Vec<&str> = cycle.members.iter().map(UnitName::as_str).collect();
                    let message = format!("Ordering cycle {path}: none of {} can start", members.join(", "));
                    Finding::whole(Some(unit), None, message)
                        .with_help("each comes after the next; take one of these dependencies or orders away")
                }
                Some((later, earlier)) => {
                    let message = format!(
                        "Ordering cycle {path}: {later} will not wait for {earlier} when they start together"
                    );
                    Finding::whole(Some(unit), None, message)
                        .but_a_warning()
                        .with_help("write After or Before to say which of the two comes first")
                }
            });
        }
    }
}
