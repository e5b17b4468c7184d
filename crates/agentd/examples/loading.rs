//! What it takes to load units with two drop-ins each: `loading [COUNT]…`, both syntaxes, beside
//! `systemd-analyze verify` on the same files where it is installed. To be measured with `--release`. The units are loaded
//! as agentd loads them: through its door to the kernel, and with its settings of the allocator.
//!
//! Times are what a person waits, medians of rounds in which all are done one after the other, so that what else the
//! machine does meets them alike. For profilers: `loading --keep COUNT` makes the files and names their two folders,
//! `loading --load FOLDER COUNT ROUNDS` loads them so often.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test program: what is not as expected ends it")]

use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_linux::door::KernelDoor;
use agentd_unit::search_path::{Tier, TierKind};
use agentd_unit::{
    LoadReport, LoadState, Loader, LoaderConfig, LocalZone, OpenGate, Scope, SearchPath, SpecifierContext,
    Trusted,
};

/// So often each is done.
const ROUNDS: usize = 11;

fn main() {
    agentd_linux::memory::keep_little();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--memory", folder, count] => {
            // In a process of its own: nothing was freed here that could be used again.
            let before = resident();
            let report = load(Path::new(folder), count.parse().unwrap());
            println!("{}", (resident() - before) / 1024);
            drop(report);
        }
        ["--keep", count] => {
            for toml in [true, false] {
                let folder = ManuallyDrop::new(Folder::new(count.parse().unwrap(), toml));
                println!("{}", folder.0.display());
            }
        }
        ["--load", folder, count, rounds] => {
            for _ in 0..rounds.parse().unwrap() {
                let took = measure(Path::new(folder), count.parse().unwrap());
                println!("{:.1} ms", millis(took));
            }
        }
        counts => table(counts),
    }
}

fn table(counts: &[&str]) {
    let counts: Vec<usize> = counts.iter().map(|word| word.parse().unwrap()).collect();
    let counts = if counts.is_empty() { vec![100, 1000, 10_000] } else { counts };
    println!(
        "{:>6} {:>10} {:>10} {:>13} {:>23} {:>12} {:>12}",
        "units", "TOML", "INI", "memory (INI)", "systemd-analyze verify", "to TOML", "to INI"
    );
    for count in counts {
        let (toml, ini) = (Folder::new(count, true), Folder::new(count, false));
        let mut rounds = Vec::new();
        for round in 0..=ROUNDS {
            // It takes minutes beyond a thousand.
            let systemd = if count <= 1000 { verify(&ini.0) } else { None };
            let times = [Some(measure(&toml.0, count)), Some(measure(&ini.0, count)), systemd];
            // The first only makes everything warm.
            if round > 0 {
                rounds.push(times.map(|time| time.map(millis)));
            }
        }
        let of = |figure: &dyn Fn(&[Option<f64>; 3]) -> Option<f64>| median(rounds.iter().filter_map(figure));
        let shown = |figure: Option<f64>, unit| match figure {
            Some(figure) => format!("{figure:.1}{unit}"),
            None => "-".to_owned(),
        };
        println!(
            "{count:>6} {:>10} {:>10} {:>9} KiB {:>23} {:>12} {:>12}",
            shown(of(&|[toml, ..]| *toml), " ms"),
            shown(of(&|[_, ini, _]| *ini), " ms"),
            memory(&ini.0, count),
            shown(of(&|[.., systemd]| *systemd), " ms"),
            shown(of(&|[toml, _, systemd]| Some((*systemd)? / (*toml)?)), " times"),
            shown(of(&|[_, ini, systemd]| Some((*systemd)? / (*ini)?)), " times"),
        );
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The figure in the middle; `None`: there is none.
fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
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
    let begin = Instant::now();
    let report = load(folder, count);
    let took = begin.elapsed();
    drop(report);
    took
}

fn load(folder: &Path, count: usize) -> LoadReport {
    let loader = Loader::new(LoaderConfig {
        search: SearchPath { tiers: vec![Tier { path: folder.to_owned(), kind: TierKind::Units }] },
        scope: Scope::System,
        trusted: Trusted(vec![0, std::os::unix::fs::MetadataExt::uid(&fs::metadata(folder).unwrap())]),
        specifiers: SpecifierContext::system(),
        zone: LocalZone::utc(),
    })
    .through(&KernelDoor);
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
