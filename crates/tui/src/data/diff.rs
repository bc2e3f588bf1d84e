//! The difference of two texts, line by line: the longest common part stays, the rest was removed or added.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiffLine {
    Same(String),
    Removed(String),
    Added(String),
}

/// Time and memory grow with the product of the lengths, which the caller bounds.
pub(crate) fn diff(before: &[String], after: &[String]) -> Vec<DiffLine> {
    let width = after.len() + 1;
    // The length of the longest common part of what follows each pair of lines.
    let mut common = vec![0_u16; (before.len() + 1) * width];
    for (row, old) in before.iter().enumerate().rev() {
        for (column, new) in after.iter().enumerate().rev() {
            let at = row * width + column;
            common[at] = if old == new {
                common[at + width + 1].saturating_add(1)
            } else {
                common[at + width].max(common[at + 1])
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < before.len() || column < after.len() {
        let at = row * width + column;
        let is_last = |index, length| index == length;
        if row < before.len() && column < after.len() && before[row] == after[column] {
            lines.push(DiffLine::Same(after[column].clone()));
            (row, column) = (row + 1, column + 1);
        } else if is_last(column, after.len()) || row < before.len() && common[at + width] >= common[at + 1] {
            lines.push(DiffLine::Removed(before[row].clone()));
            row += 1;
        } else {
            lines.push(DiffLine::Added(after[column].clone()));
            column += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_stays() {
        let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let shown = |before: &str, after: &str| {
            let line = |line: &DiffLine| match line {
                DiffLine::Same(text) => format!(" {text}"),
                DiffLine::Removed(text) => format!("-{text}"),
                DiffLine::Added(text) => format!("+{text}"),
            };
            diff(&lines(before), &lines(after)).iter().map(line).collect::<Vec<_>>().join(",")
        };
        assert_eq!(shown("a b c", "a x c"), " a,-b,+x, c");
        assert_eq!(shown("", "a"), "+a");
        assert_eq!(shown("a", ""), "-a");
        assert_eq!(shown("a b", "a b"), " a, b");
        assert_eq!(shown("a b c d", "b d e"), "-a, b,-c, d,+e");
    }
}
