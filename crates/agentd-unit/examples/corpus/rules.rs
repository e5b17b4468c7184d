//! What holds for every file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentd_unit::sections::SocketSection;
use agentd_unit::{
    Body, Diagnostic, LocalZone, ParseContext, Parsed, SourceFile, SpecifierContext, Unit, UnitName, import,
    parse_unit,
};

use crate::files::File;
use crate::plain;

/// The rules that a file breaks, each as a line.
pub(crate) fn check(file: &File) -> Vec<String> {
    let path = file.path.display();
    let mut broken = Vec::new();
    let name = instance(&file.name);
    let source = Arc::new(SourceFile::from_bytes(&file.path, &file.bytes));
    let parsed = parse(&name, file, &source);
    let errors = |parsed: &Parsed| -> Vec<String> {
        parsed.diagnostics.iter().filter(|d| d.is_error()).map(Diagnostic::to_string).collect()
    };
    // A word that is refused with the reason is told in the table; the rest of the file was read all the same.
    broken.extend(errors(&parsed).into_iter().filter(|error| refused_word(error).is_none()));
    for key in plain::keys(file) {
        let unknown = format!("has no setting '{}'", key.key);
        let said = parsed.diagnostics.iter().any(|d| d.message.contains(&unknown));
        if said && is_systemds(&key.section, &key.key) {
            broken.push(format!("{path}: {} is called unknown, but systemd knows it", key.key));
        }
    }
    let (ours, plain) = (edges(&parsed.unit), expected(file, &name));
    if ours != plain {
        broken.push(format!("{path}: the edges are {ours:?}, but the keys say {plain:?}"));
    }
    // What came in as wrong may go out as wrong.
    if errors(&parsed).is_empty() {
        let imported = import::to_toml(&source, &file.name);
        let toml_path = format!("{}.toml", file.path.display());
        let toml = Arc::new(SourceFile::new(toml_path, imported.text.as_str()));
        let again = parse(&name, file, &toml);
        broken.extend(errors(&again).into_iter().map(|error| format!("imported: {error}")));
        if let Some(difference) = difference(&parsed, &again) {
            broken.push(format!("{path}: imported it is another unit: {difference}\n{}", imported.text));
        }
    }
    broken
}

/// The key with the word of systemd's that an error refuses with the reason, and the reason.
pub(crate) fn refused_word(error: &str) -> Option<(String, String)> {
    let (before, reason) = error.split_once(" is not supported: ")?;
    let (key, word) = before.rsplit_once(": ")?;
    let key = key.rsplit(' ').next()?;
    Some((format!("{key}={}", word.trim_matches('\'')), reason.to_owned()))
}

/// The words that a file has and that are refused with the reason.
pub(crate) fn refused_words(file: &File) -> Vec<(String, String)> {
    let source = Arc::new(SourceFile::from_bytes(&file.path, &file.bytes));
    let parsed = parse(&instance(&file.name), file, &source);
    let errors = parsed.diagnostics.iter().filter(|d| d.is_error());
    errors.filter_map(|error| refused_word(&error.message)).collect()
}

/// A drop-in is read behind a main file that has what a unit needs.
fn parse(name: &UnitName, file: &File, source: &Arc<SourceFile>) -> Parsed {
    let mut specifiers = SpecifierContext::system();
    specifiers.host_name = "host".to_owned();
    specifiers.machine_id = "0123456789abcdef0123456789abcdef".to_owned();
    specifiers.boot_id = "fedcba9876543210fedcba9876543210".to_owned();
    specifiers.kernel_release = "6.1".to_owned();
    specifiers.architecture = "x86-64".to_owned();
    let zone = LocalZone::utc();
    let context = ParseContext { specifiers: &specifiers, zone: &zone };
    let needed = match name.unit_type().as_str() {
        "service" => "[Service]\nExecStart=/bin/true\n",
        "timer" => "[Timer]\nOnBootSec=1\n",
        "socket" => "[Socket]\nListenStream=/run/x\n",
        "path" => "[Path]\nPathExists=/x\n",
        _ => "[Unit]\n",
    };
    let main = Arc::new(SourceFile::new(format!("/main/{name}"), needed));
    let files = if file.drop_in { vec![main, Arc::clone(source)] } else { vec![Arc::clone(source)] };
    parse_unit(name, &files, &context)
}

/// A template is read as its instance `x`.
fn instance(name: &UnitName) -> UnitName {
    if !name.is_template() {
        return name.clone();
    }
    UnitName::parse(&format!("{}@x.{}", name.prefix(), name.unit_type())).unwrap()
}

fn is_systemds(section: &str, key: &str) -> bool {
    !matches!(agentd_unit::schema::support(section, key), agentd_unit::schema::Support::Unknown)
}

fn edges(unit: &Unit) -> BTreeMap<String, BTreeSet<String>> {
    let (u, i) = (&unit.unit, &unit.install);
    let lists = [
        ("Requires", &u.requires),
        ("Requisite", &u.requisite),
        ("Wants", &u.wants),
        ("BindsTo", &u.binds_to),
        ("PartOf", &u.part_of),
        ("Upholds", &u.upholds),
        ("Conflicts", &u.conflicts),
        ("Before", &u.before),
        ("After", &u.after),
        ("OnFailure", &u.on_failure),
        ("OnSuccess", &u.on_success),
        ("PropagatesStopTo", &u.propagates_stop_to),
        ("WantedBy", &i.wanted_by),
        ("RequiredBy", &i.required_by),
        ("Alias", &i.alias),
    ];
    let named = lists.into_iter().filter(|(_, set)| !set.is_empty());
    named.map(|(key, set)| (key.to_owned(), set.iter().map(ToString::to_string).collect())).collect()
}

/// The edges that the keys name, with the specifiers of names and the instances of templates put in.
fn expected(file: &File, name: &UnitName) -> BTreeMap<String, BTreeSet<String>> {
    let own = name.instance().unwrap_or_else(|| name.prefix());
    let name_of = |key: &str, word: &str| {
        let word = word.replace("%i", name.instance().unwrap_or_default());
        let word = word.replace("%n", name.as_str()).replace("%p", name.prefix());
        match word.split_once("@.") {
            Some((prefix, ending)) if key != "Alias" => format!("{prefix}@{own}.{ending}"),
            _ => word,
        }
    };
    let mut edges = BTreeMap::new();
    for (key, words) in plain::edges(file) {
        let mut set: BTreeSet<String> = words.iter().map(|word| name_of(&key, word)).collect();
        set.remove(name.as_str());
        edges.insert(key, set);
    }
    edges.retain(|_, set| !set.is_empty());
    edges
}

/// The first thing in which two readings of a unit differ, but for what the syntax itself decides.
fn difference(one: &Parsed, other: &Parsed) -> Option<String> {
    let (a, b) = (&one.unit, &other.unit);
    if a.unit != b.unit {
        return Some(format!("{:?}\n{:?}", a.unit, b.unit));
    }
    if a.install != b.install && one.own.is_empty() {
        return Some(format!("{:?}\n{:?}", a.install, b.install));
    }
    let timer = |parsed: &Parsed| parsed.own.iter().map(|unit| unit.body.clone()).collect::<Vec<_>>();
    if timer(one) != timer(other) {
        return Some("its timer".to_owned());
    }
    match (&a.body, &b.body) {
        (Body::Service(a), Body::Service(b)) if a != b => Some(format!("{a:?}\n{b:?}")),
        (Body::Socket(a), Body::Socket(b)) => {
            // In TOML a key stands once, so listeners of one kind stand together.
            let by_kind = |socket: &SocketSection| {
                let mut socket = socket.clone();
                socket.listen.sort_by_key(|listen| listen.kind.key());
                socket
            };
            (by_kind(a) != by_kind(b)).then(|| format!("{a:?}\n{b:?}"))
        }
        (a, b) if a != b => Some(format!("{a:?}\n{b:?}")),
        _ => None,
    }
}
