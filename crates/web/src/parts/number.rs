//! Numbers as people read them.

/// `1204551` as `1,204,551`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `1 job`, `2 jobs`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// In the unit that suits it: `812 B`, `3.1 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) if count < 10 * size => {
            format!("{}.{} {unit}", count / size, count % size * 10 / size)
        }
        Some((size, unit)) => format!("{} {unit}", count / size),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        for (number, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_204_551, "1,204,551")] {
            assert_eq!(grouped(number), shown);
        }
        assert_eq!((counted(1, "job", "jobs"), counted(0, "job", "jobs")), ("1 job".into(), "0 jobs".into()));
    }

    #[test]
    fn bytes_have_the_unit_that_suits_them() {
        for (count, shown) in
            [(0, "0 B"), (3_204, "3.2 kB"), (11_000_000, "11 MB"), (1_500_000_000, "1.5 GB")]
        {
            assert_eq!(bytes(count), shown);
        }
    }
}
