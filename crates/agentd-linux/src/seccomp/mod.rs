//! Filters of system calls: rules in, a program for the kernel out. seccomp(2), bpf(4).
//!
//! # Invariants
//!
//! - A program knows the native calls alone. A call by another convention of the same processor (32-bit, x32) has
//!   other numbers, which no rule could name, so it ends the process where the program denies anything.
//! - The first rule that fits decides.

mod numbers;
mod search;

pub use numbers::number;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is made.
    Allow,
    /// It is made, and the kernel's audit log tells of it, `type=1326`.
    Log,
    /// It fails with this errno.
    Errno(u16),
    /// The process ends with SIGSYS.
    Kill,
}

/// What an argument must be: `argument & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Which argument, from 0.
    pub argument: u8,
    /// The bits that count.
    pub mask: u64,
    /// What they are.
    pub value: u64,
}

impl Condition {
    /// The argument, of which an int's worth counts, is this number.
    #[must_use]
    pub const fn is(argument: u8, value: u32) -> Self {
        Self { argument, mask: u32::MAX as u64, value: value as u64 }
    }

    /// The argument has all of these bits.
    #[must_use]
    pub const fn has(argument: u8, bits: u64) -> Self {
        Self { argument, mask: bits, value: bits }
    }
}

/// One call, under conditions that must all hold, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The call's number, [`number`].
    pub call: i64,
    /// On its arguments.
    pub when: Vec<Condition>,
    /// What becomes of it.
    pub action: Action,
}

/// A compiled filter.
#[derive(Clone)]
pub struct Program(Vec<libc::sock_filter>);

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} instructions)", self.0.len())
    }
}

/// The longest program that the kernel takes, `BPF_MAXINSNS`.
const MAX_INSTRUCTIONS: usize = 4096;

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64` of linux/audit.h.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };

/// Calls of x32 have this bit, `__X32_SYSCALL_BIT`.
const X32_BIT: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

impl Program {
    /// Compiles rules; a call that none of them fits gets `default`. None: the program would be too long.
    #[must_use]
    pub fn compile(default: Action, rules: &[Rule]) -> Option<Self> {
        Self::with_foreign(Action::Kill, default, rules)
    }

    /// The same for rules that deny nothing: a call by another convention is made like all that none of them fits.
    #[must_use]
    pub fn compile_open(default: Action, rules: &[Rule]) -> Option<Self> {
        Self::with_foreign(default, default, rules)
    }

    fn with_foreign(foreign: Action, default: Action, rules: &[Rule]) -> Option<Self> {
        let mut code = vec![load(ARCHITECTURE_AT), jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0), give(foreign)];
        code.push(load(NUMBER_AT));
        if cfg!(target_arch = "x86_64") {
            code.extend([jump(libc::BPF_JGE, X32_BIT, 0, 1), give(foreign)]);
        }
        for same in rules.chunk_by(|a, b| a.when.is_empty() && b.when.is_empty()) {
            match same {
                [rule] if !rule.when.is_empty() => code.extend(compile_rule(rule)),
                unconditional => code.extend(search::compile(unconditional)),
            }
        }
        code.push(give(default));
        (code.len() <= MAX_INSTRUCTIONS).then_some(Self(code))
    }

    /// The instructions as the kernel takes them.
    pub(crate) fn instructions(&self) -> &[libc::sock_filter] {
        &self.0
    }
}

/// One rule with conditions, entered and left with the call's number in the accumulator.
fn compile_rule(rule: &Rule) -> Vec<libc::sock_filter> {
    let number = u32::try_from(rule.call).unwrap_or(u32::MAX);
    let checks: Vec<[libc::sock_filter; 2]> = rule.when.iter().flat_map(halves).collect();
    // Each check is three instructions: load, mask, compare; a comparison that fails goes behind the verdict.
    let length = checks.len() * 3;
    let mut code = Vec::with_capacity(length + 3);
    // Over the checks, the verdict and the load that restores the number.
    code.push(jump(libc::BPF_JEQ, number, 0, short(length + 2)));
    for (index, [load, mask]) in checks.iter().enumerate() {
        let wanted = rule.when.iter().flat_map(values).nth(index).unwrap_or(0);
        let left = length - (index + 1) * 3;
        code.extend([*load, *mask, jump(libc::BPF_JEQ, wanted, 0, short(left + 1))]);
    }
    code.extend([give(rule.action), load(NUMBER_AT)]);
    code
}

/// The loads and masks of the halves of an argument that count; the lower half stands first on all that agentd knows.
fn halves(condition: &Condition) -> impl Iterator<Item = [libc::sock_filter; 2]> + use<> {
    let at = ARGUMENTS_AT + 8 * u32::from(condition.argument);
    let mask = condition.mask;
    [(at, mask as u32), (at + 4, (mask >> 32) as u32)]
        .into_iter()
        .filter(|(_, mask)| *mask != 0)
        .map(|(at, mask)| [load(at), statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask)])
}

/// What the halves that count must be.
fn values(condition: &Condition) -> impl Iterator<Item = u32> + use<> {
    let Condition { mask, value, .. } = *condition;
    [(mask as u32, value as u32), ((mask >> 32) as u32, (value >> 32) as u32)]
        .into_iter()
        .filter(|(mask, _)| *mask != 0)
        .map(|(_, value)| value)
}

/// A distance that a comparison can jump. Rules have a handful of conditions, so it always fits.
fn short(distance: usize) -> u8 {
    u8::try_from(distance).unwrap_or(u8::MAX)
}

fn load(offset: u32) -> libc::sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn give(action: Action) -> libc::sock_filter {
    let value = match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Log => libc::SECCOMP_RET_LOG,
        Action::Errno(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
        Action::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    };
    statement(libc::BPF_RET | libc::BPF_K, value)
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Compares the accumulator and goes on `yes` or `no` instructions behind the next.
fn jump(comparison: u32, k: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | comparison | libc::BPF_K) as u16, jt: yes, jf: no, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program on one call, as the kernel would.
    fn run(program: &Program, architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend([0; 8]);
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let step = program.0[at];
            at += 1;
            let (class, k) = (u32::from(step.code), step.k);
            if class == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
                let offset = k as usize;
                accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
            } else if class == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K {
                accumulator &= k;
            } else if class == libc::BPF_RET | libc::BPF_K {
                return k;
            } else if class == libc::BPF_JMP | libc::BPF_JA {
                at += k as usize;
            } else {
                let yes = match class & 0xF0 {
                    libc::BPF_JEQ => accumulator == k,
                    libc::BPF_JGT => accumulator > k,
                    libc::BPF_JGE => accumulator >= k,
                    other => panic!("the comparison {other:#x} is not used"),
                };
                at += usize::from(if yes { step.jt } else { step.jf });
            }
        }
    }

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = [
            Rule { call: 10, when: vec![Condition::is(1, 5)], action: Action::Allow },
            Rule {
                call: 10,
                when: vec![Condition::has(0, 0x1_0000_0002), Condition::has(2, 4)],
                action: Action::Errno(1),
            },
            Rule { call: 10, when: vec![], action: Action::Kill },
            Rule { call: 11, when: vec![], action: Action::Errno(1) },
        ];
        let program = Program::compile(Action::Allow, &rules).unwrap();
        let high = 0xFFFF_FFFF_0000_0000;
        for (number, arguments, verdict) in [
            (10, [0, 5, 0], ALLOW),
            (10, [0, high | 5, 0], ALLOW),
            (10, [0x1_0000_0003, 0, 6], EPERM),
            (10, [0x0_0000_0003, 0, 6], KILL),
            (10, [0x1_0000_0003, 0, 2], KILL),
            (11, [0, 0, 0], EPERM),
            (12, [0, 0, 0], ALLOW),
        ] {
            let [a, b, c] = arguments;
            assert_eq!(
                run(&program, ARCHITECTURE, number, [a, b, c, 0, 0, 0]),
                verdict,
                "{number} {arguments:x?}"
            );
        }
    }

    #[test]
    fn what_denies_nothing_kills_no_foreign_call() {
        let rules = [Rule { call: 10, when: vec![], action: Action::Log }];
        let program = Program::compile_open(Action::Allow, &rules).unwrap();
        let verdict = |architecture, number| run(&program, architecture, number, [0; 6]);
        assert_eq!([verdict(ARCHITECTURE, 10), verdict(ARCHITECTURE, 11)], [libc::SECCOMP_RET_LOG, ALLOW]);
        assert_eq!(verdict(ARCHITECTURE ^ 1, 10), ALLOW);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(verdict(ARCHITECTURE, X32_BIT | 10), ALLOW);
        }
        let denying = Program::compile(Action::Allow, &rules).unwrap();
        assert_eq!(run(&denying, ARCHITECTURE ^ 1, 11, [0; 6]), KILL);
    }

    /// By looking through the rules, one by one.
    fn looked_up(rules: &[Rule], number: u32) -> u32 {
        let found = rules.iter().find(|rule| rule.call == i64::from(number) && rule.when.is_empty());
        give(found.map_or(Action::Errno(38), |rule| rule.action)).k
    }

    #[test]
    fn a_search_finds_what_the_first_rule_says() {
        let actions = [Action::Allow, Action::Allow, Action::Allow, Action::Errno(1), Action::Kill];
        let mut seed = 1_u64;
        let mut dice = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for count in [0, 1, 2, 3, 4, 5, 8, 40, 300, 900] {
            let mut rules: Vec<Rule> = (0..count)
                .map(|_| Rule { call: dice(500) as i64, when: vec![], action: actions[dice(5) as usize] })
                .collect();
            if count == 300 {
                // Amid them one that is none for the search.
                let when = vec![Condition::is(0, 7)];
                rules.insert(150, Rule { call: 7, when, action: Action::Kill });
            }
            let program = Program::compile(Action::Errno(38), &rules).unwrap();
            for number in 0..510 {
                let found = run(&program, ARCHITECTURE, number, [0; 6]);
                assert_eq!(found, looked_up(&rules, number), "{number} of {count}");
            }
        }
    }

    #[test]
    fn calls_that_follow_each_other_are_one_range() {
        let rules: Vec<Rule> =
            (0..400).map(|call| Rule { call, when: vec![], action: Action::Allow }).collect();
        assert!(Program::compile(Action::Kill, &rules).unwrap().0.len() < 12);
    }

    #[test]
    fn foreign_calls_end_the_process() {
        let program = Program::compile(Action::Allow, &[]).unwrap();
        assert_eq!(run(&program, ARCHITECTURE, 1, [0; 6]), ALLOW);
        assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), KILL, "i386");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(run(&program, ARCHITECTURE, X32_BIT | 1, [0; 6]), KILL, "x32");
        }
    }

    #[test]
    fn calls_have_the_numbers_of_the_kernel() {
        assert_eq!(number("read"), Some(libc::SYS_read));
        assert_eq!(number("clone3"), Some(libc::SYS_clone3));
        assert_eq!(number("nonsense"), None);
    }
}
