//! How fast the embedded log takes lines: `log_throughput [LINES]`, 5 million lines of 100 bytes by default, each one
//! write of another process. Prints, beside it, the same lines into a reader that throws them away: the floor.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use agentd::log::{LineRules, LogConfig, LogStore};
use agentd_engine::InvocationId;
use agentd_unit::UnitName;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", lines] => write(lines.parse()?),
        [] => measure(5_000_000),
        [lines] => measure(lines.parse()?),
        _ => Err("usage: log_throughput [LINES]".into()),
    }
}

/// The agent: one write a line.
fn write(lines: u64) -> Result<(), Box<dyn Error>> {
    let (mut out, line) = (std::io::stdout(), [b"x".repeat(99), b"\n".to_vec()].concat());
    for _ in 0..lines {
        // Standard output writes at the end of each line.
        out.write_all(&line)?;
    }
    Ok(())
}

fn agent(lines: u64, pipe: std::io::PipeWriter) -> Result<std::process::Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.args(["write", &lines.to_string()]).stdout(Stdio::from(pipe)).spawn()?)
}

fn measure(lines: u64) -> Result<(), Box<dyn Error>> {
    let (mut read, write) = std::io::pipe()?;
    let (cpu, start) = (cpu_time()?, Instant::now());
    let mut child = agent(lines, write)?;
    let mut buffer = vec![0; 64 << 10];
    while read.read(&mut buffer)? > 0 {}
    report("thrown away", lines, start.elapsed(), cpu_time()?.saturating_sub(cpu));
    child.wait()?;

    let dir = std::env::temp_dir().join(format!("agentd-log-throughput-{}", std::process::id()));
    let mut config = LogConfig::new(&dir);
    // Room for every line, so that they can be counted.
    config.max_bytes_per_unit = 200 * lines + (16 << 20);
    config.max_total_bytes = config.max_bytes_per_unit;
    config.files_kept = 9;
    let store = LogStore::start(config)?;
    let (read, write) = std::io::pipe()?;
    store.attach(&UnitName::parse("a.service")?, InvocationId(1), read.into(), LineRules::default());
    let (cpu, start) = (cpu_time()?, Instant::now());
    let mut child = agent(lines, write)?;
    child.wait()?;
    let (done, flushed) = mpsc::channel();
    // The receiver waits; a sender without one would be our own end.
    store.flush(move || done.send(()).unwrap_or(()));
    flushed.recv()?;
    report("embedded log", lines, start.elapsed(), cpu_time()?.saturating_sub(cpu));
    drop(store);

    let mut stored = 0;
    for file in std::fs::read_dir(&dir)? {
        let text = std::fs::read(file?.path())?;
        stored += text.split(|b| *b == b'\n').filter(|line| line.ends_with(b"xxxxxxxx")).count();
    }
    println!("{stored} of {lines} lines are in the files");
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

fn report(what: &str, lines: u64, wall: Duration, cpu: Duration) {
    let rate = lines as f64 / wall.as_secs_f64();
    let micros = cpu.as_secs_f64() * 1e6 / lines as f64;
    println!(
        "{what}: {:.2} s, {:.0} lines/s, {:.1} MB/s, {micros:.3} µs of CPU a line",
        wall.as_secs_f64(),
        rate,
        rate / 1e4
    );
}

/// The CPU time of this process alone, user and system. proc_pid_stat(5), in ticks of 10 ms.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
