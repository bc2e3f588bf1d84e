//! Parses whole numbers within bounds.

use std::ops::RangeInclusive;

/// A value parser for numbers in this range, which must fit into the type. clap's own parser names the bounds as code and
/// answers letters with "invalid digit found in string".
pub(crate) fn whole_number<T: TryFrom<i128> + 'static>(
    range: RangeInclusive<i128>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |typed| {
        let number = typed.parse().ok().filter(|number| range.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("must be a whole number{}", bounds(&range)))
    }
}

/// An end that only the machine sets is left out.
fn bounds(range: &RangeInclusive<i128>) -> String {
    let (start, end) = (range.start(), range.end());
    if *end >= u32::MAX.into() { format!(", {start} or more") } else { format!(" from {start} to {end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_the_bounds_or_no_number_is_refused_with_the_bounds() {
        let parse = whole_number::<u32>(1..=10);
        assert_eq!((parse("1"), parse("10")), (Ok(1), Ok(10)));
        for typed in ["0", "11", "-1", "x", "", "1.5", "99999999999999999999999999999999999999999999"] {
            assert_eq!(parse(typed), Err("must be a whole number from 1 to 10".to_owned()), "{typed}");
        }
        let unlimited = whole_number::<usize>(0..=usize::MAX as i128);
        assert_eq!(unlimited("-1"), Err("must be a whole number, 0 or more".to_owned()));
        assert_eq!(whole_number::<i32>(i32::MIN.into()..=i32::MAX.into())("-3"), Ok(-3));
    }
}
