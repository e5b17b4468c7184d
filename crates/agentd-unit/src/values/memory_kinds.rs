//! The kinds of memory that a core dump may have, core(5) "Controlling which mappings are written to the core dump".

use super::Refused;

/// Each at the kernel's position.
const KINDS: [&str; 9] = [
    "private-anonymous",
    "shared-anonymous",
    "private-file-backed",
    "shared-file-backed",
    "elf-headers",
    "private-huge",
    "shared-huge",
    "private-dax",
    "shared-dax",
];

/// What the kernel does by itself.
const DEFAULT: u32 = 0x33;

/// A kind, `default`, `all`, or bits in hexadecimal, as bits.
///
/// # Errors
/// Any other text.
pub fn parse(text: &str) -> Result<u32, Refused> {
    if let Some(at) = KINDS.iter().position(|kind| *kind == text) {
        return Ok(1 << at);
    }
    let all = (1 << KINDS.len()) - 1;
    let bits = match text {
        "default" => Some(DEFAULT),
        "all" => Some(all),
        text => u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok(),
    };
    bits.ok_or_else(|| {
        let near = crate::diagnostic::nearest(text, KINDS);
        let help = near.map_or("core(5) lists them".to_owned(), |near| format!("did you mean '{near}'?"));
        Refused::of(text, "is no kind of memory", &help)
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn kinds_are_bits_by_name_or_number() {
        for (text, bits) in [
            ("private-anonymous", Some(1)),
            ("shared-dax", Some(0x100)),
            ("default", Some(0x33)),
            ("all", Some(0x1ff)),
            ("0x7f", Some(0x7f)),
            ("7f", Some(0x7f)),
            ("private", None),
            ("", None),
        ] {
            assert_eq!(parse(text).ok(), bits, "{text}");
        }
    }
}
