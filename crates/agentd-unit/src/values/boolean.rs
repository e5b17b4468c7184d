//! Booleans as systemd.syntax(7) has them.

use super::Refused;

/// `1 yes y true t on` and `0 no n false f off`, in any case.
///
/// # Errors
/// Every other text, `ja` too: a switch that is not understood must not fall to either side.
pub fn parse(text: &str) -> Result<bool, Refused> {
    let is = |words: [&str; 6]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is(["1", "yes", "y", "true", "t", "on"]) {
        Ok(true)
    } else if is(["0", "no", "n", "false", "f", "off"]) {
        Ok(false)
    } else {
        Err(Refused::of(text, "is neither yes nor no", "write true or false"))
    }
}
