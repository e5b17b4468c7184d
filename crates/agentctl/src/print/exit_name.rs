//! How a process ended, in systemd's words: `code=exited, status=1/FAILURE`.

use agentd_unit::Signal;

/// `si_code` of waitid(2).
const KILLED: i32 = 2;
const DUMPED: i32 = 3;

/// systemd.exec(5) "PROCESS EXIT CODES": the LSB's, then those of steps before exec.
const NAMES: [(i32, &str); 50] = [
    (0, "SUCCESS"),
    (1, "FAILURE"),
    (2, "INVALIDARGUMENT"),
    (3, "NOTIMPLEMENTED"),
    (4, "NOPERMISSION"),
    (5, "NOTINSTALLED"),
    (6, "NOTCONFIGURED"),
    (7, "NOTRUNNING"),
    (200, "CHDIR"),
    (201, "NICE"),
    (202, "FDS"),
    (203, "EXEC"),
    (204, "MEMORY"),
    (205, "LIMITS"),
    (206, "OOM_ADJUST"),
    (207, "SIGNAL_MASK"),
    (208, "STDIN"),
    (209, "STDOUT"),
    (210, "CHROOT"),
    (211, "IOPRIO"),
    (212, "TIMERSLACK"),
    (213, "SECUREBITS"),
    (214, "SETSCHEDULER"),
    (215, "CPUAFFINITY"),
    (216, "GROUP"),
    (217, "USER"),
    (218, "CAPABILITIES"),
    (219, "CGROUP"),
    (220, "SETSID"),
    (221, "CONFIRM"),
    (222, "STDERR"),
    (224, "PAM"),
    (225, "NETWORK"),
    (226, "NAMESPACE"),
    (227, "NO_NEW_PRIVILEGES"),
    (228, "SECCOMP"),
    (229, "SELINUX_CONTEXT"),
    (230, "PERSONALITY"),
    (231, "APPARMOR_PROFILE"),
    (232, "ADDRESS_FAMILIES"),
    (233, "RUNTIME_DIRECTORY"),
    (235, "CHOWN"),
    (236, "SMACK_PROCESS_LABEL"),
    (237, "KEYRING"),
    (238, "STATE_DIRECTORY"),
    (239, "CACHE_DIRECTORY"),
    (240, "LOGS_DIRECTORY"),
    (241, "CONFIGURATION_DIRECTORY"),
    (242, "NUMA_POLICY"),
    (243, "CREDENTIALS"),
];

/// `code=exited, status=203/EXEC` or `code=killed, signal=KILL`; `None` if it did not end.
pub(crate) fn ended(code: i32, status: i32) -> Option<String> {
    let word = match code {
        0 => return None,
        KILLED => "killed",
        DUMPED => "dumped",
        _ => "exited",
    };
    if matches!(code, KILLED | DUMPED) {
        let name =
            Signal::from_number(status).map_or_else(|| status.to_string(), |signal| signal.to_string());
        return Some(format!("code={word}, signal={}", name.trim_start_matches("SIG")));
    }
    let name = NAMES.iter().find(|(number, _)| *number == status).map_or("n/a", |(_, name)| name);
    Some(format!("code={word}, status={status}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::ended;

    #[test]
    fn an_end_is_told_as_systemd_tells_it() {
        for (code, status, text) in [
            (0, 0, None),
            (1, 0, Some("code=exited, status=0/SUCCESS")),
            (1, 203, Some("code=exited, status=203/EXEC")),
            (1, 42, Some("code=exited, status=42/n/a")),
            (2, 9, Some("code=killed, signal=KILL")),
            (3, 11, Some("code=dumped, signal=SEGV")),
            (2, 37, Some("code=killed, signal=RTMIN+3")),
            (2, 99, Some("code=killed, signal=99")),
        ] {
            assert_eq!(ended(code, status).as_deref(), text);
        }
    }
}
