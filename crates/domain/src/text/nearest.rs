//! The known name that a mistyped one was probably meant to be.

/// The closest of `known` to `typed`, if one is close enough to be a slip of the fingers.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let length = typed.chars().count();
    known
        .into_iter()
        // The distance is at least this; to measure it takes time and memory in proportion to what was typed.
        .filter(|name| length.abs_diff(name.len()) <= slips_allowed(name))
        .map(|name| (strsim::damerau_levenshtein(&typed, &name.replace('-', "_")), name))
        .filter(|(distance, name)| *distance <= slips_allowed(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn slips_allowed(name: &str) -> usize {
    (name.len() / 3).clamp(1, 3)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn offers_what_was_meant_and_nothing_far() {
        let known = ["max_retries", "priority", "dead", "id"];
        assert_eq!(nearest("max_retires", known), Some("max_retries"));
        assert_eq!(nearest("Max-Retries", known), Some("max_retries"));
        assert_eq!(nearest("daed", known), Some("dead"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("prïörity", known), Some("priority"));
    }

    #[test]
    fn a_hostile_length_costs_nothing() {
        // Measured letter by letter this takes half a gigabyte.
        assert_eq!(nearest(&"x".repeat(5_000_000), ["priority", "id"]), None);
    }
}
