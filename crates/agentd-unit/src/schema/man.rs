//! The pages agentd.unit(5), agentd.agent(5) and agentd.toml(5), from the tables that reading goes by.

use std::collections::BTreeMap;

use super::page::split_default;
use super::{Section, Setting, systemd};
use crate::manager;
use crate::roff::Page;

/// The pages, each with the name of its file.
#[must_use]
pub fn man_pages() -> [(&'static str, String); 3] {
    [("agentd.unit.5", unit_page()), ("agentd.agent.5", agent_page()), ("agentd.toml.5", manager_page())]
}

/// What each kind of value is, for the section that explains them.
const KINDS: &[(&str, &str)] = &[
    (
        "boolean",
        "`yes`, `true`, `on` or `1`, and `no`, `false`, `off` or `0`; in TOML `true` and `false` too.",
    ),
    (
        "span of time",
        "Numbers with units, added up: `1min 30s`, `500ms`, `2h`, `1d`, `3 weeks`. A number alone is seconds. Where it says so, `infinity` sets no bound. No span is negative.",
    ),
    (
        "size",
        "A number of bytes with `K`, `M`, `G`, `T`, `P` or `E` behind it, each 1024 times the one before. A percentage is of the machine's memory; `infinity` sets no bound.",
    ),
    (
        "percentage",
        "A number with `%` behind it. Of processor time 100% is one whole processor, and more than 100% is allowed.",
    ),
    (
        "limit, soft:hard",
        "One number, size or span for both limits, or two with a colon between; `infinity` takes the limit away. See setrlimit(2).",
    ),
    ("signal", "A name with or without `SIG` (`SIGTERM`, `TERM`, `RTMIN+3`), or a number. See signal(7)."),
    ("word", "One of the words that are listed with the key."),
    ("text", "Free text. Specifiers, see below, are replaced in it."),
    (
        "unit",
        "The name of a unit with its type, `web.service`. Lists of them are words in systemd's syntax (`Wants=a.service b.service`) and lists in TOML (`Wants = [\"a.service\", \"b.service\"]`).",
    ),
    (
        "absolute path",
        "A path from `/` that does not go up by `..` anywhere. Where a list can say that a path may be missing, `-` stands in front.",
    ),
    ("octal digits", "The bits of a mode: `0750`. See chmod(2)."),
    ("user or group", "A name or a number. See passwd(5) and group(5)."),
    (
        "command",
        "A program and its arguments: in TOML a list (`[\"/bin/a\", \"x\"]`), a list of such lists for several, or a text in systemd's quoting. In front of the program of a text, or of the first item of a list, may stand `-` (a failure does not count), `@` (the second word is the name that the program sees), `:` (no variables are replaced), `+` (with full privileges), and `!` (as the manager's user, in the same sandbox). `$NAME` and `${NAME}` are replaced by the unit's environment; no shell reads the line.",
    ),
    (
        "table of variables",
        "In TOML a table (`Environment = { LANG = \"C\" }`), in systemd's syntax words such as `LANG=C`.",
    ),
    (
        "condition",
        "What is looked for. With `!` in front it must not hold; of those with `|` in front one must hold, instead of each. An empty value takes back what was set before.",
    ),
    (
        "calendar expression",
        "When a timer fires, in the grammar of systemd.time(7): `daily`, `Mon..Fri 08:00`, `*-*-01 00:00:00`. See agentctl(1), `analyze calendar`.",
    ),
    ("cron expression", "Five fields as in crontab(5): `*/5 * * * *`."),
    ("address", "A path, `@name` for an abstract socket, a port, `IPv4:port`, or `[IPv6]:port`."),
    (
        "exit codes and signals",
        "Numbers from 0 to 255, names of exit codes as in systemd.exec(5) (`TEMPFAIL`), and signals.",
    ),
];

fn unit_page() -> String {
    let mut page = Page::new("agentd.unit", 5, "what unit files of agentd may say");
    page.heading("SYNOPSIS");
    page.paragraph("`NAME.TYPE.toml`, `NAME.TYPE`, `NAME.TYPE.d/*.toml`, `NAME.TYPE.d/*.conf`");
    page.heading("DESCRIPTION");
    page.paragraph("A unit is what agentd manages; a file describes it. The file's name is the unit's name: `web.service.toml` describes `web.service` in TOML, and a file `web.service` does so in the syntax of systemd.syntax(7). Types are `service`, `timer`, `socket`, `path`, `slice` and `target`. Sections and keys are systemd's, spelled as systemd spells them; what systemd lacks is in agentd.agent(5).");
    page.paragraph("In TOML an unknown section or key is an error that names file, line and what was meant; in systemd's syntax it is a warning. A value that is wrong is an error in both, and keeps that unit from starting. Keys and sections that begin with `X-` are left alone.");
    folders(&mut page);
    drop_ins(&mut page);
    page.heading("VALUES");
    page.paragraph("The entry of each key below names the kind of its value:");
    KINDS.iter().for_each(|(kind, text)| page.item(&format!("`{kind}`"), text));
    page.paragraph("Lists add up over a file and its drop-ins, and an empty value (`Wants=`, `Wants = []`) takes back what was set before; everything else is replaced by what comes later. What several lines are in systemd's syntax is one list in TOML.");
    page.paragraph("Specifiers are those of systemd.unit(5), such as `%n` (the unit's name), `%i` (the instance), `%p` (what stands before the @), `%t` (the runtime folder), `%S` (the state folder), `%h` (the home), and `%%`.");
    for section in Section::ALL.into_iter().filter(|section| !is_agents(*section)) {
        keys(&mut page, section);
    }
    not_supported(&mut page);
    page.heading("EXAMPLES");
    page.paragraph("A service that is restarted when it fails, in `/etc/agentd/units/web.service.toml`:");
    page.verbatim("[Unit]\nDescription = \"Web server\"\nWants = [\"db.service\"]\n\n[Service]\nExecStart = [\"/usr/bin/web\", \"--port\", \"8080\"]\nUser = \"www\"\nRestart = \"on-failure\"\nMemoryMax = \"256M\"\n\n[Install]\nWantedBy = [\"multi-user.target\"]");
    page.paragraph("The same in systemd's syntax, in `/etc/agentd/units/web.service`:");
    page.verbatim("[Unit]\nDescription=Web server\nWants=db.service\nAfter=db.service\n\n[Service]\nExecStart=/usr/bin/web --port 8080\nUser=www\nRestart=on-failure\nMemoryMax=256M\n\n[Install]\nWantedBy=multi-user.target");
    page.paragraph("A job that runs every night, one file for service and timer:");
    page.verbatim("[Service]\nType = \"oneshot\"\nExecStart = [\"/usr/bin/backup\"]\n\n[Timer]\nOnCalendar = \"03:00\"\nPersistent = true\n\n[Install]\nWantedBy = [\"timers.target\"]");
    see_also(
        &mut page,
        "agentd(8), agentctl(1), agentd.agent(5), agentd.toml(5), systemd.unit(5), systemd.service(5), systemd.exec(5), systemd.resource-control(5), systemd.time(7), systemd.syntax(7)",
    );
    page.finish()
}

fn agent_page() -> String {
    let mut page =
        Page::new("agentd.agent", 5, "what units say of agents: [Agent], [Snapshot] and [Rollout]");
    page.heading("SYNOPSIS");
    page.paragraph("`NAME.service.toml`");
    page.heading("DESCRIPTION");
    page.paragraph("An agent is a service with a section `[Agent]`. All keys of `[Unit]`, `[Service]` and `[Install]` hold for it too; they, and the kinds of values, are explained in agentd.unit(5). With `Kind = \"python\"` agentd runs the module with its own runner, so that no `ExecStart` is needed; with `Kind = \"go\"` and `Kind = \"exec\"` there is one.");
    for section in Section::ALL.into_iter().filter(|section| is_agents(*section)) {
        keys(&mut page, section);
    }
    page.heading("EXAMPLES");
    page.paragraph("An agent in Python, in `/etc/agentd/units/counter.service.toml`:");
    page.verbatim("[Agent]\nKind = \"python\"\nModule = \"/opt/agents/counter.py\"\n\n[Service]\nUser = \"daemon\"\nRestart = \"on-failure\"\nWatchdogSec = \"10s\"\nMemoryMax = \"64M\"\n\n[Install]\nWantedBy = [\"multi-user.target\"]");
    see_also(&mut page, "agentd(8), agentctl(1), agentd.unit(5)");
    page.finish()
}

fn manager_page() -> String {
    let mut page = Page::new("agentd.toml", 5, "settings of agentd itself");
    page.heading("SYNOPSIS");
    page.paragraph(
        "`/etc/agentd/agentd.toml`, `/usr/lib/agentd/agentd.toml`, `$XDG_CONFIG_HOME/agentd/agentd.toml`",
    );
    page.heading("DESCRIPTION");
    page.paragraph("The first of the two files of the system that is there holds for the manager of the system, and the last one for that of a user. It is read once, at the start; options of the kernel command line and of agentd(8) win over it. A file that cannot be understood keeps a manager from starting, as it may not guess at its own trust policy. Without a file all defaults hold.");
    page.heading("[MANAGER]");
    for (key, doc) in manager::documentation() {
        page.item(&format!("`{key}`="), doc);
    }
    page.heading("EXAMPLES");
    page.verbatim("[Manager]\nTrust = \"enforce\"\nWatchUnits = \"load\"");
    see_also(&mut page, "agentd(8), agentctl(1), agentd.unit(5)");
    page.finish()
}

const fn is_agents(section: Section) -> bool {
    matches!(section, Section::Agent | Section::Snapshot | Section::Rollout)
}

fn folders(page: &mut Page) {
    page.heading("FOLDERS");
    page.paragraph("The first file of a name wins. The manager of the system looks, in this order, into");
    page.verbatim("/etc/agentd/control\n/run/agentd/control\n/run/agentd/transient\n/etc/agentd/units\n/run/agentd/units\n/usr/local/lib/agentd/units\n/usr/lib/agentd/units");
    page.paragraph("and the manager of a user into");
    page.verbatim("$XDG_CONFIG_HOME/agentd/control\n$XDG_RUNTIME_DIR/agentd/control\n$XDG_CONFIG_HOME/agentd/units\n/etc/agentd/user\n$XDG_RUNTIME_DIR/agentd/units\n$XDG_DATA_HOME/agentd/units\n/usr/lib/agentd/user");
    page.paragraph("The control folders belong to the manager: masks, markers of what is enabled, and drop-ins with limits. `$AGENTD_UNIT_PATH` names folders above all of these, for development. `agentctl analyze unit-paths` lists what holds. A file that others than root, or the manager's user, may write is refused.");
}

fn drop_ins(page: &mut Page) {
    page.heading("DROP-INS, TEMPLATES, MASKS AND ALIASES");
    page.paragraph("Files in `NAME.TYPE.d/` add to a unit, from all folders, in the order of their names; of one name the higher folder's counts. `foo-.service.d/` holds for all services whose name begins with `foo-`, and `service.d/` for all services.");
    page.paragraph("`name@.service.toml` is a template; `name@red.service` is an instance of it, with `red` as `%i`. A unit that is a link to `/dev/null`, or an empty file, is masked and never starts. A link to another unit's file in the folders above is another name of it. Links in `NAME.TYPE.wants/` and `NAME.TYPE.requires/` add to `Wants` and `Requires`.");
    page.paragraph("In TOML a unit with `[Install]` counts as enabled from the moment its file is loaded; `Enabled = false`, or `agentctl disable`, says no. In systemd's syntax links enable it, as there. In TOML `Requires` and `Wants` also order, as `After` would, unless `After` or `Before` says otherwise.");
}

fn keys(page: &mut Page, section: Section) {
    page.heading(&format!("[{}]", section.as_str().to_uppercase()));
    section.settings().iter().for_each(|setting| key(page, section, setting));
}

fn key(page: &mut Page, section: Section, setting: &Setting) {
    let (purpose, default) = split_default(setting.doc);
    let mut text = format!("{purpose}. Takes: {}", setting.kind());
    let words = setting.words();
    if !words.is_empty() {
        text.push_str(&format!(
            " ({})",
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        ));
    }
    text.push('.');
    if !default.is_empty() {
        text.push_str(&format!(" Default: {default}."));
    }
    if let Some(known) = systemd::known(section, setting.key) {
        text.push_str(&format!(" As in {}.", known.page));
    }
    if let Some(later) = setting.later {
        text.push_str(&format!(" It is read and checked, and has no effect yet: {later}."));
    }
    if setting.limit {
        text.push_str(" The manager itself may set it in a control folder.");
    }
    page.item(&format!("`{}`=", setting.key), &text);
}

/// systemd's keys that agentd has not, by the reason.
fn not_supported(page: &mut Page) {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for section in Section::ALL {
        for key in systemd::keys_of(section).filter(|key| section.setting(key).is_none()) {
            let Some(known) = systemd::known(section, &key) else { continue };
            let keys = by_reason.entry(known.reason.as_str()).or_default();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    page.heading("KEYS OF SYSTEMD THAT AGENTD DOES NOT HAVE");
    page.paragraph("In a file of systemd's syntax they are left out with a warning that gives the reason; in TOML they are errors.");
    for (reason, keys) in by_reason {
        page.paragraph(&format!("{}: {}.", capital(reason), keys.join(", ")));
    }
}

fn see_also(page: &mut Page, pages: &str) {
    page.heading("SEE ALSO");
    page.paragraph(pages);
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
