//! Sizes in bytes: `4096`, `512K`, `16 MiB`, `1G`. `K`, `M` and `G` are powers of 1024, whether or not `B`, `i` or `iB`
//! follows.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    #[error("not a valid size: `{0}`; write 4096, 512K, 16M or 1G")]
    Malformed(String),
    #[error("size too large: `{0}`")]
    TooLarge(String),
}

const UNITS: [(&str, u64); 4] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];

pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let split = trimmed.find(|character: char| !character.is_ascii_digit()).unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(split);
    let malformed = || SizeError::Malformed(text.to_owned());
    if digits.is_empty() {
        return Err(malformed());
    }
    let factor = factor_of(unit.trim()).ok_or_else(malformed)?;
    let too_large = || SizeError::TooLarge(text.to_owned());
    let number: u64 = digits.parse().map_err(|_| too_large())?;
    let bytes = number.checked_mul(factor).ok_or_else(too_large)?;
    if i64::try_from(bytes).is_err() {
        return Err(too_large());
    }
    Ok(bytes)
}

fn factor_of(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_uppercase();
    let is_unit = |name: &str| match unit.strip_prefix(name) {
        Some("" | "B") => true,
        Some("I" | "IB") => !name.is_empty(),
        Some(_) | None => false,
    };
    UNITS.into_iter().find(|(name, _)| is_unit(name)).map(|(_, factor)| factor)
}

/// Formats a size so that [`parse_size`] returns the same value.
pub fn format_size(bytes: u64) -> String {
    let (unit, factor) =
        UNITS.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)).unwrap_or(&UNITS[3]);
    if unit.is_empty() { bytes.to_string() } else { format!("{}{unit}", bytes / factor) }
}

/// A size in its largest unit, for people: `7 bytes`, `1.5 KiB`, `984 MiB`.
pub fn rough_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((size, unit)) = UNITS.iter().find(|(size, _)| bytes >= *size) else {
        return format!("{bytes} {}", if bytes == 1 { "byte" } else { "bytes" });
    };
    let tenths = u128::from(bytes) * 10 / u128::from(*size);
    let (whole, tenth) = (tenths / 10, tenths % 10);
    if whole < 10 && tenth > 0 { format!("{whole}.{tenth} {unit}") } else { format!("{whole} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_in_their_usual_spellings() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("512k", 512 << 10),
            ("16M", 16 << 20),
            ("16 MiB", 16 << 20),
            ("16MB", 16 << 20),
            ("16Mi", 16 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn invalid_and_overlarge_sizes_are_refused() {
        for text in ["", "M", "-1", "1.5M", "5 parsecs", "1T", "5i", "5iB", "1MBB", "1MiiB"] {
            assert!(matches!(parse_size(text), Err(SizeError::Malformed(_))), "{text}");
        }
        for text in ["99999999999999999999", "9223372036854775808", "9007199254740992G"] {
            assert!(matches!(parse_size(text), Err(SizeError::TooLarge(_))), "{text}");
        }
    }

    #[test]
    fn rough_sizes_use_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1_024, "1 KiB"),
            (1_536, "1.5 KiB"),
            (10 << 10, "10 KiB"),
            (984 << 20, "984 MiB"),
            ((1 << 30) - 1, "1023 MiB"),
            (3 << 40, "3 TiB"),
            (u64::MAX, "16777215 TiB"),
        ] {
            assert_eq!(rough_size(bytes), text);
        }
    }
}
