//! What `sign` writes is what the manager finds when it loads: the same files by the same names, and the same programs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;

use agentd_trust::{KeyRing, Sha256Digest, VerifiedManifest, key_file, verify};
use agentd_unit::search_path::TierKind;
use agentd_unit::{
    Admission, Gate, LoadState, Loader, LoaderConfig, LocalZone, Scope, SearchPath, SpecifierContext,
    Trusted, UnitFiles, UnitName,
};

use crate::manager::{Folder, agentctl};

/// A gate as the manager's: the files that are to be parsed must be exactly those that were signed.
struct Signed {
    ring: KeyRing,
    admitted: Mutex<BTreeMap<UnitName, VerifiedManifest>>,
}

impl Gate for Signed {
    fn admit(&self, files: &UnitFiles<'_>) -> Admission {
        let Some(signature) = files.signature else {
            return Admission::Refused("unsigned".to_owned());
        };
        let found: BTreeMap<String, Sha256Digest> =
            files.files.iter().map(|file| (file.name.to_owned(), Sha256Digest::of(file.bytes))).collect();
        let checked = verify(signature, &self.ring).and_then(|manifest| {
            let signed = files.unit.template().unwrap_or_else(|| files.unit.clone());
            manifest.check_unit(signed.as_str())?;
            manifest.check_unit_files(&found)?;
            Ok(manifest)
        });
        match checked {
            Ok(manifest) => {
                self.admitted.lock().expect("one thread").insert(files.unit.clone(), manifest);
                Admission::Admitted
            }
            Err(error) => Admission::Refused(error.to_string()),
        }
    }
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(path, content).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("its mode");
}

/// A folder of units with every kind of drop-in that applies, one that another takes the place of, and a mask.
fn units(folder: &Path) {
    let unit = "[Service]\nExecStart = [\"/bin/sh\", \"-c\", \"true\"]\nExecStop = [\"/bin/ls\"]\n";
    let drop_in = |text: &str| format!("[Unit]\nDocumentation = [\"man:{text}(1)\"]\n");
    write(&folder.join("web-agent.service.toml"), unit);
    write(&folder.join("worker@.service.toml"), unit);
    write(&folder.join("idle.target.toml"), "[Unit]\nDescription = \"idle\"\n");
    write(&folder.join("web-agent.service.d/10-own.toml"), &drop_in("own"));
    write(&folder.join("web-agent.service.d/30-both.toml"), &drop_in("special"));
    write(&folder.join("web-.service.d/20-prefix.toml"), &drop_in("prefix"));
    write(&folder.join("service.d/30-both.toml"), &drop_in("general"));
    write(&folder.join("service.d/40-type.toml"), &drop_in("type"));
    write(&folder.join("service.d/50-masked.toml"), &drop_in("masked"));
    symlink("/dev/null", folder.join("web-agent.service.d/50-masked.toml")).expect("a link");
    write(&folder.join("worker@.service.d/10-own.toml"), &drop_in("own"));
}

fn loader(folders: &[&Path], own: u32) -> Loader {
    let mut search = SearchPath::default();
    folders.iter().for_each(|folder| search.push(folder, TierKind::Units));
    Loader::new(LoaderConfig {
        search,
        scope: Scope::System,
        trusted: Trusted(vec![0, own]),
        specifiers: SpecifierContext::system(),
        zone: LocalZone::utc(),
    })
}

#[test]
fn the_drop_ins_of_all_tiers_are_signed_and_a_new_one_is_refused() {
    let folder = Folder::new();
    let root = folder.path().join("root");
    let (vendor, admin) = (root.join("usr/lib/agentd/units"), root.join("etc/agentd/units"));
    let drop_in = |text: &str| format!("[Unit]\nDescription = \"{text}\"\n");
    write(&vendor.join("idle.target.toml"), &drop_in("vendor"));
    write(&vendor.join("idle.target.d/10-a.toml"), &drop_in("vendor's own"));
    write(&admin.join("idle.target.d/10-a.toml"), &drop_in("the administrator's"));
    write(&admin.join("target.d/05-b.toml"), &drop_in("of all targets"));
    let keys = folder.path().join("keys");
    fs::create_dir(&keys).unwrap();
    for dir in [folder.path(), &root, &vendor, &admin, &keys] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (keys_text, root_text) = (keys.display(), root.display());
    assert_eq!(agentctl(&folder, &format!("key generate me --out {keys_text}")).0, 0);
    let unit = format!("{}/idle.target.toml", vendor.display());
    let (exit, _, err) =
        agentctl(&folder, &format!("sign --key {keys_text}/me.key --root {root_text} {unit}"));
    assert_eq!(exit, 0, "{err}");
    let verify = || agentctl(&folder, &format!("verify --keys {keys_text} --root {root_text} {unit}"));
    assert_eq!(verify().0, 0);

    let own = key_file::own_uid().unwrap();
    let gate = Signed {
        ring: KeyRing::load(std::slice::from_ref(&keys), &[own]).0,
        admitted: Mutex::new(BTreeMap::new()),
    };
    let loader = loader(&[&admin, &vendor], own);
    let name = UnitName::parse("idle.target").unwrap();
    let loaded = loader.load_unit(&name, &gate);
    assert_eq!(loaded.load, LoadState::Loaded);
    assert_eq!(loaded.unit.description.as_deref(), Some("the administrator's"));

    write(&admin.join("idle.target.d/20-new.toml"), &drop_in("not signed"));
    assert_ne!(loader.load_unit(&name, &gate).load, LoadState::Loaded);
    let (exit, out, err) = verify();
    assert!(exit == 1 && format!("{out}{err}").contains("20-new.toml"), "{out}{err}");
}

#[test]
fn what_was_signed_is_what_the_loader_admits() {
    let folder = Folder::new();
    let (place, keys) = (folder.path().join("units"), folder.path().join("keys"));
    units(&place);
    fs::create_dir(&keys).unwrap();
    for dir in [folder.path(), &place, &keys] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (place_text, keys_text) = (place.display(), keys.display());
    let (exit, _, err) = agentctl(&folder, &format!("key generate me --out {keys_text}"));
    assert_eq!(exit, 0, "{err}");
    let names = ["web-agent.service", "worker@.service", "idle.target"];
    let files = names.map(|name| format!("{place_text}/{name}.toml")).join(" ");
    let (exit, _, err) = agentctl(&folder, &format!("sign --key {keys_text}/me.key {files}"));
    assert_eq!(exit, 0, "{err}");

    let own = key_file::own_uid().unwrap();
    let (ring, problems) = KeyRing::load(&[keys], &[own]);
    assert!(problems.is_empty(), "{problems:?}");
    let gate = Signed { ring, admitted: Mutex::new(BTreeMap::new()) };
    let loader = loader(&[&place], own);
    for name in ["web-agent.service", "worker@7.service", "idle.target"] {
        let name = UnitName::parse(name).unwrap();
        let unit = loader.load_unit(&name, &gate);
        assert_eq!(unit.load, LoadState::Loaded, "{name}");
        let admitted = gate.admitted.lock().unwrap();
        let manifest = admitted.get(&name).or_else(|| admitted.get(&name.template()?)).unwrap();
        for program in unit.signed_files() {
            let digest = Sha256Digest::of(&fs::read(&program).unwrap());
            manifest.check(&program.display().to_string(), digest).unwrap();
        }
    }
}
