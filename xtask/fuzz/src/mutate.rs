//! Inputs from inputs, without a compiler of its own: what is kept is cut, doubled, mixed with each other and with the
//! words of the grammar, by a seed. The ordinary tests run some thousands of them; `FUZZ_SECONDS=600 cargo test -p
//! agentd-unit --test fuzz_corpus` goes on with other seeds for as long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// A law: what must hold for any bytes at all; it panics where it does not.
pub type Law = fn(&[u8]);

/// So many inputs are made for each law in an ordinary test.
const INPUTS: u64 = 1250;

/// Inputs are no longer than this, in bytes: every grammar fits, and longer ones only take longer.
const LENGTH_MAX: usize = 4096;

/// So long a law may take with one input, of the processor's time and without optimisation.
const TIME_MAX: Duration = Duration::from_secs(2);

/// So much memory the whole test may have needed in the end, in KiB.
const MEMORY_MAX: u64 = 512 * 1024;

/// Holds a law over what is kept in `corpus/TARGET` and over what is made of it, in bounded time and memory.
///
/// # Panics
/// The law does not hold: with the target and the input, made small.
pub fn hold(target: &str, law: Law, words: &[String]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let kept: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap_or_default()).collect();
    assert!(!kept.is_empty(), "{target} has inputs");
    kept.iter().for_each(|input| try_one(target, law, input));
    for seed in 0..INPUTS {
        try_one(target, law, &mutant(seed, &kept, words));
    }
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut seed = u64::from(std::process::id()) << 32;
    while Instant::now() < until {
        seed += 1;
        try_one(target, law, &mutant(seed, &kept, words));
    }
    let peak = number_after("/proc/self/status", "VmHWM:");
    assert!(peak < MEMORY_MAX, "{target}: {peak} KiB of memory");
}

fn try_one(target: &str, law: Law, input: &[u8]) {
    let before = worked();
    if breaks(law, input) {
        let least = shrunk(law, input);
        panic!(
            "{target}: the law does not hold for b\"{}\"; keep it in xtask/fuzz/corpus/{target}",
            least.escape_ascii()
        );
    }
    let took = worked().saturating_sub(before);
    assert!(took < TIME_MAX, "{target}: {took:?} for b\"{}\"", input.escape_ascii());
}

fn breaks(law: Law, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| law(input))).is_err()
}

/// The input without what is not needed to break the law.
fn shrunk(law: Law, input: &[u8]) -> Vec<u8> {
    // Each try tells its panic: once is enough.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut least = input.to_vec();
    let mut size = least.len().next_power_of_two();
    while size > 0 {
        let mut start = 0;
        while start < least.len() {
            let end = least.len().min(start + size);
            let without = [&least[..start], &least[end..]].concat();
            if breaks(law, &without) {
                least = without;
            } else {
                start = end;
            }
        }
        size /= 2;
    }
    std::panic::set_hook(hook);
    least
}

/// The time that this thread has had a processor.
fn worked() -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = account.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

fn number_after(path: &str, label: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// splitmix64: numbers that are the same for one seed everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where there is none.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % (end.max(1) as u64)).unwrap_or(0)
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// An input that follows from a seed.
fn mutant(seed: u64, kept: &[Vec<u8>], words: &[String]) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut input = dice.one(kept).cloned().unwrap_or_default();
    for _ in 0..=dice.below(6) {
        step(&mut dice, &mut input, kept, words);
    }
    input.truncate(LENGTH_MAX);
    input
}

/// Bytes that mean something in one of the grammars.
const SIGNS: &[u8] = b"\0\t\n\r \"#$%'*+,-./0123456789:;=?@[\\]^_`abiIxX{|}~\x1b\x7f\xc3\xff";

fn step(dice: &mut Dice, input: &mut Vec<u8>, kept: &[Vec<u8>], words: &[String]) {
    let at = dice.below(input.len() + 1);
    let end = (at + 1 + dice.below(12)).min(input.len());
    match dice.below(8) {
        0 if at < input.len() => input[at] ^= 1 << dice.below(8),
        1 => input.insert(at, SIGNS[dice.below(SIGNS.len())]),
        2 if at < end => drop(input.drain(at..end)),
        3 if at < end => {
            let piece = input[at..end].to_vec();
            let count = if dice.below(20) == 0 { 200 } else { 1 };
            let piece = piece.repeat(count);
            input.splice(at..at, piece);
        }
        4 => {
            let other = dice.one(kept).cloned().unwrap_or_default();
            let (from, to) = (dice.below(other.len()), dice.below(other.len()));
            input.splice(at..at, other[from.min(to)..from.max(to)].iter().copied());
        }
        5 => drop(input.splice(at..end.max(at), dice.roll().to_string().into_bytes())),
        _ => {
            let word = dice.one(words).map(|word| word.as_bytes().to_vec());
            input.splice(at..at, word.unwrap_or_default());
        }
    }
}
