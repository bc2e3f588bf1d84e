//! The keys.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::overlay::draw_box;
use crate::state::State;

const MOVING: [&str; 10] = [
    "1–8, Tab      the tabs                 j k g G ^d ^u  move",
    "Enter         open                     Esc            back",
    "/             filter: state:dead queue:mail like:\"smtp*\"; Tab completes",
    ":             any queuectl command line; Tab completes",
    "s             order                    !              next problem",
    "l             log                      w              why does it not run",
    "y  Y          copy the id, the command line",
    "space         freeze                   z              local time or UTC",
    "m             mouse on or off          q              quit",
    "in a log      f follow  / find  n N  o stream  t times  w wrap  [ ] attempt  d diff  | pager",
];

const CHANGING: [&str; 5] = [
    "x  *          mark a job, all that match",
    "r c d         retry, cancel, remove the job or the marked ones",
    "R C D         the same for all that match; shows how many, and asks for the number",
    "p  + -        pause the queue, change its concurrency",
    "e             edit in $EDITOR          g              graph (in an opened job)",
];

pub(crate) fn draw(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let changing: &[&str] = if state.fixed.is_read_only { &[] } else { &CHANGING };
    let lines: Vec<String> = MOVING.iter().chain(changing).map(|line| (*line).to_owned()).collect();
    draw_box(canvas, area, "keys", &lines);
}
