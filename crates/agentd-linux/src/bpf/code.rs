//! Instructions of the kernel's machine, and how a few of them make a rule. kernel.org "BPF Instruction Set".

/// One instruction, as the kernel takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    /// The target in the lower half, the source in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The frame's end: below it are 512 bytes for the program.
pub(super) const FRAME: u8 = 10;

const fn instruction(code: u8, target: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: target | source << 4, offset, immediate }
}

/// `target = *(u32 *)(address + offset)`
pub(super) const fn load(target: u8, address: u8, offset: i16) -> Instruction {
    instruction(0x61, target, address, offset, 0)
}

/// `target = source`, all 64 bits.
pub(super) const fn copy(target: u8, source: u8) -> Instruction {
    instruction(0xbf, target, source, 0, 0)
}

/// `target = value`
pub(super) const fn set(target: u8, value: i32) -> Instruction {
    instruction(0xb7, target, 0, 0, value)
}

/// `target += value`
pub(super) const fn add(target: u8, value: i32) -> Instruction {
    instruction(0x07, target, 0, 0, value)
}

/// `target &= mask`, 32 bits; the others become 0.
pub(super) const fn and(target: u8, mask: u32) -> Instruction {
    instruction(0x54, target, 0, 0, mask.cast_signed())
}

/// `target >>= bits`, 32 bits.
pub(super) const fn shift(target: u8, bits: i32) -> Instruction {
    instruction(0x74, target, 0, 0, bits)
}

/// Calls a helper, bpf-helpers(7).
pub(super) const fn call(helper: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, helper)
}

/// Ends the program with this verdict.
pub(super) const fn give(verdict: i32) -> [Instruction; 2] {
    [set(0, verdict), instruction(0x95, 0, 0, 0, 0)]
}

/// What a rule is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// It is done.
    Do(Instruction),
    /// The lower half of the register must be this, or the rule does not fit.
    Must(u8, u32),
}

/// A rule: when all of its parts are done, what comes behind them; else on with what comes behind that.
pub(super) fn rule(parts: &[Part], then: &[Instruction]) -> Vec<Instruction> {
    let length = parts.len() + then.len();
    let one = |(index, part): (usize, &Part)| match *part {
        Part::Do(instruction) => instruction,
        // JNE of 32 bits, Linux 5.1. No rule is as long as the farthest jump.
        Part::Must(register, value) => {
            let over = i16::try_from(length - index - 1).unwrap_or(i16::MAX);
            instruction(0x56, register, 0, over, value.cast_signed())
        }
    };
    parts.iter().enumerate().map(one).chain(then.iter().copied()).collect()
}
