//! Which addresses the processes of a cgroup may talk to: a program that the kernel asks for each packet.

use std::net::IpAddr;

use super::code::{FRAME, Instruction, Part, add, and, call, copy, give, load, rule, set};

/// Addresses with the same beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// One of them.
    pub address: IpAddr,
    /// How many bits they have in common, from 0 to 32 or 128.
    pub bits: u8,
}

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the processes: who sent it counts.
    In,
    /// From them: whom it is for counts.
    Out,
}

/// `bpf_skb_load_bytes` of bpf-helpers(7).
const LOAD_BYTES: i32 = 26;

/// Where `struct __sk_buff` of linux/bpf.h has the protocol, as it goes over the wire.
const PROTOCOL_AT: i16 = 16;

/// Registers: the packet, its protocol, and one for a while.
const PACKET: u8 = 6;
const PROTOCOL: u8 = 7;
const WHILE: u8 = 1;

/// Where the address is put, below the frame's end.
const PLACE: i16 = -16;

/// A protocol: its number, where its addresses are in a packet, and how long they are.
struct Family {
    /// ETH_P_IP, ETH_P_IPV6 of linux/if_ether.h.
    number: u16,
    source: i32,
    target: i32,
    length: i32,
}

const IPV4: Family = Family { number: 0x0800, source: 12, target: 16, length: 4 };
const IPV6: Family = Family { number: 0x86dd, source: 8, target: 24, length: 16 };

/// The program that lets through what `allow` has, and all that `deny` has not.
#[must_use]
pub fn filter(direction: Direction, allow: &[Range], deny: &[Range]) -> Vec<Instruction> {
    let mut code = vec![copy(PACKET, 1), load(PROTOCOL, 1, PROTOCOL_AT)];
    for family in [&IPV4, &IPV6] {
        let is_own = |range: &&Range| range.address.is_ipv4() == (family.number == IPV4.number);
        let allow = allow.iter().filter(is_own).map(|range| (range, 1));
        let rules: Vec<(&Range, i32)> =
            allow.chain(deny.iter().filter(is_own).map(|range| (range, 0))).collect();
        let number = u32::from(u16::from_ne_bytes(family.number.to_be_bytes()));
        code.extend(rule(&[Part::Must(PROTOCOL, number)], &of_family(family, direction, &rules)));
    }
    code.extend(give(1));
    code
}

fn of_family(family: &Family, direction: Direction, rules: &[(&Range, i32)]) -> Vec<Instruction> {
    let at = match direction {
        Direction::In => family.source,
        Direction::Out => family.target,
    };
    let mut code = vec![copy(1, PACKET), set(2, at), copy(3, FRAME), add(3, PLACE.into())];
    code.extend([set(4, family.length), call(LOAD_BYTES)]);
    // Anything but 0 is a packet that ends before its addresses: none that anybody could use.
    let mut found = Vec::new();
    let mut decided = false;
    for (range, verdict) in rules {
        let parts = parts(range);
        found.extend(rule(&parts, &give(*verdict)));
        // Nothing gets behind all addresses, and the kernel takes no program with parts that are never reached.
        decided = parts.is_empty();
        if decided {
            break;
        }
    }
    if !decided {
        found.extend(give(1));
    }
    code.extend(rule(&[Part::Must(0, 0)], &found));
    code.extend(give(0));
    code
}

/// What must be so of the address for it to be in the range, a word at a time.
fn parts(range: &Range) -> Vec<Part> {
    let octets = match range.address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut parts = Vec::new();
    for (index, word) in octets.chunks(4).enumerate() {
        let left = u32::from(range.bits).saturating_sub(32 * index as u32).min(32);
        let mask = u32::MAX.checked_shl(32 - left).unwrap_or(0);
        if mask != 0 {
            let value = word.iter().fold(0_u32, |all, octet| all << 8 | u32::from(*octet)) & mask;
            // In a register words are as they lie in memory.
            let [mask, value] = [mask, value].map(|word| u32::from_ne_bytes(word.to_be_bytes()));
            let place = PLACE + 4 * index as i16;
            parts.extend([Part::Do(load(WHILE, FRAME, place)), Part::Do(and(WHILE, mask))]);
            parts.push(Part::Must(WHILE, value));
        }
    }
    parts
}
