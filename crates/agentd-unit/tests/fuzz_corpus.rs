//! The laws of the fuzz targets over the inputs that are kept, each of which was found or written for a reason, and over
//! thousands that are made of them.

#![forbid(unsafe_code)]

#[allow(unreachable_pub, reason = "the fuzz crate has it as a library")]
#[path = "../../../xtask/fuzz/src/mutate.rs"]
mod mutate;
#[allow(unreachable_pub, reason = "the fuzz crate has it as a library")]
#[path = "../../../xtask/fuzz/src/unit.rs"]
mod unit;

use agentd_unit::schema::Section;

/// Every section, key and word that a file may have, as its syntax writes it, and the words of the values' grammars.
fn words(assign: &str) -> Vec<String> {
    let mut words: Vec<String> = Section::ALL.map(|section| format!("\n[{}]\n", section.as_str())).into();
    for setting in Section::ALL.into_iter().flat_map(Section::settings) {
        words.push(format!("\n{}{assign}", setting.key));
        words.extend(setting.words().into_iter().map(str::to_owned));
    }
    let further = [
        "\\\n",
        "\\x41",
        "\\u00e9",
        "\"\"\"",
        "'''",
        "[[",
        "{ a = ",
        "%i",
        "%%",
        "$A",
        "${A}",
        "infinity",
        "100%",
        "1G",
        "SIGTERM",
        "CAP_KILL",
        "@system-service",
        "~",
        "Mon..Fri",
        "*-*-* ",
        "*:0/5",
        "~01",
        "1..9/2",
        "UTC",
        "Europe/Berlin",
        "@reboot",
        "*/7",
        "1us",
        "2months",
        "18446744073709551616",
        "-1",
        "0.5",
        "NaN",
        "/usr/bin/a",
        "a.service",
        "b@.service",
        "yes",
    ];
    words.extend(further.map(str::to_owned));
    words
}

#[test]
fn the_laws_hold_for_every_input() {
    std::thread::scope(|scope| {
        for (target, law) in unit::TARGETS {
            let assign = if target == "toml" { " = " } else { "=" };
            scope.spawn(move || mutate::hold(target, law, &words(assign)));
        }
    });
}
