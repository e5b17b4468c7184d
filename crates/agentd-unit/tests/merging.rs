//! Merging a unit's files is associative: however neighbouring drop-ins are joined into one file, whatever tier they
//! come from, the unit is the same. In systemd's syntax two texts one after the other are one file, so this can be
//! tried with every grouping.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test: what is not as expected fails it")]

mod support;

use std::sync::Arc;

use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, Unit, UnitName, parse_unit};
use support::Random;

/// What drop-ins are made of: scalars that replace, lists that add, empty values that take back, and headers between
/// them.
const LINES: &[&str] = &[
    "[Unit]\nDescription=one",
    "[Unit]\nDescription=two",
    "[Unit]\nDescription=",
    "[Unit]\nAfter=a.service b.service",
    "[Unit]\nAfter=c.target",
    "[Unit]\nAfter=",
    "[Unit]\nWants=a.service",
    "[Unit]\nConditionPathExists=/a",
    "[Unit]\nConditionPathExists=!/b",
    "[Unit]\nConditionPathExists=",
    "[Unit]\nStartLimitBurst=3",
    "[Service]\nExecStart=",
    "[Service]\nExecStart=/bin/b 1 \\\n  2",
    "[Service]\nExecStartPre=/bin/a ; /bin/b",
    "[Service]\nExecStartPre=-/bin/c %n",
    "[Service]\nType=oneshot",
    "[Service]\nType=simple",
    "[Service]\nEnvironment=A=1 B=2",
    "[Service]\nEnvironment=\"A=3 4\"",
    "[Service]\nEnvironment=",
    "[Service]\nTimeoutSec=5",
    "[Service]\nTimeoutStopSec=7",
    "[Service]\nTimeoutStopSec=",
    "[Service]\nCapabilityBoundingSet=CAP_KILL CAP_CHOWN",
    "[Service]\nCapabilityBoundingSet=~CAP_KILL",
    "[Service]\nCapabilityBoundingSet=",
    "[Service]\nSystemCallFilter=@basic-io",
    "[Service]\nSystemCallFilter=~read",
    "[Service]\nSuccessExitStatus=7 SIGKILL",
    "[Service]\nSuccessExitStatus=",
    "[Service]\nReadWritePaths=/a -/b",
    "[Service]\nReadWritePaths=",
    "[Service]\nUMask=0077",
    "[Service]\nMemoryMax=10%",
    "[Service]\nMemoryMax=",
    "[Install]\nWantedBy=a.target",
    "[Install]\nWantedBy=",
    "[Install]\nAlias=other.service",
];

/// The unit of a main file and these drop-ins.
fn unit(drop_ins: &[String]) -> Unit {
    let name = UnitName::parse("web.service").unwrap();
    let main = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
    let mut files = vec![Arc::new(SourceFile::new("/u/web.service", main))];
    files.extend(drop_ins.iter().enumerate().map(|(number, text)| {
        Arc::new(SourceFile::new(format!("/u/web.service.d/{number:02}.conf"), text.as_str()))
    }));
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let mut unit = parse_unit(&name, &files, &ParseContext { specifiers: &specifiers, zone: &zone }).unit;
    // Where it was read from differs by design: the files, what is said about lines of them, the hash of their texts.
    unit.drop_ins.clear();
    unit.sources.clear();
    unit.warnings.clear();
    unit.digest = [0; 32];
    if let agentd_unit::LoadState::BadSetting(why) = &mut unit.load {
        why.clear();
    }
    unit
}

/// The drop-ins with those joined to their neighbour before them for which a bit is set.
fn grouped(drop_ins: &[String], joins: u32) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for (number, text) in drop_ins.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if joins & (1 << number) != 0 => group.push_str(text),
            _ => groups.push(text.clone()),
        }
    }
    groups
}

#[test]
fn every_grouping_of_drop_ins_makes_the_same_unit() {
    let mut random = Random(7);
    for round in 0..200 {
        let count = 2 + random.below(4) as usize;
        let drop_in = |random: &mut Random| -> String {
            let lines = 1 + random.below(4);
            (0..lines).map(|_| format!("{}\n", random.pick(LINES))).collect()
        };
        let drop_ins: Vec<String> = (0..count).map(|_| drop_in(&mut random)).collect();
        let whole = unit(&drop_ins);
        for joins in 1..1 << count {
            let groups = grouped(&drop_ins, joins);
            assert_eq!(unit(&groups), whole, "round {round}: {drop_ins:?} as {groups:?}");
        }
    }
}

#[test]
fn the_property_sees_a_drop_in_that_is_left_out() {
    let drop_ins = ["[Unit]\nAfter=a.service\n".to_owned(), "[Unit]\nAfter=\n".to_owned()];
    assert_ne!(unit(&drop_ins), unit(&drop_ins[..1]));
}
