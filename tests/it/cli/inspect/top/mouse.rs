//! The mouse, as a terminal reports it.

use super::{Top, is_chosen};
use crate::cli::harness::Home;

/// A click on this text, where it is first on the screen.
fn click(top: &Top, text: &str) -> String {
    let screen = top.screen();
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).expect("it is shown");
    let column = line.split(text).next().expect("a line").chars().count();
    format!("\u{1b}[<0;{};{}M", column + 1, row + 1)
}

fn jobs() -> Home {
    Home::with_jobs(&["job-a", "job-b", "job-c", "job-d", "job-e", "job-f"])
}

#[test]
fn a_click_chooses_a_tab_a_row_and_the_order() {
    let home = jobs();
    let mut top = Top::start(&home, (100, 30), &[]);
    let tab = click(&top, "2 Jobs");
    top.press(&tab, "all jobs");
    top.wait("job-a");
    let row = click(&top, "job-c");
    top.moves(&row, "job-c");
    let columns = click(&top, "COMMAND");
    top.press(&columns, "oldest");
    top.wait_until(|screen| is_chosen(screen, "job-a"));
    let row = click(&top, "job-b");
    top.moves(&row, "job-b");
    let row = click(&top, "job-b");
    top.press(&row, "enqueued");
    top.quit();
}

#[test]
fn the_wheel_moves_the_cursor() {
    let home = jobs();
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("/like:*\r", "6 jobs");
    top.wait_until(|screen| is_chosen(screen, "job-f"));
    top.moves("\u{1b}[<65;5;9M", "job-c");
    top.moves("\u{1b}[<64;5;9M", "job-f");
    top.quit();
}

#[test]
fn the_terminal_keeps_the_mouse_on_request() {
    let home = jobs();
    let mut top = Top::start(&home, (100, 30), &["--no-mouse"]);
    assert!(!top.terminal.screen().contains("\u{1b}[?1000h"));
    top.press("m", "mouse on");
    top.terminal.wait_until(|output| output.contains("\u{1b}[?1000h"));
    top.press("m", "mouse off");
    top.terminal.wait_until(|output| output.contains("\u{1b}[?1000l"));
    top.quit();
}
