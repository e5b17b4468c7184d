//! The files with some bytes changed: no reader may panic. Seeded, so that every run is the same run.

use std::sync::Arc;

use agentd_unit::{LocalZone, ParseContext, SourceFile, SpecifierContext, import, parse_unit};

use crate::files::File;

/// So often each file is changed.
const ROUNDS: u64 = 4;

/// Reads changed files; how many.
pub(crate) fn check(files: &[File]) -> u64 {
    let (specifiers, zone) = (SpecifierContext::system(), LocalZone::utc());
    let context = ParseContext { specifiers: &specifiers, zone: &zone };
    let mut count = 0;
    for (number, file) in files.iter().enumerate() {
        for round in 0..ROUNDS {
            let mut bytes = file.bytes.clone();
            change(&mut bytes, number as u64 * ROUNDS + round);
            let source = Arc::new(SourceFile::from_bytes(&file.path, &bytes));
            let parsed = parse_unit(&file.name, &[Arc::clone(&source)], &context);
            for finding in &parsed.diagnostics {
                assert!(!finding.to_string().contains(['\n', '\u{1b}']), "a finding is one line");
                assert!(!finding.render(false).is_empty());
            }
            let imported = import::to_toml(&source, &file.name);
            let toml = Arc::new(SourceFile::new("x.toml", imported.text));
            drop(parse_unit(&file.name, &[toml], &context));
            count += 1;
        }
    }
    count
}

/// Takes bytes out, puts bytes in, doubles parts.
fn change(bytes: &mut Vec<u8>, seed: u64) {
    const TELLING: &[u8] = b"\\\n\"'[]=%#;\r\0\xff {}@~-";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap_or(0) % bound.max(1)
    };
    for _ in 0..=random(8) {
        let at = random(bytes.len() + 1);
        let end = (at + random(20)).min(bytes.len());
        match random(3) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.insert(at, TELLING[random(TELLING.len())]),
            _ => {
                let piece = bytes[at..end].to_vec();
                let to = random(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
        }
    }
}
