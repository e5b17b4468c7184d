//! What a leaf has used: cgroup-v2.rst, "Interface Files".

use super::error::CgroupError;
use super::leaf::Leaf;

/// What a unit uses and has used. None: the controller is not there, or the kernel is too old for the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of memory, page cache included.
    pub memory_current: Option<u64>,
    /// The most there was. Linux 5.19.
    pub memory_peak: Option<u64>,
    /// Bytes in swap.
    pub memory_swap_current: Option<u64>,
    /// Processes and threads.
    pub tasks_current: Option<u64>,
    /// Processor time in microseconds, user and system. There without the controller as well.
    pub cpu_usage_us: Option<u64>,
    /// Bytes read from block devices.
    pub io_read_bytes: Option<u64>,
    /// Bytes written to block devices.
    pub io_write_bytes: Option<u64>,
}

/// For what share of the last ten seconds a task of the cgroup waited, in hundredths of a percent: "some avg10" of
/// `memory.pressure`, `cpu.pressure` and `io.pressure`. Linux 5.2, with CONFIG_PSI. None: the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// For memory.
    pub memory: Option<u64>,
    /// For a processor.
    pub cpu: Option<u64>,
    /// For a disk.
    pub io: Option<u64>,
}

/// What the memory limits have done, counted since the cgroup was made: `memory.events`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryEvents {
    /// How often memory ran against `memory.max`.
    pub max: u64,
    /// How often nothing could be reclaimed.
    pub oom: u64,
    /// Processes that the OOM killer took, of this cgroup or below.
    pub oom_kill: u64,
    /// How often it took a whole group. Linux 5.17.
    pub oom_group_kill: u64,
}

impl Leaf {
    /// What it uses. A cgroup that is gone uses nothing that can be told.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let io = self.read("io.stat").ok();
        let io = |name| io.as_deref().map(|text| sum_of(text, name));
        Stats {
            memory_current: self.memory_current(),
            memory_peak: self.number("memory.peak"),
            memory_swap_current: self.number("memory.swap.current"),
            tasks_current: self.number("pids.current"),
            cpu_usage_us: self.read("cpu.stat").ok().and_then(|text| value_of(&text, "usage_usec")),
            io_read_bytes: io("rbytes="),
            io_write_bytes: io("wbytes="),
        }
    }

    /// Bytes of memory that it uses, page cache included, from one file. None without the memory controller.
    #[must_use]
    pub fn memory_current(&self) -> Option<u64> {
        self.number("memory.current")
    }

    /// How much its tasks wait.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        let some = |file| self.read(file).ok().and_then(|text| some_avg10(&text));
        Pressure { memory: some("memory.pressure"), cpu: some("cpu.pressure"), io: some("io.pressure") }
    }

    /// What its memory limits have done. None without the memory controller.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn memory_events(&self) -> Result<Option<MemoryEvents>, CgroupError> {
        match self.read("memory.events") {
            Ok(text) => Ok(Some(parse_memory_events(&text))),
            Err(e) if matches!(e.errno(), Some(libc::ENOENT | libc::ENODEV)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// A file that holds one number.
    fn number(&self, file: &str) -> Option<u64> {
        self.read(file).ok()?.trim().parse().ok()
    }
}

fn parse_memory_events(text: &str) -> MemoryEvents {
    let count = |name| value_of(text, name).unwrap_or(0);
    MemoryEvents {
        max: count("max"),
        oom: count("oom"),
        oom_kill: count("oom_kill"),
        oom_group_kill: count("oom_group_kill"),
    }
}

/// `some avg10=1.25 …` as 125.
fn some_avg10(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let share = some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    let (whole, part) = share.split_once('.')?;
    let part = if part.len() == 2 { part.parse::<u64>().ok()? } else { return None };
    Some(whole.parse::<u64>().ok()? * 100 + part)
}

/// The number after a name, in a file of `NAME NUMBER` lines.
fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// The sum of `NAME=NUMBER` over the devices of `io.stat`.
fn sum_of(text: &str, name: &str) -> u64 {
    text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_events_are_read_by_their_whole_name() {
        let text = "low 0\nhigh 3\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n";
        let events = MemoryEvents { max: 12, oom: 2, oom_kill: 1, oom_group_kill: 0 };
        assert_eq!(parse_memory_events(text), events);
        assert_eq!(parse_memory_events("low 0\n"), MemoryEvents::default());
    }

    #[test]
    fn pressure_is_read_in_hundredths() {
        let text = |share| {
            format!("some avg10={share} avg60=9.00 avg300=9.00 total=9\nfull avg10=8.00 avg60=0.00\n")
        };
        for (share, hundredths) in
            [("0.00", Some(0)), ("1.25", Some(125)), ("100.00", Some(10_000)), ("x", None)]
        {
            assert_eq!(some_avg10(&text(share)), hundredths, "{share}");
        }
        assert_eq!(some_avg10("full avg10=8.00 total=1\n"), None);
    }

    #[test]
    fn devices_are_summed() {
        let text = "8:0 rbytes=100 wbytes=5 rios=1\n8:16 rbytes=23 wbytes=0\n";
        assert_eq!((sum_of(text, "rbytes="), sum_of(text, "wbytes="), sum_of("", "rbytes=")), (123, 5, 0));
    }
}
