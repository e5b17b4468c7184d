//! From systemd's syntax to TOML: what stands in the text, what is said of the rest, and that both make one unit.

use std::sync::Arc;

use agentd_unit::import::{Imported, to_toml};
use agentd_unit::{LocalZone, ParseContext, Parsed, SourceFile, SpecifierContext, UnitName, parse_unit};

fn name(text: &str) -> UnitName {
    UnitName::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn import(path: &str, unit: &str, text: &str) -> Imported {
    to_toml(&Arc::new(SourceFile::new(path, text)), &name(unit))
}

fn parse(unit: &str, files: &[(&str, &str)]) -> Parsed {
    let files: Vec<_> = files.iter().map(|(path, text)| Arc::new(SourceFile::new(*path, *text))).collect();
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    parse_unit(&name(unit), &files, &ParseContext { specifiers: &specifiers, zone: &zone })
}

#[test]
fn comments_stay_where_they_stood_and_repeated_keys_become_one() {
    let imported = import(
        "web.service",
        "web.service",
        "# the web server\n\n[Unit]\nDescription=100% \"web\"\n; after the net\nAfter=network.target\n\n[Service]\n\
         ExecStart=/bin/web -c 'a b' \\\n# why\n  --fast\nEnvironment=A=1 \"B=x y\"\n# more\nEnvironment=C=C:\\\\d\n\
         Restart=no\nNoNewPrivileges=yes\nRestartSec=5\n[Unit]\nAfter=db.service\n[Service]\nExecStartPre=-/bin/a\n\
         ExecStartPre=/bin/b ; /bin/c\n# the end\n",
    );
    assert_eq!(
        imported.text,
        r#"# the web server

[Unit]
Description = '100%% "web"'
# after the net
After = ["network.target", "db.service"]

[Service]
# why
ExecStart = ["/bin/web", "-c", "a b", "--fast"]
Environment = [
  "A=1",
  "B=x y",
  # more
  'C=C:\d',
]
Restart = "no"
NoNewPrivileges = true
RestartSec = 5
ExecStartPre = [["-/bin/a"], ["/bin/b"], ["/bin/c"]]
# the end
"#
    );
    assert_eq!(imported.notes, []);
}

#[test]
fn escapes_of_a_text_are_resolved() {
    let keys = "StandardInputText=a\\x20b\\tc %p\nSetCredential=x:50%n\\x20\\n\n";
    let imported = import("a.service", "a.service", &format!("[Service]\nExecStart=/bin/a\n{keys}"));
    assert!(imported.text.contains("StandardInputText = \"a b\\tc %p\"\n"), "{}", imported.text);
    assert!(imported.text.contains("SetCredential = \"x:50%%n \\n\"\n"), "{}", imported.text);
}

#[test]
fn a_secret_with_nul_is_not_taken_over_into_toml_which_cannot_hold_it() {
    let text = "[Service]\nExecStart=/bin/a\nSetCredential=x:hush\\x00\n";
    let imported = import("a.service", "a.service", text);
    let told = imported.notes.iter().any(|note| note.to_string().contains("has an escape for NUL"));
    assert!(told, "{:?}", imported.notes);
    assert!(!imported.text.contains("\nSetCredential"), "{}", imported.text);
}

#[test]
fn what_cannot_be_taken_over_stays_as_a_comment_and_is_said_with_its_place() {
    let imported = import(
        "t@.service",
        "t@.service",
        "[Unit]\nWants=a.service x.mount\nAfter=b@.service\n[Service]\nExecStart=/bin/t %i %Z\nBusName=org.t\n\
         StartLimitInterval=9\nFrob=1\nUser\n[Mount]\nWhat=x\n[X-Mine]\nA=b\n[Install]\nWantedBy=multi-user.target\n",
    );
    assert_eq!(
        imported.text,
        r#"[Unit]
# x.mount: agentd has no mount units
Wants = ["a.service"]
After = ["b@%i.service"]
StartLimitIntervalSec = 9

[Service]
ExecStart = ["/bin/t", "%i", "%%Z"]
# BusName=org.t
# Frob=1

# [Mount]
# What=x
[X-Mine]
A = "b"

[Install]
WantedBy = ["multi-user.target"]
"#
    );
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "t@.service:2:7: in TOML the edge to a.service orders too: this unit starts after it (systemd starts both at once; if that is what is meant, keep the unit in systemd's syntax)",
            "t@.service:2:17: 'x.mount' is left out: not supported: agentd has no mount units",
            "t@.service:6:1: [Service] BusName: not supported: agentd speaks no D-Bus",
            "t@.service:8:1: [Service] has no setting 'Frob'",
            "t@.service:9:1: there is no '=' in 'User' (write KEY=VALUE; a comment begins with #, a line that goes on ends with \\)",
            "t@.service:10:2: [Mount] is not supported in a service and is left out",
            "t@.service:14:2: [Install] counts from the moment the TOML file is there (write Enabled = false below it to decide with agentctl enable)",
        ]
    );
}

#[test]
fn a_drop_in_takes_back_in_toml_what_it_takes_back_in_systemds_syntax() {
    let main = ("a.service", "[Unit]\nWants=old.service\n[Service]\nExecStart=/bin/old\nEnvironment=OLD=1\n");
    let conf = "[Unit]\nWants=\nWants=new.service\nAfter=new.service\n[Service]\nExecStart=\nExecStart=/bin/new x\n\
                Environment=\nEnvironment=NEW=1\nCapabilityBoundingSet=CAP_KILL\nCapabilityBoundingSet=CAP_CHOWN\n";
    let imported = import("a.service.d/x.conf", "a.service", conf);
    let foreign = parse("a.service", &[main, ("a.service.d/x.conf", conf)]);
    let ours = parse("a.service", &[main, ("a.service.d/x.toml", imported.text.as_str())]);
    assert_eq!(foreign.diagnostics, []);
    assert_eq!(ours.diagnostics, [], "{}", imported.text);
    assert_eq!(ours.unit.body, foreign.unit.body, "{}", imported.text);
    assert_eq!(ours.unit.unit, foreign.unit.unit, "{}", imported.text);
    assert!(imported.text.contains(r#"ExecStart = [[], ["/bin/new", "x"]]"#), "{}", imported.text);
    assert!(imported.text.contains(r#"Wants = ["", "new.service"]"#), "{}", imported.text);
}

#[test]
fn a_file_without_a_line_that_is_right_is_still_toml() {
    for text in
        ["", "\n\n", "# only\n", "foo\n", "[Unit\nA=b\n", "A=b\n", "[Service]\nExecStart='\n", "\u{1}=\n"]
    {
        let imported = import("a.service", "a.service", text);
        let again = parse("a.service", &[("a.service.toml", imported.text.as_str())]);
        let toml = again.diagnostics.iter().all(|d| !d.message.contains("TOML"));
        assert!(toml, "{text:?}: {} {:?}", imported.text, again.diagnostics);
    }
}

#[test]
fn lines_that_turn_their_meaning_round_stay_lines() {
    let lines = "[Service]\nExecStart=/bin/a\nSystemCallFilter=@system-service\nSystemCallFilter=~@privileged @resources\n\
                 CapabilityBoundingSet=\nCapabilityBoundingSet=~CAP_KILL\nAmbientCapabilities=CAP_KILL\n\
                 AmbientCapabilities=CAP_CHOWN\n";
    let imported = import("a.service", "a.service", lines);
    for line in [
        r#"SystemCallFilter = [["@system-service"], ["~@privileged", "@resources"]]"#,
        r#"CapabilityBoundingSet = ["", "~CAP_KILL"]"#,
        r#"AmbientCapabilities = ["CAP_KILL", "CAP_CHOWN"]"#,
    ] {
        assert!(imported.text.contains(line), "{line}\n{}", imported.text);
    }
    let foreign = parse("a.service", &[("a.service", lines)]);
    let ours = parse("a.service", &[("a.service.toml", imported.text.as_str())]);
    assert_eq!(ours.diagnostics, [], "{}", imported.text);
    assert_eq!(ours.unit.body, foreign.unit.body);
}
