//! What it takes to load units with two drop-ins each: `loading [COUNT]…`, both syntaxes, beside
//! `systemd-analyze verify` on the same files where it is installed. To be measured with `--release`.
//!
//! Times are what a person waits, the least of several rounds: the loader reads with two threads.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test program: what is not as expected ends it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_unit::search_path::{Tier, TierKind};
use agentd_unit::{
    LoadReport, LoadState, Loader, LoaderConfig, LocalZone, OpenGate, SearchPath, SpecifierContext, Trusted,
};

/// So often each is done; the fastest counts.
const ROUNDS: usize = 10;
/// systemd takes longer, and so is disturbed less.
const ROUNDS_OF_SYSTEMD: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, folder, count] = words.as_slice()
        && flag == "--memory"
    {
        // In a process of its own: nothing was freed here that could be used again.
        let before = resident();
        let report = load(Path::new(folder), count.parse().unwrap());
        println!("{}", (resident() - before) / 1024);
        return drop(report);
    }
    let counts: Vec<usize> = words.iter().map(|word| word.parse().unwrap()).collect();
    let counts = if counts.is_empty() { vec![100, 1000, 10_000] } else { counts };
    println!(
        "{:>6} {:>11} {:>11} {:>13} {:>24}",
        "units", "TOML", "INI", "memory (INI)", "systemd-analyze verify"
    );
    for count in counts {
        let toml = Folder::new(count, true);
        let ini = Folder::new(count, false);
        // It takes minutes beyond a thousand.
        let rounds = if count <= 1000 { ROUNDS_OF_SYSTEMD } else { 0 };
        let systemd = (0..rounds).filter_map(|_| verify(&ini.0)).min();
        let systemd = systemd.map_or("-".to_owned(), |time| format!("{} ms", time.as_millis()));
        println!(
            "{count:>6} {:>8.1} ms {:>8.1} ms {:>9} KiB {systemd:>24}",
            measure(&toml.0, count).as_secs_f64() * 1e3,
            measure(&ini.0, count).as_secs_f64() * 1e3,
            memory(&ini.0, count),
        );
    }
}

/// How much a process grows by a load, in KiB.
fn memory(folder: &Path, count: usize) -> String {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).arg("--memory").arg(folder).arg(count.to_string()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A folder with units, gone with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(count: usize, toml: bool) -> Self {
        let syntax = if toml { "toml" } else { "ini" };
        let path =
            std::env::temp_dir().join(format!("agentd-loading-{}-{syntax}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let path = path.canonicalize().unwrap();
        let ending = if toml { ".toml" } else { "" };
        let drop_in_ending = if toml { "toml" } else { "conf" };
        for number in 0..count {
            let unit = format!("agent-{number:05}.service");
            let before = format!("agent-{:05}.service", number.saturating_sub(1));
            let texts = if toml { toml_texts(number, &before) } else { ini_texts(number, &before) };
            fs::write(path.join(format!("{unit}{ending}")), &texts[0]).unwrap();
            let folder = path.join(format!("{unit}.d"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(format!("10-limits.{drop_in_ending}")), &texts[1]).unwrap();
            fs::write(folder.join(format!("50-site.{drop_in_ending}")), &texts[2]).unwrap();
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn ini_texts(number: usize, before: &str) -> [String; 3] {
    [
        format!(
            "# an agent\n[Unit]\nDescription=Agent {number}\nDocumentation=man:agent(8)\nAfter={before}\n\
             Wants={before}\n\n[Service]\nType=notify\nExecStart=/bin/true --name \"agent {number}\" \\\n  --verbose\n\
             Environment=A=1 \"B=two words\"\nRestart=on-failure\nRestartSec=500ms\nUser=root\n\n[Install]\n\
             WantedBy=multi-user.target\n"
        ),
        "[Service]\nMemoryMax=512M\nTasksMax=64\nCPUQuota=50%\n".to_owned(),
        "[Service]\nEnvironment=C=3\nTimeoutStopSec=20\n[Unit]\nStartLimitBurst=9\n".to_owned(),
    ]
}

fn toml_texts(number: usize, before: &str) -> [String; 3] {
    [
        format!(
            "# an agent\n[Unit]\nDescription = \"Agent {number}\"\nDocumentation = [\"man:agent(8)\"]\n\
             After = [\"{before}\"]\nWants = [\"{before}\"]\n\n[Service]\nType = \"notify\"\n\
             ExecStart = [\"/bin/true\", \"--name\", \"agent {number}\", \"--verbose\"]\n\
             Environment = {{ A = \"1\", B = \"two words\" }}\nRestart = \"on-failure\"\nRestartSec = \"500ms\"\n\
             User = \"root\"\n\n[Install]\nWantedBy = [\"multi-user.target\"]\n"
        ),
        "[Service]\nMemoryMax = \"512M\"\nTasksMax = 64\nCPUQuota = \"50%\"\n".to_owned(),
        "[Service]\nEnvironment = { C = \"3\" }\nTimeoutStopSec = 20\n[Unit]\nStartLimitBurst = 9\n"
            .to_owned(),
    ]
}

/// The time of a load.
fn measure(folder: &Path, count: usize) -> Duration {
    let round = || {
        let begin = Instant::now();
        let report = load(folder, count);
        let took = begin.elapsed();
        drop(report);
        took
    };
    (0..ROUNDS).map(|_| round()).min().unwrap()
}

fn load(folder: &Path, count: usize) -> LoadReport {
    let loader = Loader::new(LoaderConfig {
        search: SearchPath { tiers: vec![Tier { path: folder.to_owned(), kind: TierKind::Units }] },
        trusted: Trusted(vec![0, std::os::unix::fs::MetadataExt::uid(&fs::metadata(folder).unwrap())]),
        specifiers: SpecifierContext::system(),
        zone: LocalZone::utc(),
    });
    let report = loader.load(&OpenGate);
    let loaded = report.set.iter().filter(|unit| unit.load == LoadState::Loaded).count();
    assert!(loaded >= count, "all are loaded: {loaded} of {count}, {:?}", report.problems);
    report
}

/// The resident memory of this process in bytes, proc(5) `statm`.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// The time of `systemd-analyze verify` over all units, without man pages and generators.
fn verify(folder: &Path) -> Option<Duration> {
    let mut units: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    units.retain(|path| path.is_file());
    units.sort();
    let begin = Instant::now();
    let status = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--generators=no", "--recursive-errors=no"])
        .args(units)
        .env("SYSTEMD_UNIT_PATH", format!("{}:", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let took = begin.elapsed();
    if !status.success() {
        eprintln!("systemd-analyze verify ended with {status}");
    }
    Some(took)
}
