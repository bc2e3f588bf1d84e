//! A line of small bars, one for each value.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The bars of these values, the largest of which has the tallest; a gap for a value that is not known. A value above zero is
/// taller than zero, however small it is.
pub fn sparkline(values: &[Option<u64>]) -> String {
    let most = values.iter().flatten().max().copied().unwrap_or(0);
    let bar = |value: &Option<u64>| match value {
        None => ' ',
        Some(0) => BARS[0],
        Some(value) => {
            let steps = BARS.len() as u128 - 1;
            let height = (u128::from(*value) * steps).div_ceil(u128::from(most));
            BARS[usize::try_from(height).unwrap_or(0).min(BARS.len() - 1)]
        }
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_values_and_gaps_stay_gaps() {
        let known = |values: &[u64]| sparkline(&values.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(known(&[]), "");
        assert_eq!(known(&[0, 0]), "▁▁");
        assert_eq!(known(&[0, 1, 2, 3, 4, 5, 6, 7]), "▁▂▃▄▅▆▇█");
        assert_eq!(known(&[1, u64::MAX, u64::MAX / 2]), "▂█▅");
        assert_eq!(sparkline(&[Some(3), None, Some(0)]), "█ ▁");
    }
}
