//! Shell patterns over unit names, glob(7): `*`, `?`, and `[a-z]`.

/// Whether the name fits the pattern. Linear in both: a `*` is only ever tried again from its last place.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if let Some(next) = one(&pattern, p, name[n]) {
            (p, n) = (next, n + 1);
        } else if pattern.get(p) == Some(&'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            (p, n) = (after, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Where the pattern goes on if its part at `p`, which is no star, takes the character.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => class(pattern, p, c),
        '*' => None,
        literal => (*literal == c).then_some(p + 1),
    }
}

/// A class `[abc]`, `[a-z]`, `[!a]`. One without an end is the character itself.
fn class(pattern: &[char], p: usize, c: char) -> Option<usize> {
    let Some(length) = pattern[p + 1..].iter().skip(1).position(|c| *c == ']') else {
        return (c == '[').then_some(p + 1);
    };
    let end = p + 2 + length;
    let mut members = &pattern[p + 1..end];
    let negated = matches!(members.first(), Some('!' | '^')) && members.len() > 1;
    if negated {
        members = &members[1..];
    }
    let mut found = false;
    while let Some((first, rest)) = members.split_first() {
        if let ['-', last, tail @ ..] = rest {
            found |= (*first..=*last).contains(&c);
            members = tail;
        } else {
            found |= *first == c;
            members = rest;
        }
    }
    (found != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, fits) in [
            ("a.service", "a.service", true),
            ("*.service", "a.service", true),
            ("*.service", "a.timer", false),
            ("agent@?.service", "agent@2.service", true),
            ("agent@?.service", "agent@22.service", false),
            ("[a-c]*", "b.target", true),
            ("[!a-c]*", "b.target", false),
            ("[", "[", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "", true),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
