use super::*;

/// An instant written in RFC 3339.
fn at(text: &str) -> Realtime {
    Realtime(text.parse::<jiff::Timestamp>().expect("an instant").as_microsecond())
}

fn shown(instant: Realtime, zone: &str) -> String {
    let zone = TimeZone::get(zone).expect("a zone of the database");
    let instant = jiff::Timestamp::from_microsecond(instant.0).expect("an instant in range");
    instant.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
}

/// The next matches in a zone, from a local time of it.
fn series(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let local = LocalZone::named(zone).expect("a zone of the database");
    let spec = CalendarSpec::parse(expression, &local).expect("a calendar expression");
    let civil: DateTime = from.parse().expect("a civil time");
    let from = local.0.to_timestamp(civil).expect("an instant");
    let mut now = Realtime(from.as_microsecond());
    let mut found = Vec::new();
    while found.len() < count {
        let Some(next) = spec.next_after(now) else { break };
        assert!(next > now, "{expression}: {next:?} is not after {now:?}");
        found.push(shown(next, zone));
        now = next;
    }
    found
}

#[test]
fn a_gap_takes_no_day_away_and_a_fold_gives_none_twice() {
    for (case, expression, zone, from, expected) in [
        (
            "only the time inside the gap moves",
            "*-*-* 02,06,10:30",
            "Australia/Sydney",
            "2027-10-02T23:00",
            vec!["2027-10-03 03:00:00+11:00", "2027-10-03 06:30:00+11:00", "2027-10-03 10:30:00+11:00"],
        ),
        (
            "a weekly time on the day of the change stays",
            "Sun 12:00",
            "Europe/Paris",
            "2027-03-25T12:00",
            vec!["2027-03-28 12:00:00+02:00", "2027-04-04 12:00:00+02:00"],
        ),
        (
            "a daily time in the gap comes right after it",
            "02:30",
            "America/New_York",
            "2027-03-12T12:00",
            vec!["2027-03-13 02:30:00-05:00", "2027-03-14 03:00:00-04:00", "2027-03-15 02:30:00-04:00"],
        ),
        (
            "a daily time in the fold comes once, at the first",
            "01:30",
            "America/New_York",
            "2027-11-06T12:00",
            vec!["2027-11-07 01:30:00-04:00", "2027-11-08 01:30:00-05:00"],
        ),
        (
            "a gap of half an hour",
            "02:15",
            "Australia/Lord_Howe",
            "2027-10-02T12:00",
            vec!["2027-10-03 02:30:00+11:00", "2027-10-04 02:15:00+11:00"],
        ),
        (
            "hourly goes on by elapsed time through the gap",
            "hourly",
            "America/New_York",
            "2027-03-14T00:30",
            vec!["2027-03-14 01:00:00-05:00", "2027-03-14 03:00:00-04:00", "2027-03-14 04:00:00-04:00"],
        ),
        (
            "hourly comes in both passes of the fold",
            "hourly",
            "America/New_York",
            "2027-11-07T00:30",
            vec!["2027-11-07 01:00:00-04:00", "2027-11-07 01:00:00-05:00", "2027-11-07 02:00:00-05:00"],
        ),
        (
            "several times inside one gap come once",
            "*-*-* 02:00,15,45",
            "America/New_York",
            "2027-03-13T12:00",
            vec!["2027-03-14 03:00:00-04:00", "2027-03-15 02:00:00-04:00"],
        ),
    ] {
        assert_eq!(series(expression, zone, from, expected.len()), expected, "{case}");
    }
}

#[test]
fn after_the_first_pass_of_a_fold_the_second_has_no_match() {
    let zone = LocalZone::named("America/New_York").expect("a zone");
    let spec = CalendarSpec::parse("*-*-* 01:*:0/0.000001", &zone).expect("an expression");
    // In the second pass: a scan of the fold's 3.6 thousand million microseconds would not end in time.
    let next = spec.next_after(at("2027-11-07T06:30:00Z")).expect("a next time");
    assert_eq!(shown(next, "America/New_York"), "2027-11-08 01:00:00-05:00");
}

#[test]
fn hourly_is_an_hour_apart_in_zones_with_odd_changes() {
    for (zone, from) in [
        ("Europe/Dublin", "2027-03-27T12:00"),
        ("Europe/Dublin", "2027-10-30T12:00"),
        ("Africa/Casablanca", "2027-02-06T00:00"),
        ("Africa/Casablanca", "2027-03-13T00:00"),
    ] {
        let local = LocalZone::named(zone).expect("a zone");
        let spec = CalendarSpec::parse("hourly", &local).expect("an expression");
        let civil: DateTime = from.parse().expect("a civil time");
        let mut now = Realtime(local.0.to_timestamp(civil).expect("an instant").as_microsecond());
        for _ in 0..48 {
            let next = spec.next_after(now).expect("a next hour");
            assert_eq!(next - now, std::time::Duration::from_secs(3600), "{zone} {}", shown(now, zone));
            now = next;
        }
    }
}

#[test]
fn every_month_restarts_its_days() {
    for (expression, from, expected) in [
        ("*-*-01/7 04:00", "2027-01-29T12:00", "2027-02-01 04:00:00+00:00"),
        ("*-*-31", "2027-01-31T12:00", "2027-03-31 00:00:00+00:00"),
        ("*-02-29", "2027-01-01T00:00", "2028-02-29 00:00:00+00:00"),
        ("*-*~01", "2027-02-01T00:00", "2027-02-28 00:00:00+00:00"),
        ("*-*~01", "2028-02-01T00:00", "2028-02-29 00:00:00+00:00"),
        ("*-01-01", "2027-12-29T00:00", "2028-01-01 00:00:00+00:00"),
        ("Mon *-05~07/1", "2027-01-01T00:00", "2027-05-31 00:00:00+00:00"),
        ("Fri *-*-13", "2027-08-01T00:00", "2027-08-13 00:00:00+00:00"),
        ("*:*:0/0.25", "2027-12-31T23:59:59.9", "2028-01-01 00:00:00+00:00"),
    ] {
        assert_eq!(series(expression, "UTC", from, 1), [expected], "{expression}");
    }
}

#[test]
fn what_never_comes_again_ends() {
    for expression in ["2020-01-01", "*-02-30", "Mon 2027-02-29", "2199-12-31 23:59:59"] {
        let spec = CalendarSpec::parse(expression, &LocalZone::utc()).expect("an expression");
        assert_eq!(spec.next_after(at("2199-12-31T23:59:59Z")), None, "{expression}");
    }
}

#[test]
fn extreme_instants_have_an_answer() {
    let spec = CalendarSpec::parse("daily", &LocalZone::utc()).expect("an expression");
    assert_eq!(spec.next_after(Realtime(i64::MAX)), None);
    assert_eq!(spec.next_after(Realtime(i64::MIN)), None);
    assert_eq!(spec.next_after(at("0001-01-01T00:00:00Z")), Some(at("1970-01-01T00:00:00Z")));
    assert_eq!(spec.next_after(Realtime(-1)), Some(Realtime(0)));
}

#[test]
fn expressions_are_normalised() {
    for (written, normal) in [
        ("minutely", "*-*-* *:*:00"),
        ("MONTHLY", "*-*-01 00:00:00"),
        ("semiannually UTC", "*-01,07-01 00:00:00 UTC"),
        ("Mon-Fri", "Mon..Fri *-*-* 00:00:00"),
        ("monday,tue..thursday 10:00", "Mon..Thu *-*-* 10:00:00"),
        ("Sun,Mon 1:2", "Mon,Sun *-*-* 01:02:00"),
        ("*:0/10", "*-*-* *:00/10:00"),
        ("*:*:*", "*-*-* *:*:*"),
        ("*-*-1,1,2/5", "*-*-01,02/5 00:00:00"),
        ("*-1..12/3-1", "*-01..10/3-01 00:00:00"),
        ("*-*-13..14/2", "*-*-13 00:00:00"),
        ("*:4..5/3:51", "*-*-* *:04:51"),
        ("*-*~1..3/5", "*-*~01 00:00:00"),
        ("*:0..5/1000", "*-*-* *:00:00"),
        ("Mon,", "Mon *-*-* 00:00:00"),
        ("Mon..Tue, 12:00", "Mon,Tue *-*-* 12:00:00"),
        ("99-01-01", "1999-01-01 00:00:00"),
        ("@1700000000", "2023-11-14 22:13:20 UTC"),
        ("05:40:23.4200004/3.1700005", "*-*-* 05:40:23.420000/3.170001"),
        ("10:00 Europe/Paris", "*-*-* 10:00:00 Europe/Paris"),
    ] {
        let spec = CalendarSpec::parse(written, &LocalZone::utc()).expect(written);
        assert_eq!(spec.to_string(), normal, "{written}");
        assert_eq!(CalendarSpec::parse(normal, &LocalZone::utc()).expect(normal), spec, "{written}");
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    for written in [
        "",
        " ",
        "*",
        "12",
        "Mon, Tue",
        "Sat..Mon",
        "*/5:00",
        "*:*/5",
        "12..10:30",
        "2200-01-01",
        "1969-12-31",
        "*-*-0",
        "*-*-32",
        "*-13-1",
        "24:00",
        "0:60",
        "0:0:60",
        "*:0/0",
        "*:0/70",
        "*-*~29",
        "10:00 Nowhere/City",
        "daly",
        "@",
        "@x",
        "@-1",
        "1-2-3-4",
        "10:00:00:00",
        "99999999999999999999:0",
        "Monn",
        "*-*-* *:*:",
    ] {
        assert!(CalendarSpec::parse(written, &LocalZone::utc()).is_err(), "{written:?}");
    }
    let many = "1,".repeat(10_000) + "1:00";
    assert!(CalendarSpec::parse(&many, &LocalZone::utc()).is_err());
}
