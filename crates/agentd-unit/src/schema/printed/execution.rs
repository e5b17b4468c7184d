//! What a process is and has at its birth, systemd.exec(5).

use super::{number_or, octal, ranges, text, words, yes_no};
use crate::draft::Draft;
use crate::sections::{CpuPolicy, Execution, Input, IoClass, KeyringMode, NumaPolicy, Output, Seize};
use crate::values::{span, stream};
use crate::words::Words;

pub(super) fn process(key: &str, draft: &Draft) -> Option<String> {
    let how = &draft.service.execution;
    Some(match key {
        "UMask" => octal(how.umask),
        "Nice" => number_or(how.nice, "0"),
        "OOMScoreAdjust" => number_or(how.oom_score_adjust, "0"),
        // The bus has the kernel's numbers of these three, sched(7), ioprio_set(2).
        "CPUSchedulingPolicy" => how.cpu_policy.map_or(0, policy).to_string(),
        "CPUSchedulingPriority" => number_or(how.cpu_priority, "0"),
        "IOSchedulingClass" => how.io_class.map_or(2, class).to_string(),
        "IOSchedulingPriority" => number_or(how.io_priority, "4"),
        "CPUAffinity" => ranges(&how.cpu_affinity),
        "KeyringMode" => how.keyring.map_or("private", KeyringMode::as_word).to_owned(),
        "SupplementaryGroups" => how.supplementary_groups.join(" "),
        "SecureBits" => how.secure_bits.to_string(),
        "CoredumpFilter" => format!("{:#x}", how.coredump_filter.unwrap_or(0x33)),
        "TimerSlackNSec" => number_or(how.timer_slack, ""),
        "NUMAPolicy" => how.numa_policy.map_or("n/a", NumaPolicy::as_word).to_owned(),
        "NUMAMask" => ranges(&how.numa_nodes),
        "ExecSearchPath" => words(&how.search_path, |path| text(path)),
        "WorkingDirectory" => folder(draft),
        "EnvironmentFile" => words(&how.environment_files, |file| {
            format!("{} (ignore_errors={})", text(&file.path), yes_no(file.optional))
        }),
        "PassEnvironment" => how.pass_environment.join(" "),
        "UnsetEnvironment" => how.unset_environment.join(" "),
        "RuntimeDirectoryMode" => octal(how.runtime_directory.mode),
        "StateDirectoryMode" => octal(how.state_directory_mode),
        "CacheDirectoryMode" => octal(how.cache_directory.mode),
        "LogsDirectoryMode" => octal(how.logs_directory.mode),
        "ConfigurationDirectoryMode" => octal(how.configuration_directory.mode),
        _ => return None,
    })
}

pub(super) fn streams(key: &str, draft: &Draft) -> Option<String> {
    let how = &draft.service.execution;
    Some(match key {
        "StandardInput" => input(&how.input),
        "StandardOutput" => output(how.output()),
        "StandardError" => output(&how.error),
        // The texts are among the bytes.
        "StandardInputText" => String::new(),
        "StandardInputData" => stream::to_base64(&how.input_data),
        // Only where a stream leads there.
        "TTYPath" if !uses_terminal(how) => String::new(),
        "TTYPath" => text(&how.tty),
        "SyslogIdentifier" => how.syslog_identifier.clone().unwrap_or_default(),
        "LogLevelMax" => number_or(how.log_level_max, "-1"),
        "SyslogLevel" => how.log_level.to_string(),
        "SyslogFacility" => how.log_facility.to_string(),
        "LogRateLimitIntervalSec" => how.log_rate_interval.map_or_else(|| "0".to_owned(), span::display),
        "LogRateLimitBurst" => number_or(how.log_rate_burst, "0"),
        _ => return None,
    })
}

fn uses_terminal(how: &Execution) -> bool {
    let is_terminal = |output: &Output| *output == Output::Terminal;
    matches!(how.input, Input::Terminal(_)) || is_terminal(&how.output) || is_terminal(&how.error)
}

/// `!`: it may be missing.
fn folder(draft: &Draft) -> String {
    let service = &draft.service;
    let path = match &service.working_directory {
        Some(path) => text(path),
        None if service.execution.in_home => "~".to_owned(),
        None => return String::new(),
    };
    format!("{}{path}", if service.working_directory_optional { "!" } else { "" })
}

const fn policy(policy: CpuPolicy) -> u32 {
    match policy {
        CpuPolicy::Other => 0,
        CpuPolicy::Fifo => 1,
        CpuPolicy::RoundRobin => 2,
        CpuPolicy::Batch => 3,
        CpuPolicy::Idle => 5,
    }
}

const fn class(class: IoClass) -> u32 {
    match class {
        IoClass::None => 0,
        IoClass::Realtime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    }
}

fn input(input: &Input) -> String {
    match input {
        Input::Null => "null".to_owned(),
        Input::Socket => "socket".to_owned(),
        Input::Terminal(Seize::Ask) => "tty".to_owned(),
        Input::Terminal(Seize::Force) => "tty-force".to_owned(),
        Input::File(path) => format!("file:{}", text(path)),
        Input::Data => "data".to_owned(),
        Input::Named(name) => format!("fd:{name}"),
    }
}

fn output(output: &Output) -> String {
    match output {
        Output::Inherit => "inherit".to_owned(),
        Output::Null => "null".to_owned(),
        Output::Socket => "socket".to_owned(),
        Output::Log => "journal".to_owned(),
        Output::KernelLog => "kmsg".to_owned(),
        Output::Terminal => "tty".to_owned(),
        Output::File(path) => format!("file:{}", text(path)),
        Output::Append(path) => format!("append:{}", text(path)),
        Output::Truncate(path) => format!("truncate:{}", text(path)),
        Output::Named(name) => format!("fd:{name}"),
    }
}
