//! Where units are looked for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agentd_unit::search_path::{NotInProduction, TierKind};
use agentd_unit::{Scope, SearchPath};

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn paths(scope: Scope, above: &[&str], pairs: &[(&str, &str)]) -> Vec<String> {
    let above: Vec<PathBuf> = above.iter().map(PathBuf::from).collect();
    let path =
        SearchPath::new(scope, &above, &environment(pairs), false).unwrap_or_else(|error| panic!("{error}"));
    path.tiers.iter().map(|tier| tier.path.display().to_string()).collect()
}

const SYSTEM: [&str; 7] = [
    "/etc/agentd/control",
    "/run/agentd/control",
    "/run/agentd/transient",
    "/etc/agentd/units",
    "/run/agentd/units",
    "/usr/local/lib/agentd/units",
    "/usr/lib/agentd/units",
];

#[test]
fn the_system_manager_has_its_tiers_from_the_administrator_down_to_the_vendor() {
    assert_eq!(paths(Scope::System, &[], &[("HOME", "/root")]), SYSTEM);
}

#[test]
fn folders_of_the_command_line_stand_above_those_of_the_environment_and_these_above_all_others() {
    let found = paths(Scope::System, &["/a"], &[("AGENTD_UNIT_PATH", ":/b::/c:/a:")]);
    assert_eq!(found[..3], ["/a", "/b", "/c"]);
    assert_eq!(found[3..], SYSTEM);
}

#[test]
fn exclusive_keeps_only_the_named_folders() {
    for word in ["1", "TRUE", "yes", "On"] {
        let pairs = [("AGENTD_UNIT_PATH", "/b"), ("AGENTD_UNIT_PATH_EXCLUSIVE", word)];
        assert_eq!(paths(Scope::System, &["/a"], &pairs), ["/a", "/b"], "{word}");
    }
    assert!(paths(Scope::System, &[], &[("AGENTD_UNIT_PATH_EXCLUSIVE", "1")]).is_empty());
    assert_eq!(paths(Scope::System, &[], &[("AGENTD_UNIT_PATH_EXCLUSIVE", "0")]), SYSTEM);
}

#[test]
fn production_refuses_the_switches_of_development() {
    for name in ["AGENTD_UNIT_PATH", "AGENTD_UNIT_PATH_EXCLUSIVE"] {
        let refused = SearchPath::new(Scope::System, &[], &environment(&[(name, "1")]), true);
        assert_eq!(refused, Err(NotInProduction(name)));
    }
    assert!(SearchPath::new(Scope::System, &[], &environment(&[("AGENTD_UNIT_PATH", "")]), true).is_ok());
}

#[test]
fn a_users_manager_has_the_users_folders_where_their_roots_are_set() {
    let all = [
        ("XDG_CONFIG_HOME", "/h/c"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
        ("XDG_DATA_HOME", "/h/d"),
        ("HOME", "/h"),
    ];
    assert_eq!(
        paths(Scope::User, &[], &all),
        [
            "/h/c/agentd/control",
            "/run/user/7/agentd/control",
            "/h/c/agentd/units",
            "/etc/agentd/user",
            "/run/user/7/agentd/units",
            "/h/d/agentd/units",
            "/usr/lib/agentd/user",
        ]
    );
    let home = paths(Scope::User, &[], &[("HOME", "/h")]);
    assert!(home.contains(&"/h/.config/agentd/units".to_owned()), "{home:?}");
    assert!(home.contains(&"/h/.local/share/agentd/units".to_owned()), "{home:?}");
}

#[test]
fn a_root_that_is_not_set_drops_its_tiers_and_is_never_the_root_folder() {
    for pairs in
        [vec![], vec![("HOME", "")], vec![("HOME", "h"), ("XDG_RUNTIME_DIR", "run"), ("XDG_CONFIG_HOME", "")]]
    {
        assert_eq!(
            paths(Scope::User, &[], &pairs),
            ["/etc/agentd/user", "/usr/lib/agentd/user"],
            "{pairs:?}"
        );
    }
}

#[test]
fn control_folders_are_the_managers_own() {
    let path = SearchPath::new(Scope::System, &[], &environment(&[]), true)
        .unwrap_or_else(|error| panic!("{error}"));
    let control: Vec<bool> = path.tiers.iter().map(|tier| tier.kind == TierKind::Control).collect();
    assert_eq!(control, [true, true, false, false, false, false, false]);
}
