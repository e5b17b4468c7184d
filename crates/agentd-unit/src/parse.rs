//! From the texts of a unit's files to the unit: pure, and all findings in one pass.

use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use crate::assignment::{Assignment, Assignments, Name, Raw, Value};
use crate::check;
use crate::diagnostic::{Diagnostic, Severity, nearest, quote};
use crate::digest::digest;
use crate::draft::{Draft, Keys, Place};
use crate::exec::ExecKind;
use crate::ini_front;
use crate::name::{UnitName, UnitType};
use crate::schema::{self, ApplyContext, Section, Setting, Slot};
use crate::sections::InstallSection;
use crate::source::{Origin, SourceFile, Syntax};
use crate::specifier::SpecifierContext;
use crate::strict;
use crate::toml_front::{self, MAX_ERRORS};
use crate::unit::{Body, LoadState, ServiceBody, Unit};
use crate::zone::LocalZone;

/// What reading a unit hangs on besides its files.
#[derive(Debug, Clone, Copy)]
pub struct ParseContext<'a> {
    /// The values of specifiers.
    pub specifiers: &'a SpecifierContext,
    /// The zone of calendars that name none.
    pub zone: &'a LocalZone,
}

/// What came of reading a unit's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The unit. With an error among the findings its load state is `BadSetting`.
    pub unit: Unit,
    /// What a service's own `[Timer]`, `[Socket]` and `[Path]` make.
    pub own: Vec<Unit>,
    /// Everything that was found, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

/// Room that one unit after the other is read in, so that it is asked for once.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// What one file says.
    found: Assignments<'static>,
    /// Its sections.
    sections: Vec<Option<Section>>,
    /// The keys that were set.
    keys: Keys,
}

/// Reads a unit from its main file and its drop-ins, in the order in which they apply.
#[must_use]
pub fn parse_unit(name: &UnitName, files: &[Arc<SourceFile>], context: &ParseContext<'_>) -> Parsed {
    parse_unit_on(&mut Desk::default(), name, files, context)
}

/// The same, on a desk that was used before.
#[must_use]
pub(crate) fn parse_unit_on(
    desk: &mut Desk,
    name: &UnitName,
    files: &[Arc<SourceFile>],
    context: &ParseContext<'_>,
) -> Parsed {
    let mut reader = Reader::new(desk, name, context, Vec::new());
    reader.files(files);
    if !reader.resets.is_empty() {
        // Rare, so that reading once more without what was taken back costs nobody anything.
        let resets = take(&mut reader.resets);
        reader = Reader::new(desk, name, context, resets);
        reader.files(files);
    }
    let mut unit = assemble(name, files, &mut reader.draft);
    unit.warnings = reader.diagnostics.iter().filter(|d| !d.is_error()).map(Diagnostic::to_string).collect();
    unit.load = load_state(&reader.diagnostics);
    let own = own_units(&mut unit, &reader.draft);
    let Reader { draft, diagnostics, found, sections, .. } = reader;
    *desk = Desk { found, sections, keys: draft.into_keys() };
    Parsed { unit, own, diagnostics }
}

fn load_state(diagnostics: &[Diagnostic]) -> LoadState {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let Some(first) = errors.next() else { return LoadState::Loaded };
    LoadState::BadSetting(match errors.count() {
        0 => first.to_string(),
        1 => format!("{first}; and one more error"),
        more => format!("{first}; and {more} more errors"),
    })
}

struct Reader<'a> {
    name: &'a UnitName,
    context: &'a ParseContext<'a>,
    draft: Draft,
    diagnostics: Vec<Diagnostic>,
    /// How many warnings and errors were found, those that are not told too.
    counts: [usize; 2],
    /// Room for what one file says, and for its sections.
    found: Assignments<'static>,
    sections: Vec<Option<Section>>,
    /// The file that is being read: its place among those of the unit.
    number: usize,
    /// How many assignments of all files were looked at.
    position: usize,
    /// Keys that an empty value at this position makes what they are by default: what was set before it does not count.
    taken_back: Vec<Reset>,
    /// Those that were found now.
    resets: Vec<Reset>,
}

/// A key, and the position of the empty value that takes it back.
type Reset = (Section, &'static str, usize);

impl<'r> Reader<'r> {
    fn new(
        desk: &mut Desk,
        name: &'r UnitName,
        context: &'r ParseContext<'r>,
        taken_back: Vec<Reset>,
    ) -> Self {
        let Desk { found, sections, keys } = take(desk);
        let (diagnostics, resets) = (Vec::new(), Vec::new());
        Self {
            name,
            context,
            draft: Draft::noting_in(keys),
            diagnostics,
            counts: [0; 2],
            found,
            sections,
            number: 0,
            position: 0,
            taken_back,
            resets,
        }
    }

    fn files(&mut self, files: &[Arc<SourceFile>]) {
        let mut found = take(&mut self.found).emptied();
        for (number, file) in files.iter().enumerate() {
            self.number = number;
            let first = self.diagnostics.len();
            found.clear();
            let problems = match file.syntax() {
                Syntax::Toml => toml_front::read(file, &mut found),
                Syntax::Systemd => ini_front::read(file, &mut found),
            };
            problems.into_iter().for_each(|problem| self.tell(problem));
            self.file(file, &found);
            self.diagnostics[first..].sort_by_key(|diagnostic| diagnostic.span.start);
        }
        self.found = found.emptied();
        let sound = !self.diagnostics.iter().any(Diagnostic::is_error);
        if sound && !files.is_empty() {
            strict::expand(self.name, self.context, &mut self.draft);
            check::cross_check(self.name, &mut self.draft, files, &mut self.diagnostics);
        }
    }

    fn file(&mut self, file: &Arc<SourceFile>, found: &Assignments<'_>) {
        let mut sections = take(&mut self.sections);
        sections.clear();
        sections.extend(found.sections.iter().map(|name| self.section(file, name)));
        for assignment in &found.assignments {
            self.position += 1;
            if let Some(section) = sections.get(assignment.section).copied().flatten()
                && let Some((section, setting)) = self.setting(file, section, assignment)
            {
                self.apply(file, section, setting, assignment);
            }
        }
        self.sections = sections;
    }

    /// The section of this name, if the unit may have it; `X-` sections are for other programs. Files in systemd's
    /// syntax are often written by others: what is not known there is left out with a warning, as systemd does.
    fn section(&mut self, file: &Arc<SourceFile>, name: &Name<'_>) -> Option<Section> {
        let text = &*name.text;
        if text.starts_with("X-") {
            return None;
        }
        let unit_type = self.name.unit_type();
        let (message, help) = match Section::from_name(text) {
            Some(section) if section.fits(unit_type) => {
                let place = Place { file: self.number, span: name.span.clone() };
                self.draft.saw_section(section, place);
                return Some(section);
            }
            Some(_) => (
                format!("[{text}] has no place in a {unit_type}"),
                format!("{} is a {unit_type} by its name", self.name),
            ),
            None if schema::systemd_has_section(text) => (
                format!("[{text}]: not supported: agentd has no units of that type"),
                "leave it to the machine's own set-up".to_owned(),
            ),
            None => (format!("there is no section [{text}]"), self.sections_near(text, file.syntax())),
        };
        let finding = Diagnostic::error(file, name.span.clone(), message).with_help(help);
        self.tell(lenient(file, finding));
        None
    }

    /// What was meant by a section that there is not.
    fn sections_near(&self, text: &str, syntax: Syntax) -> String {
        let unit_type = self.name.unit_type();
        let fitting = Section::ALL.into_iter().filter(|section| section.fits(unit_type));
        if self.is_full(syntax) {
            return String::new(); // Not told, and looking for what was meant takes time.
        }
        match nearest(text, fitting.clone().map(Section::as_str)) {
            Some(near) => format!("did you mean [{near}]?"),
            None => {
                let all: Vec<String> = fitting.map(|section| format!("[{}]", section.as_str())).collect();
                format!("a {unit_type} has {}", all.join(" "))
            }
        }
    }

    /// The key of this name, under its present name and section; one that there is not is told with what was meant.
    fn setting(
        &mut self,
        source: &Arc<SourceFile>,
        section: Section,
        assignment: &Assignment<'_>,
    ) -> Option<(Section, &'static Setting)> {
        let key = &*assignment.key.text;
        if key.starts_with("X-") {
            return None;
        }
        let foreign = source.syntax() == Syntax::Systemd;
        // No old name is a key of its own section, as a test shows: what is one need not be looked for.
        let present = section.setting(key);
        let old = if foreign && present.is_none() { schema::renamed(section, key) } else { None };
        let (home, name) = old.unwrap_or((section, key));
        let finding = match present.or_else(|| home.setting(name)) {
            Some(setting) if source.origin() == Origin::Control && !setting.limit => {
                let message = format!(
                    "[{}] {key}: a file below control/ may set resource limits alone",
                    section.as_str()
                );
                Diagnostic::error(source, assignment.key.span.clone(), message)
                    .with_help("write a drop-in below /etc/agentd/units and sign it".to_owned())
            }
            Some(setting) => return Some((home, setting)),
            None if self.is_full(source.syntax()) => return None, // Not told, and looking for what was meant takes time.
            None => {
                let (message, help) = missing(section, home, name, key);
                let finding = Diagnostic::error(source, assignment.key.span.clone(), message).with_help(help);
                lenient(source, finding)
            }
        };
        self.tell(finding);
        None
    }

    fn apply(
        &mut self,
        source: &Arc<SourceFile>,
        section: Section,
        setting: &'static Setting,
        assignment: &Assignment<'_>,
    ) {
        let is_taken_back =
            |(of, key, position): &Reset| (*of, *key) == (section, setting.key) && self.position <= *position;
        if self.taken_back.iter().any(is_taken_back) {
            return;
        }
        let value = self.supported(source, section, setting, assignment);
        let mut cx = ApplyContext::new(self.name, self.context, &value);
        schema::apply(setting, &value, &mut self.draft, &mut cx);
        if cx.foreign && !cx.refused.is_empty() && schema::resets(&value) {
            // Its kind knows no empty value, so there is nothing to put into its field.
            if self.draft.key(section, setting.key).is_some() {
                self.resets.push((section, setting.key, self.position));
            }
            return;
        }
        let key = || format!("[{}] {}", section.as_str(), setting.key);
        let ApplyContext { refused, warned, reset, .. } = cx;
        let is_wrong = !refused.is_empty();
        for (span, refused) in refused {
            let message = format!("{}: {}", key(), refused.why);
            self.tell(Diagnostic::error(source, span, message).with_help(refused.help));
        }
        for (span, warned) in warned {
            let message = format!("{}: {}", key(), warned.why);
            self.tell(Diagnostic::warning(source, span, message).with_help(warned.help));
        }
        let is_quiet = reset || is_wrong; // A wrong value has no effect anyway.
        if let Some(later) = setting.later.filter(|_| !is_quiet) {
            let message = format!("{}: is checked but has no effect yet: {later}", key());
            self.tell(Diagnostic::warning(source, assignment.key.span.clone(), message));
        }
        if reset {
            self.draft.forget_key(section, setting.key);
        } else {
            let place = Place { file: self.number, span: assignment.key.span.clone() };
            self.draft.saw_key(section, setting.key, place);
        }
    }

    /// The value; in systemd's syntax a word that only systemd has is taken as the nearest one, with a warning.
    fn supported<'v, 'a>(
        &mut self,
        source: &Arc<SourceFile>,
        section: Section,
        setting: &Setting,
        assignment: &'v Assignment<'a>,
    ) -> Cow<'v, Value<'a>> {
        let value = &assignment.value;
        let (Raw::Text(text), true) = (&value.raw, value.is_line()) else { return Cow::Borrowed(value) };
        let has = || matches!(setting.slot, Slot::Choice(words, _) if words().contains(&&**text));
        let found = schema::substitute(section, setting.key, text).filter(|_| !has());
        let Some((word, why)) = found else { return Cow::Borrowed(value) };
        let message = format!(
            "[{}] {}: '{text}' is not supported and taken as {word}: {why}",
            section.as_str(),
            setting.key
        );
        self.tell(Diagnostic::warning(source, value.span.clone(), message));
        Cow::Owned(Value { raw: Raw::Text(Cow::Borrowed(word)), ..value.clone() })
    }

    /// Whether so much unknown was found in a file of this syntax that no more of it is told.
    fn is_full(&self, syntax: Syntax) -> bool {
        self.counts[usize::from(syntax == Syntax::Toml)] >= MAX_ERRORS
    }

    /// Takes a finding, unless there are very many of its severity.
    fn tell(&mut self, finding: Diagnostic) {
        let count = &mut self.counts[usize::from(finding.is_error())];
        *count += 1;
        if *count <= MAX_ERRORS {
            self.diagnostics.push(finding);
        }
    }
}

/// In systemd's syntax what is not known is a warning.
fn lenient(source: &SourceFile, finding: Diagnostic) -> Diagnostic {
    match source.syntax() {
        Syntax::Toml => finding,
        Syntax::Systemd => Diagnostic { severity: Severity::Warning, ..finding },
    }
}

/// What to say of a key that the section does not have, and what was meant by it. `home` and `name` are what `key`
/// stands for, if it is an old name.
pub(crate) fn missing(section: Section, home: Section, name: &str, key: &str) -> (String, Option<String>) {
    let in_section = section.as_str();
    if let Some((home, name)) =
        schema::renamed(section, key).filter(|(home, name)| home.setting(name).is_some())
    {
        let message = format!("[{in_section}] {key}: is the old name of {name}");
        return (message, Some(format!("write {name} below [{}]", home.as_str())));
    }
    if let Some(known) = schema::known(home, name) {
        return (format!("[{in_section}] {key}: not supported: {}", known.reason.as_str()), None);
    }
    match schema::home_of(key) {
        Some(home) => {
            (format!("[{in_section}] {key}: belongs to [{home}]"), Some(format!("move it below [{home}]")))
        }
        None => (format!("[{in_section}] has no setting {}", quote(key)), schema::suggestion(section, key)),
    }
}

fn assemble(name: &UnitName, files: &[Arc<SourceFile>], draft: &mut Draft) -> Unit {
    let mut unit = Unit::with_body(name.clone(), body(name, draft));
    unit.fragment = files.first().map(|file| Arc::clone(file.shared_path()));
    unit.drop_ins = files.iter().skip(1).map(|file| Arc::clone(file.shared_path())).collect();
    unit.sources = files.to_vec();
    let texts = files.iter().map(|file| file.text().as_bytes());
    unit.digest = digest(std::iter::once(name.as_str().as_bytes()).chain(texts));
    unit.unit = take(&mut draft.unit);
    unit.install = take(&mut draft.install);
    unit.install.present = draft.section(Section::Install).is_some();
    // A unit in systemd's syntax follows systemd: no implied order, and links enable it.
    let foreign = files.first().is_some_and(|file| file.syntax() == Syntax::Systemd);
    unit.implicit_order = !foreign;
    let by_itself = unit.install.enabled.unwrap_or(!foreign);
    unit.enabled = unit.install.present && by_itself && !name.is_template();
    unit
}

/// The section of a unit's type.
fn body(name: &UnitName, draft: &mut Draft) -> Body {
    match name.unit_type() {
        UnitType::Service => {
            // Lists grow in steps; what is loaded stays as it is.
            ExecKind::ALL.into_iter().for_each(|kind| draft.service.shrink_commands(kind));
            let has = |section| draft.section(section).is_some();
            let (agent, snapshot, rollout) =
                (has(Section::Agent), has(Section::Snapshot), has(Section::Rollout));
            Body::Service(Box::new(ServiceBody {
                agent: agent.then(|| Box::new(take(&mut draft.agent))),
                snapshot: snapshot.then(|| Box::new(take(&mut draft.snapshot))),
                rollout: rollout.then(|| Box::new(take(&mut draft.rollout))),
                service: take(&mut draft.service),
            }))
        }
        UnitType::Timer => Body::Timer(Box::new(take(&mut draft.timer))),
        UnitType::Slice => Body::Slice(Box::new(take(&mut draft.slice))),
        UnitType::Socket => Body::Socket(Box::new(take(&mut draft.socket))),
        UnitType::Path => Body::Path(Box::new(take(&mut draft.path))),
        UnitType::Target => Body::Target,
    }
}

/// The timer, socket and path unit that a service brings: they take the service's `[Install]` over, since they and not
/// the boot are to start the service.
fn own_units(service: &mut Unit, draft: &Draft) -> Vec<Unit> {
    if service.name.unit_type() != UnitType::Service {
        return Vec::new();
    }
    let mut own = Vec::new();
    for (section, unit_type) in [
        (Section::Timer, UnitType::Timer),
        (Section::Socket, UnitType::Socket),
        (Section::Path, UnitType::Path),
    ] {
        if draft.section(section).is_some() {
            own.push(own_unit(service, unit_type, draft));
        }
    }
    if !own.is_empty() {
        service.install = InstallSection::default();
        service.enabled = false;
    }
    own
}

fn own_unit(service: &Unit, unit_type: UnitType, draft: &Draft) -> Unit {
    let mut unit = Unit::not_found(service.name.with_type(unit_type));
    unit.load = service.load.clone();
    unit.fragment.clone_from(&service.fragment);
    unit.drop_ins.clone_from(&service.drop_ins);
    unit.sources.clone_from(&service.sources);
    unit.install.clone_from(&service.install);
    unit.install.alias.clear();
    unit.enabled = service.enabled;
    let (what, content) = match unit_type {
        UnitType::Socket => {
            unit.body = Body::Socket(Box::new(draft.socket.clone()));
            ("Socket", format!("{:?}", draft.socket))
        }
        UnitType::Path => {
            let mut path = draft.path.clone();
            path.unit.get_or_insert_with(|| service.name.clone());
            unit.body = Body::Path(Box::new(path));
            ("Path", format!("{:?}", draft.path))
        }
        _ => {
            let mut timer = draft.timer.clone();
            timer.unit.get_or_insert_with(|| service.name.clone());
            unit.body = Body::Timer(Box::new(timer));
            let triggers: Vec<String> = draft.timer.triggers.iter().map(ToString::to_string).collect();
            ("Timer", format!("{} {}", triggers.join(" "), draft.timer.persistent))
        }
    };
    unit.unit.description = Some(format!("{what} of {}", service.description()));
    // What else the service's file says does not change it.
    let install = format!("{:?} {}", unit.install, unit.name);
    unit.digest = digest([content, install].iter().map(String::as_bytes));
    unit
}
