//! The list of keys.

use ratatui::layout::Size;

use super::text::{Text, wrap};
use crate::layout::text_box;

/// Keys, and what they do.
type Keys = (&'static str, &'static str);

const MOVING: [Keys; 17] = [
    ("1–8, Tab", "the tabs"),
    ("j k g G ^d ^u", "move"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("/", "filter: state:dead queue:mail like:\"smtp*\"; Tab completes"),
    (":", "any queuectl command line; Tab completes"),
    ("s", "order"),
    ("!", "next problem"),
    ("l", "log"),
    ("w", "why does it not run"),
    ("g", "graph, in a job"),
    ("space", "freeze"),
    ("z", "local time or UTC"),
    ("m", "mouse on or off"),
    ("q", "quit"),
    ("y  Y", "copy the id, the command line"),
    ("in a log", "f follow  / find  n N  o stream  t times  w wrap  [ ] attempt  d diff  | pager"),
];

const CHANGING: [Keys; 6] = [
    ("x  *", "mark a job, all that match"),
    ("r c d", "retry, cancel, remove the job or the marked ones"),
    ("R C D", "the same for all that match; shows how many, and asks for the number"),
    ("p", "pause the queue"),
    ("+ -", "its concurrency"),
    ("e", "edit in $EDITOR"),
];

/// How many columns two keys beside each other need.
const WIDTH_FOR_TWO: u16 = 80;
/// A longer description has a row of its own there.
const MAX_LENGTH_OF_TWO: usize = 21;

pub(super) fn help(size: Size, is_read_only: bool) -> Text {
    let changing: &[Keys] = if is_read_only { &[] } else { &CHANGING };
    let entries: Vec<Keys> = MOVING.iter().chain(changing).copied().collect();
    let mut lines = Vec::new();
    let mut rest = entries.as_slice();
    while let Some(((keys, what), others)) = rest.split_first() {
        let fits = |what: &str| size.width >= WIDTH_FOR_TWO && what.chars().count() <= MAX_LENGTH_OF_TWO;
        let second = others.first().filter(|(_, second)| fits(what) && fits(second));
        if let Some((more_keys, more)) = second {
            lines.push(format!("{keys:<14}{what:<23}{more_keys:<14}{more}"));
        } else {
            let room = usize::from(text_box(size).width).saturating_sub(14);
            let begins = std::iter::once(*keys).chain(std::iter::repeat(""));
            lines.extend(begins.zip(wrap(what, room)).map(|(begin, part)| format!("{begin:<14}{part}")));
        }
        rest = &others[usize::from(second.is_some())..];
    }
    Text { title: "keys".to_owned(), lines, top: 0 }
}
