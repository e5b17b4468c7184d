//! sd_notify(3) line by line, and datagrams of people who mean harm.

use super::*;

fn parse(text: &str) -> NotifyMessage {
    NotifyMessage::parse(text.as_bytes()).unwrap()
}

fn only(change: impl FnOnce(&mut NotifyMessage)) -> NotifyMessage {
    let mut message = NotifyMessage::default();
    change(&mut message);
    message
}

#[test]
fn each_key_of_sd_notify_becomes_its_field() {
    for (text, expected) in [
        ("READY=1", only(|m| m.ready = true)),
        ("READY=1\n", only(|m| m.ready = true)),
        ("READY=1\0", only(|m| m.ready = true)),
        (
            "RELOADING=1\nMONOTONIC_USEC=17",
            only(|m| {
                m.reloading = true;
                m.monotonic = Some(Duration::from_micros(17));
            }),
        ),
        ("STOPPING=1", only(|m| m.stopping = true)),
        ("STATUS=50 % done = half", only(|m| m.status = Some("50 % done = half".into()))),
        ("STATUS=", only(|m| m.status = Some(String::new()))),
        ("ERRNO=2", only(|m| m.errno = Some(2))),
        ("MAINPID=4711", only(|m| m.main_pid = Some(4711))),
        ("WATCHDOG=1", only(|m| m.watchdog = Some(WatchdogSign::Alive))),
        ("WATCHDOG=trigger", only(|m| m.watchdog = Some(WatchdogSign::Trigger))),
        ("WATCHDOG_USEC=20000000", only(|m| m.watchdog_span = Some(Duration::from_secs(20)))),
        ("EXTEND_TIMEOUT_USEC=1", only(|m| m.extend_timeout = Some(Duration::from_micros(1)))),
        (
            "FDSTORE=1\nFDNAME=db\nFDPOLL=0",
            only(|m| {
                m.fd_store = true;
                m.fd_name = Some("db".into());
                m.fd_no_poll = true;
            }),
        ),
        (
            "FDSTOREREMOVE=1\nFDNAME=db",
            only(|m| {
                m.fd_store_remove = true;
                m.fd_name = Some("db".into());
            }),
        ),
        ("BARRIER=1", only(|m| m.barrier = true)),
        ("NOTIFYACCESS=all", only(|m| m.notify_access = Some("all".into()))),
        (
            "X_AGENTD_PROGRESS=9",
            only(|m| {
                m.other.insert("X_AGENTD_PROGRESS".into(), "9".into());
            }),
        ),
    ] {
        assert_eq!(parse(text), expected, "{text:?}");
    }
}

#[test]
fn a_value_that_makes_no_sense_costs_its_line_only() {
    for (line, key) in [
        ("READY=0", "READY"),
        ("READY=yes", "READY"),
        ("MAINPID=0", "MAINPID"),
        ("MAINPID=-1", "MAINPID"),
        ("MAINPID= 42", "MAINPID"),
        ("MAINPID=9223372036854775808", "MAINPID"),
        ("MAINPID=4294967338", "MAINPID"),
        ("ERRNO=-2", "ERRNO"),
        ("ERRNO=4096", "ERRNO"),
        ("WATCHDOG=2", "WATCHDOG"),
        ("WATCHDOG_USEC=18446744073709551615", "WATCHDOG_USEC"),
        ("WATCHDOG_USEC=18446744073709551616", "WATCHDOG_USEC"),
        ("EXTEND_TIMEOUT_USEC=", "EXTEND_TIMEOUT_USEC"),
        ("FDNAME=a:b", "FDNAME"),
        ("NOTIFYACCESS=world", "NOTIFYACCESS"),
        ("no equals sign", "no equals sign"),
        ("=1", ""),
        ("ready=1", "ready"),
        ("STATUS=first\nSTATUS=second", "STATUS"),
    ] {
        let message = parse(&format!("{line}\nSTOPPING=1"));
        assert!(message.stopping, "{line:?}");
        let keys: Vec<&str> = message.problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, [key], "{line:?}");
    }
    assert_eq!(parse("STATUS=first\nSTATUS=second").status.as_deref(), Some("first"));
}

#[test]
fn a_status_that_is_not_utf8_is_left_aside() {
    let message = NotifyMessage::parse(b"STATUS=\xff\xfe\nREADY=1").unwrap();
    assert_eq!((message.ready, message.status), (true, None));
    assert_eq!(message.problems[0].to_string(), "STATUS: is not UTF-8");
}

#[test]
fn a_datagram_that_cannot_be_relied_on_is_refused_whole() {
    for (datagram, error) in [
        (&b""[..], NotifyError::Empty),
        (b"\n\n", NotifyError::Empty),
        (b"\0", NotifyError::Empty),
        (b"READY=1\0STATUS=x", NotifyError::Nul),
        (b"READY=1\0\0", NotifyError::Nul),
        (&[b'A'; NOTIFY_MAX + 1], NotifyError::TooLong),
    ] {
        assert_eq!(NotifyMessage::parse(datagram), Err(error));
    }
}

#[test]
fn thousands_of_keys_are_kept_within_bounds() {
    let many: String = (0..400).map(|n| format!("K{n}=\n")).collect();
    let message = parse(&many);
    assert_eq!(message.other.len(), LINES_MAX);
    assert_eq!(message.problems.len(), 1);
}

#[test]
fn a_problem_prints_no_control_characters_of_the_sender() {
    let message = parse("\x1b[2Jboo\nREADY=1");
    assert_eq!(message.problems[0].to_string(), "\\u{1b}[2Jboo: no '=' in the line");
}

/// A small generator (xorshift64) so that a failing case comes back with its seed.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 33) as usize
}

#[test]
fn no_datagram_makes_the_parser_panic_or_keep_more_than_it_was_sent() {
    let good = b"READY=1\nSTATUS=\xc3\xa4 x\nMAINPID=77\nWATCHDOG_USEC=9\nX_A=1\nFDNAME=n\nERRNO=4\n";
    for seed in 1..20_000_u64 {
        let mut state = seed;
        let mut datagram = good.to_vec();
        for _ in 0..=random(&mut state) % 6 {
            let at = random(&mut state) % datagram.len();
            match random(&mut state) % 4 {
                0 => datagram[at] = random(&mut state) as u8,
                1 => drop(datagram.remove(at)),
                2 => datagram.insert(at, b"=\n\0A1"[random(&mut state) % 5]),
                _ => datagram.extend_from_within(at..),
            }
        }
        if let Ok(message) = NotifyMessage::parse(&datagram) {
            let kept: usize = message.other.iter().map(|(key, value)| key.len() + value.len()).sum();
            assert!(kept + message.status.map_or(0, |s| s.len()) <= datagram.len(), "seed {seed}");
        }
    }
}
