//! Specifiers such as `%i`, systemd.unit(5) "SPECIFIERS".

use std::collections::BTreeMap;

use crate::diagnostic::quote;
use crate::escape::{unescape, unescape_path};
use crate::name::UnitName;
use crate::values::Refused;

/// What the machine and the manager are, for the specifiers that do not hang on the unit. The caller fills it in:
/// nothing here asks the system. A value that is not known stays empty, and using its specifier is an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecifierContext {
    /// `%t`: `/run`, or the user's `$XDG_RUNTIME_DIR`.
    pub runtime_dir: String,
    /// `%S`: `/var/lib`, or the user's state home.
    pub state_dir: String,
    /// `%C`: `/var/cache`, or the user's cache home.
    pub cache_dir: String,
    /// `%L`: `/var/log`, or `log` below the user's state home.
    pub logs_dir: String,
    /// `%E`: `/etc`, or the user's configuration home.
    pub configuration_dir: String,
    /// `%T`: the folder for temporary files.
    pub temporary_dir: String,
    /// `%V`: the folder for larger and lasting temporary files.
    pub var_temporary_dir: String,
    /// `%d`: where units' credentials are, each in a folder of its name.
    pub credentials_dir: String,
    /// `%h`: the home of the manager's user.
    pub home: String,
    /// `%u`: the name of the manager's user.
    pub user: String,
    /// `%U`: the number of the manager's user.
    pub uid: String,
    /// `%g`: the name of the manager's group.
    pub group: String,
    /// `%G`: the number of the manager's group.
    pub gid: String,
    /// `%H`: the host's name. (`%l`: up to its first dot.)
    pub host_name: String,
    /// `%m`: the machine id.
    pub machine_id: String,
    /// `%b`: the boot id.
    pub boot_id: String,
    /// `%v`: the kernel's release.
    pub kernel_release: String,
    /// `%a`: the architecture, in systemd's words (`x86-64`).
    pub architecture: String,
    /// `%q`: the host's name for people.
    pub pretty_host_name: String,
    /// `%s`: the shell of the manager's user.
    pub shell: String,
    /// What runs on the machine, if it says so.
    pub release: Option<Release>,
}

/// What os-release(5) says of the machine. What it does not say is empty, and so is what its specifier stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Release {
    /// `%A`: `IMAGE_VERSION`.
    pub image_version: String,
    /// `%B`: `BUILD_ID`.
    pub build_id: String,
    /// `%M`: `IMAGE_ID`.
    pub image_id: String,
    /// `%o`: `ID`.
    pub id: String,
    /// `%w`: `VERSION_ID`.
    pub version_id: String,
    /// `%W`: `VARIANT_ID`.
    pub variant_id: String,
}

impl Release {
    /// From the variables of the file.
    #[must_use]
    pub fn of(variables: &[(String, String)]) -> Self {
        let value = |name: &str| {
            let found = variables.iter().rev().find(|(variable, _)| variable == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        Self {
            image_version: value("IMAGE_VERSION"),
            build_id: value("BUILD_ID"),
            image_id: value("IMAGE_ID"),
            id: value("ID"),
            version_id: value("VERSION_ID"),
            variant_id: value("VARIANT_ID"),
        }
    }

    fn value(&self, letter: char) -> Option<&str> {
        Some(match letter {
            'A' => &self.image_version,
            'B' => &self.build_id,
            'M' => &self.image_id,
            'o' => &self.id,
            'w' => &self.version_id,
            'W' => &self.variant_id,
            _ => return None,
        })
    }
}

impl SpecifierContext {
    /// The folders of a system manager; the rest is empty.
    #[must_use]
    pub fn system() -> Self {
        let [
            runtime_dir,
            state_dir,
            cache_dir,
            logs_dir,
            configuration_dir,
            temporary_dir,
            var_temporary_dir,
        ] = ["/run", "/var/lib", "/var/cache", "/var/log", "/etc", "/tmp", "/var/tmp"].map(str::to_owned);
        Self {
            runtime_dir,
            state_dir,
            cache_dir,
            logs_dir,
            configuration_dir,
            temporary_dir,
            var_temporary_dir,
            credentials_dir: "/run/agentd/credentials".to_owned(),
            home: "/root".to_owned(),
            user: "root".to_owned(),
            uid: "0".to_owned(),
            group: "root".to_owned(),
            gid: "0".to_owned(),
            shell: "/bin/sh".to_owned(),
            ..Self::default()
        }
    }

    /// The folders of the system manager of a machine that is not known here: its own names are `unknown`.
    #[must_use]
    pub fn elsewhere() -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            host_name: unknown(),
            machine_id: unknown(),
            boot_id: unknown(),
            kernel_release: unknown(),
            architecture: unknown(),
            pretty_host_name: unknown(),
            release: Some(Release {
                image_version: unknown(),
                build_id: unknown(),
                image_id: unknown(),
                id: unknown(),
                version_id: unknown(),
                variant_id: unknown(),
            }),
            ..Self::system()
        }
    }

    /// The folders of a user's manager, from its environment; what is not set stays empty, and so do names and ids.
    #[must_use]
    pub fn user(environment: &BTreeMap<String, String>) -> Self {
        let absolute = |name: &str| environment.get(name).filter(|value| value.starts_with('/')).cloned();
        let home = absolute("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| format!("{home}/{path}"));
        let root =
            |name: &str, default: &str| absolute(name).or_else(|| below_home(default)).unwrap_or_default();
        let state_dir = root("XDG_STATE_HOME", ".local/state");
        Self {
            runtime_dir: absolute("XDG_RUNTIME_DIR").unwrap_or_default(),
            logs_dir: if state_dir.is_empty() { String::new() } else { format!("{state_dir}/log") },
            state_dir,
            cache_dir: root("XDG_CACHE_HOME", ".cache"),
            configuration_dir: root("XDG_CONFIG_HOME", ".config"),
            temporary_dir: absolute("TMPDIR").unwrap_or_else(|| "/tmp".to_owned()),
            var_temporary_dir: absolute("TMPDIR").unwrap_or_else(|| "/var/tmp".to_owned()),
            credentials_dir: absolute("XDG_RUNTIME_DIR")
                .map(|runtime| format!("{runtime}/agentd/credentials"))
                .unwrap_or_default(),
            home: home.clone().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Puts the values of specifiers in; `%%` is a percent sign.
    ///
    /// # Errors
    /// An unknown specifier, a `%` at the end, and one whose value is not known.
    pub fn expand(&self, text: &str, unit: &UnitName) -> Result<String, Refused> {
        match first_unknown(text) {
            Some("%") => Err(Refused::of(text, "ends in a single %", "write %% for the character itself")),
            Some(unknown) => {
                let why = format!("has the unknown specifier {}", unknown.escape_debug());
                Err(Refused::of(text, &why, "write %% for a percent sign"))
            }
            None => self.expand_known(text, unit),
        }
    }

    /// The same, but what is no specifier stays as it stands, as systemd has it.
    ///
    /// # Errors
    /// A specifier whose value is not known.
    pub fn expand_known(&self, text: &str, unit: &UnitName) -> Result<String, Refused> {
        if !text.contains('%') {
            return Ok(text.to_owned());
        }
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(percent) = rest.find('%') {
            expanded.push_str(&rest[..percent]);
            let mut after = rest[percent + 1..].chars();
            match after.next() {
                Some('%') => expanded.push('%'),
                Some(letter) if KNOWN.contains(letter) => {
                    expanded.push_str(&self.value(letter, text, unit)?);
                }
                Some(letter) => expanded.extend(['%', letter]),
                None => expanded.push('%'),
            }
            rest = after.as_str();
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, letter: char, text: &str, unit: &UnitName) -> Result<String, Refused> {
        let of_unit = match letter {
            'n' => Some(Ok(unit.as_str().to_owned())),
            'N' => Some(Ok(unit.stem().to_owned())),
            'p' => Some(Ok(unit.prefix().to_owned())),
            'P' => Some(unescape(unit.prefix())),
            'i' => Some(Ok(unit.instance().unwrap_or_default().to_owned())),
            'I' => Some(unescape(unit.instance().unwrap_or_default())),
            'j' => Some(Ok(last_part(unit.prefix()).to_owned())),
            'J' => Some(unescape(last_part(unit.prefix()))),
            'd' if !self.credentials_dir.is_empty() => {
                Some(Ok(format!("{}/{}", self.credentials_dir, unit.as_str())))
            }
            'f' => Some(unescape_path(unit.instance().filter(|i| !i.is_empty()).unwrap_or(unit.prefix()))),
            _ => None,
        };
        if let Some(value) = of_unit {
            return value;
        }
        if let Some(value) = self.release.as_ref().and_then(|release| release.value(letter)) {
            return Ok(value.to_owned());
        }
        let of_host = match letter {
            't' => &self.runtime_dir,
            'S' => &self.state_dir,
            'C' => &self.cache_dir,
            'L' => &self.logs_dir,
            'E' => &self.configuration_dir,
            'T' => &self.temporary_dir,
            'V' => &self.var_temporary_dir,
            'h' => &self.home,
            'u' => &self.user,
            'U' => &self.uid,
            'g' => &self.group,
            'G' => &self.gid,
            'H' => &self.host_name,
            'l' => self.host_name.split('.').next().unwrap_or_default(),
            'm' => &self.machine_id,
            'b' => &self.boot_id,
            'v' => &self.kernel_release,
            'a' => &self.architecture,
            'q' => &self.pretty_host_name,
            's' => &self.shell,
            _ => "",
        };
        if of_host.is_empty() {
            let why = format!("{} has %{letter}, whose value is not known on this machine", quote(text));
            return Err(Refused::with_help(why, "write the value itself"));
        }
        Ok(of_host.to_owned())
    }
}

/// The letters that mean something behind a `%`.
const KNOWN: &str = "nNpPiIjJftSCLETVhuUgGHlmbvadABMoqswW";

/// The first thing in a text that looks like a specifier and is none: `%` with its letter, or a `%` at the end.
#[must_use]
pub fn first_unknown(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(percent) = rest.find('%') {
        let after = &rest[percent + 1..];
        match after.chars().next() {
            Some(letter) if letter == '%' || KNOWN.contains(letter) => rest = &after[letter.len_utf8()..],
            Some(letter) => return Some(&rest[percent..percent + 1 + letter.len_utf8()]),
            None => return Some(&rest[percent..]),
        }
    }
    None
}

/// What stands behind the last `-`.
fn last_part(prefix: &str) -> &str {
    prefix.rsplit('-').next().unwrap_or(prefix)
}
