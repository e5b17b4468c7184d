//! Who is what to whom: from the texts of units to edges and cycles.
#![expect(clippy::expect_used, reason = "a test whose world cannot be set up is to fail at once")]

use std::sync::Arc;

use agentd_unit::edges::{EdgeKind, Edges};
use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, UnitName, UnitSet, parse_unit};

fn name(text: &str) -> UnitName {
    UnitName::parse(text).expect("a unit's name")
}

fn edges(units: &[(&str, &str)]) -> Edges {
    let mut set = UnitSet::new();
    let context = ParseContext { specifiers: &SpecifierContext::system(), zone: &LocalZone::utc() };
    for (unit, text) in units {
        let source = Arc::new(SourceFile::new(format!("/u/{unit}.toml"), *text));
        let parsed = parse_unit(&name(unit), &[source], &context);
        assert!(parsed.diagnostics.is_empty(), "{unit}: {:?}", parsed.diagnostics);
        set.insert(parsed.unit);
    }
    Edges::of(&set)
}

fn from(edges: &Edges, unit: &str, kind: EdgeKind) -> Vec<String> {
    edges.from(&name(unit), kind).map(ToString::to_string).collect()
}

const TARGETS: [(&str, &str); 3] = [
    ("sysinit.target", "[Unit]\nDefaultDependencies = false\n"),
    ("basic.target", "[Unit]\nDefaultDependencies = false\nRequires = [\"sysinit.target\"]\n"),
    ("shutdown.target", "[Unit]\nDefaultDependencies = false\n"),
];

fn service(text: &str) -> String {
    format!("{text}\n[Service]\nExecStart = [\"/bin/true\"]\n")
}

#[test]
fn edges_are_seen_from_both_ends_and_defaults_are_among_them() {
    let web = service("[Unit]\nRequires = [\"db.service\"]\n[Install]\nWantedBy = [\"multi-user.target\"]");
    let db = service("");
    let mut units = TARGETS.to_vec();
    units.extend([("web.service", web.as_str()), ("db.service", &db), ("multi-user.target", "[Unit]\n")]);
    let edges = edges(&units);
    assert_eq!(from(&edges, "web.service", EdgeKind::Requires), ["db.service", "sysinit.target"]);
    assert_eq!(
        from(&edges, "web.service", EdgeKind::After),
        ["basic.target", "db.service", "sysinit.target"]
    );
    assert_eq!(from(&edges, "multi-user.target", EdgeKind::Wants), ["web.service"]);
    assert_eq!(from(&edges, "multi-user.target", EdgeKind::After), ["web.service"]);
    assert_eq!(from(&edges, "web.service", EdgeKind::Conflicts), ["shutdown.target"]);
    let wanted_by = edges.to(&name("web.service"), EdgeKind::Wants).map(ToString::to_string);
    assert_eq!(wanted_by.collect::<Vec<_>>(), ["multi-user.target"]);
    let before: Vec<String> =
        edges.to(&name("db.service"), EdgeKind::After).map(ToString::to_string).collect();
    assert_eq!(before, ["shutdown.target", "web.service"]);
}

#[test]
fn what_the_shutdown_follows_conflicts_with_it_and_what_it_pulls_in_does_not() {
    let last = service("[Unit]\nBefore = [\"shutdown.target\"]\nAfter = [\"web.service\"]");
    let (web, halt) = (service(""), service(""));
    let mut units = TARGETS[..2].to_vec();
    units.extend([
        ("shutdown.target", "[Unit]\nDefaultDependencies = false\nWants = [\"halt.service\"]\n"),
        ("last.service", last.as_str()),
        ("web.service", &web),
        ("halt.service", &halt),
    ]);
    let edges = edges(&units);
    for (unit, conflicts) in [("last.service", true), ("web.service", true), ("halt.service", false)] {
        let found = from(&edges, unit, EdgeKind::Conflicts);
        assert_eq!(found == ["shutdown.target"], conflicts, "{unit}: {found:?}");
    }
    assert!(from(&edges, "shutdown.target", EdgeKind::After).contains(&"web.service".to_owned()));
    assert!(edges.cycles().is_empty());
}

#[test]
fn a_hard_cycle_names_its_members_and_a_soft_one_gives_way() {
    let unit = |text: &str| service(&format!("[Unit]\nDefaultDependencies = false\n{text}"));
    let hard = [
        ("a.service", unit("Requires = [\"b.service\"]")),
        ("b.service", unit("Requires = [\"c.service\"]")),
        ("c.service", unit("Requires = [\"a.service\"]")),
        ("d.service", unit("After = [\"a.service\"]")),
    ];
    let text: Vec<(&str, &str)> = hard.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let cycles = edges(&text).cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(cycles[0].path, ["a", "b", "c", "a"].map(|n| name(&format!("{n}.service"))));
    assert_eq!((cycles[0].members.len(), &cycles[0].given_up), (3, &None));

    let soft =
        [("a.service", unit("Wants = [\"b.service\"]")), ("b.service", unit("Requires = [\"a.service\"]"))];
    let text: Vec<(&str, &str)> = soft.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let cycles = edges(&text).cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(cycles[0].given_up, Some((name("a.service"), name("b.service"))));
}

#[test]
fn ten_thousand_units_in_a_row_are_no_cycle_and_take_no_stack() {
    let names: Vec<String> = (0..10_000).map(|n| format!("u{n:05}.target")).collect();
    let texts: Vec<String> = (0..10_000)
        .map(|n| match n {
            0 => "[Unit]\nDefaultDependencies = false\n".to_owned(),
            n => format!("[Unit]\nDefaultDependencies = false\nRequires = [\"u{:05}.target\"]\n", n - 1),
        })
        .collect();
    let units: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let edges = edges(&units);
    assert!(edges.cycles().is_empty());
    assert_eq!(edges.names().count(), 10_000);
}
