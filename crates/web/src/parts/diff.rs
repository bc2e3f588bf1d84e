//! How two texts differ, line by line: the shortest way from one to the other, by Myers.

use std::fmt::Debug;

/// With more differences, all that differs is replaced as a whole: the way would be long, and of no use to a reader.
const MAX_DIFFERENCES: usize = 1_000;

/// A part of both texts: ranges of lines by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Same(usize, usize),
    Removed(usize),
    Added(usize),
}

/// The steps from `old` to `new`, in order.
pub(crate) fn diff<T: PartialEq + Debug>(old: &[T], new: &[T]) -> Vec<Step> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let same = |at: usize| Step::Same(at, at);
    let end = (old.len() - tail, new.len() - tail);
    let shifted = |step: Step| match step {
        Step::Same(old, new) => Step::Same(old + head, new + head),
        Step::Removed(old) => Step::Removed(old + head),
        Step::Added(new) => Step::Added(new + head),
    };
    let middle = shortest(old_middle, new_middle).unwrap_or_else(|| {
        let removed = (0..old_middle.len()).map(Step::Removed);
        removed.chain((0..new_middle.len()).map(Step::Added)).collect()
    });
    let tail = (0..tail).map(|at| Step::Same(end.0 + at, end.1 + at));
    (0..head).map(same).chain(middle.into_iter().map(shifted)).chain(tail).collect()
}

/// `None` if there are too many differences.
fn shortest<T: PartialEq>(old: &[T], new: &[T]) -> Option<Vec<Step>> {
    let (rows, columns) = (old.len(), new.len());
    let most = (rows + columns).min(MAX_DIFFERENCES);
    // For each diagonal, how far it was followed in `old`; diagonal k is at k + most + 1.
    let mut reach = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for differences in 0..=most {
        trace.push(reach.clone());
        for step in 0..=differences {
            // Diagonals from -differences to +differences by twos, as places in `reach`.
            let at = most + 1 + 2 * step - differences;
            let is_down = step == 0 || (step != differences && reach[at - 1] < reach[at + 1]);
            let mut x = if is_down { reach[at + 1] } else { reach[at - 1] + 1 };
            // y = x - k, and k = at - (most + 1).
            let mut y = (x + most + 1).checked_sub(at)?;
            while x < rows && y < columns && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach[at] = x;
            if x >= rows && y >= columns {
                return Some(path(&trace, most, rows, columns));
            }
        }
    }
    None
}

fn path(trace: &[Vec<usize>], most: usize, mut x: usize, mut y: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (differences, reach) in trace.iter().enumerate().rev() {
        let at = x + most + 1 - y;
        let is_first = at == most + 1 - differences;
        let is_last = at == most + 1 + differences;
        let is_down = is_first || (!is_last && reach[at - 1] < reach[at + 1]);
        let before = if is_down { at + 1 } else { at - 1 };
        let (from_x, from_y) = if differences == 0 { (0, 0) } else { start(reach[before], before, most) };
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            steps.push(Step::Same(x, y));
        }
        if differences > 0 {
            if is_down {
                y -= 1;
                steps.push(Step::Added(y));
            } else {
                x -= 1;
                steps.push(Step::Removed(x));
            }
        }
    }
    steps.reverse();
    steps
}

/// The point on a diagonal.
fn start(x: usize, at: usize, most: usize) -> (usize, usize) {
    (x, (x + most + 1).saturating_sub(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The old and the new text, as the steps have them.
    fn replayed(old: &str, new: &str) -> (String, String, usize) {
        let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
        let (mut before, mut after, mut differences) = (String::new(), String::new(), 0);
        for step in diff(&old, &new) {
            match step {
                Step::Same(left, right) => {
                    assert_eq!(old[left], new[right]);
                    before.push(old[left]);
                    after.push(new[right]);
                }
                Step::Removed(left) => {
                    before.push(old[left]);
                    differences += 1;
                }
                Step::Added(right) => {
                    after.push(new[right]);
                    differences += 1;
                }
            }
        }
        (before, after, differences)
    }

    #[test]
    fn the_steps_lead_from_one_text_to_the_other_and_are_few() {
        for (old, new, differences) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abcabba", "cbabac", 5),
            ("axb", "ayb", 2),
            ("abcdef", "abef", 2),
            ("xaxbxc", "abc", 3),
            ("abc", "xaxbxc", 3),
        ] {
            assert_eq!(replayed(old, new), (old.to_owned(), new.to_owned(), differences), "{old} {new}");
        }
    }

    #[test]
    fn texts_that_have_nothing_in_common_end_soon() {
        let old: String = "a".repeat(5_000) + "x";
        let new: String = "b".repeat(5_000) + "y";
        assert_eq!(replayed(&old, &new).2, 10_002);
    }
}
