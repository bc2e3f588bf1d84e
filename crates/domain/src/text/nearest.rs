//! Suggests the known name that is closest to a mistyped one.

/// More letters than this are not mistyped in a word that the program defines.
pub const MAX_TYPO_DISTANCE: usize = 2;

/// The closest of `known` to `typed`, if it is close enough to be a typo.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(typed, known, usize::MAX)
}

/// As [`nearest`], with a bound for the distance.
pub fn nearest_within<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
    bound: usize,
) -> Option<&'a str> {
    let max_distance = |name: &str| max_distance(name).min(bound);
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let length = typed.chars().count();
    known
        .into_iter()
        // The difference in length is a lower bound of the distance. Computing the distance takes time and memory
        // proportional to the length of `typed`.
        .filter(|name| length.abs_diff(name.len()) <= max_distance(name))
        .map(|name| (strsim::damerau_levenshtein(&typed, &name.replace('-', "_")), name))
        .filter(|(distance, name)| *distance <= max_distance(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A question about the closest of `known`, or else all of them: `the columns are id, queue`.
pub fn suggestion(typed: &str, plural: &str, known: &[&str]) -> String {
    match nearest(typed, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the {plural} are {}", known.join(", ")),
    }
}

fn max_distance(name: &str) -> usize {
    (name.len() / 3).clamp(1, 3)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_is_corrected_and_a_distant_name_is_not() {
        let known = ["max_retries", "priority", "dead", "id"];
        assert_eq!(nearest("max_retires", known), Some("max_retries"));
        assert_eq!(nearest("Max-Retries", known), Some("max_retries"));
        assert_eq!(nearest("daed", known), Some("dead"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("prïörity", known), Some("priority"));
    }

    #[test]
    fn a_very_long_name_is_not_compared() {
        // Computing its distance would take half a gigabyte.
        assert_eq!(nearest(&"x".repeat(5_000_000), ["priority", "id"]), None);
    }
}
