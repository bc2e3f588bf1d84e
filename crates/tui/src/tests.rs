//! Keys and messages in, a screen out: the state and the views together, without a terminal and a store.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Modifier};

use crate::actions::ActionResult;
use crate::data::Message;
use crate::data::log::LogText;
use crate::data::snapshot::{JobRows, Rows, Snapshot};
use crate::state::{Effect, Fixed, Focus, State};
use crate::tab::Tab;
use crate::terminal::parse;
use crate::theme::{Colors, Theme};
use crate::views;
use domain::job::{Attempt, WorkerHome};
use domain::metrics::history::Timeline;
use domain::values::timestamp::Timestamp;
use jiff::tz::TimeZone;
use ops::jobs::change::Verb;
use ops::status::{Problem, Status};

fn start(width: u16, height: u16) -> State {
    let fixed = Fixed {
        title: "~/.queuectl".to_owned(),
        is_read_only: false,
        theme: Theme { colors: Colors::Sixteen, is_ascii: false },
        local: TimeZone::UTC,
        complete: |_| Vec::new(),
    };
    State::new(fixed, Size::new(width, height), false, false)
}

/// Presses keys; what the last one asks for.
fn press(state: &mut State, keys: &str) -> Option<Effect> {
    parse(keys.as_bytes()).iter().map(|input| state.input(input)).last().flatten()
}

/// The output of a job that runs.
fn log() -> LogText {
    let attempt = Attempt {
        number: 1,
        worker: "w1".parse().expect("a worker id"),
        host: String::new(),
        home: WorkerHome::default(),
        started_at: Timestamp::EPOCH,
        ending: None,
    };
    LogText {
        job: "a".parse().expect("a job id"),
        handle: "a".to_owned(),
        attempt,
        attempts: 1,
        lines: VecDeque::new(),
        is_over: false,
        diff: None,
        error: None,
    }
}

/// The rows that the state asks for, of a queue without jobs.
fn answer(state: &mut State) {
    answer_with(state, Vec::new());
}

fn answer_with(state: &mut State, problems: Vec<Problem>) {
    let question = state.question();
    let rows = match question.tab {
        Tab::Jobs => Rows::Jobs(JobRows { is_exact: true, ..JobRows::default() }),
        Tab::Dead => Rows::Dead(Vec::new()),
        Tab::Queues => Rows::Queues(Vec::new()),
        Tab::Workers => Rows::Workers(0),
        Tab::Schedules => Rows::Schedules(Vec::new()),
        Tab::Batches => Rows::Batches(Vec::new()),
        Tab::Events => Rows::Events(Vec::new()),
        Tab::Overview => Rows::Overview { queues: Vec::new(), failures: Vec::new(), upcoming: Vec::new() },
    };
    let status = Status { jobs: BTreeMap::new(), queues: Vec::new(), workers: Vec::new(), problems };
    let history = Timeline::new(Duration::from_secs(60), Timestamp::EPOCH);
    let at = Timestamp::EPOCH;
    let snapshot =
        Snapshot { question, at, status, rate: None, running: Vec::new(), history, rows, job: None };
    state.receive(Message::Snapshot(Box::new(snapshot)));
}

fn drawn(state: &State) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, state.size.width, state.size.height));
    views::draw(state, &mut buffer);
    buffer
}

fn screen(state: &State) -> Vec<String> {
    let buffer = drawn(state);
    let width = usize::from(state.size.width);
    let rows = buffer.content.chunks(width);
    rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned())
        .collect()
}

#[track_caller]
fn shows(state: &State, text: &str) {
    assert!(screen(state).join("\n").contains(text), "{text} is missing in {:#?}", screen(state));
}

fn counted(state: &State) -> Message {
    let filter = state.filter.clone();
    Message::Action(ActionResult::Counted {
        verb: Verb::Retry,
        filter,
        count: 7,
        is_exact: true,
        by_state: Vec::new(),
    })
}

#[test]
fn the_end_of_a_long_prompt_is_in_view() {
    let mut state = start(40, 12);
    press(&mut state, ":enqueue --queue mail -- send-mail --to someone@example.org");
    let rows = screen(&state);
    assert_eq!(rows[11], " :… send-mail --to someone@example.org");
    press(&mut state, "\u{1b}/state:dead like:\"a long text\" state:paused\r");
    let rows = screen(&state);
    assert!(rows[10].starts_with(" ! `state:` is given twice"), "{rows:#?}");
    press(&mut state, "\u{15}state:dad\r");
    assert!(screen(&state)[10].ends_with('…'), "{:#?}", screen(&state));
}

#[test]
fn a_line_that_runs_is_named_until_it_ends() {
    let mut state = start(80, 24);
    assert_eq!(press(&mut state, ":run sleep 100\r"), Some(Effect::RunLine("run sleep 100".to_owned())));
    shows(&state, "running run sleep 100; Esc ends it");
    assert_eq!(press(&mut state, ":list\r"), None);
    shows(&state, "another line still runs");
    press(&mut state, "\u{1b}p");
    shows(&state, "running run sleep 100; Esc ends it");
    shows(&state, "this row has no queue");
    assert_eq!(press(&mut state, "\u{1b}"), Some(Effect::EndLine));
    press(&mut state, "/sta");
    let result = ActionResult::Text { title: "queuectl run".to_owned(), lines: vec!["it ran".to_owned()] };
    state.receive(Message::LineEnded(result));
    press(&mut state, "te:dead");
    shows(&state, "/state:dead");
    press(&mut state, "\r");
    shows(&state, "it ran");
}

#[test]
fn a_tab_that_was_chosen_while_frozen_is_read_once() {
    let mut state = start(80, 24);
    answer(&mut state);
    press(&mut state, " 2");
    answer(&mut state);
    shows(&state, "no jobs yet");
    assert!(state.is_frozen);
    press(&mut state, "/queue:mail\r");
    shows(&state, "searching…");
    answer(&mut state);
    shows(&state, "no job matches");
}

#[test]
fn what_comes_while_the_screen_is_frozen_is_shown_afterwards() {
    let mut state = start(80, 24);
    answer(&mut state);
    press(&mut state, " ");
    state.receive(Message::Log(log()));
    let problem = Problem { code: Problem::NO_WORKER, message: "no worker is running".to_owned() };
    answer_with(&mut state, vec![problem.clone()]);
    assert!(state.log_text.is_none());
    assert!(!screen(&state).join("").contains(&problem.message), "{:#?}", screen(&state));
    press(&mut state, " ");
    assert!(state.log_text.is_some());
    shows(&state, &problem.message);
}

#[test]
fn keys_change_nothing_while_the_rows_are_those_of_before() {
    let mut state = start(80, 24);
    press(&mut state, "2");
    answer(&mut state);
    press(&mut state, "/state:dead\r");
    shows(&state, "searching…");
    for key in ["r", "C", "D", "p", "e"] {
        assert_eq!(press(&mut state, key), None);
        shows(&state, "still searching");
    }
    answer(&mut state);
    assert!(matches!(press(&mut state, "R"), Some(Effect::Do(_))));
}

#[test]
fn a_number_that_comes_too_late_asks_nothing() {
    let mut state = start(80, 24);
    press(&mut state, "2");
    answer(&mut state);
    press(&mut state, "R3");
    state.receive(counted(&state));
    assert!(!screen(&state).join("").contains("confirm"), "{:#?}", screen(&state));
    press(&mut state, "2");
    answer(&mut state);
    press(&mut state, "R");
    state.receive(counted(&state));
    shows(&state, "type 7 and Enter");
}

#[test]
fn an_order_with_some_jobs_only_narrows_what_is_changed() {
    let mut state = start(80, 24);
    press(&mut state, "2/queue:mail\r");
    for (title, wanted) in [
        ("queue:mail ", Ok("queue:mail")),
        ("queue:mail ", Ok("queue:mail")),
        ("queue:mail, only ready", Ok("state:ready queue:mail")),
        ("queue:mail, only scheduled", Ok("state:scheduled queue:mail")),
        ("queue:mail, only processing", Ok("state:processing queue:mail")),
        ("queue:mail, only with a failed attempt", Err(())),
    ] {
        answer(&mut state);
        shows(&state, title);
        let filter = state.listed_filter().map(|filter| filter.text().to_owned());
        assert_eq!(filter.as_deref().map_err(|_| ()), wanted);
        press(&mut state, "s");
    }
    press(&mut state, "sss/state:dead\r");
    assert!(state.listed_filter().is_err(), "{:?}", state.order);
}

#[test]
fn tabs_are_chosen_in_a_job_and_in_its_log() {
    for focus in [Focus::Job, Focus::Log] {
        for (keys, tab) in [("3", Tab::Dead), ("\t", Tab::Jobs), ("\u{1b}[Z", Tab::Events)] {
            let mut state = start(80, 24);
            state.focus = focus;
            press(&mut state, keys);
            assert_eq!((state.tab, state.focus), (tab, Focus::List));
        }
    }
}

#[test]
fn a_log_leads_back_to_where_it_was_opened() {
    let mut state = start(80, 24);
    state.focus = Focus::Job;
    press(&mut state, "l");
    assert_eq!(state.focus, Focus::Log);
    press(&mut state, "\u{1b}");
    assert_eq!(state.focus, Focus::Job);
}

#[test]
fn the_keys_can_be_read_at_the_smallest_size() {
    let mut state = start(40, 10);
    press(&mut state, "?");
    shows(&state, "the tabs");
    press(&mut state, "G");
    shows(&state, "edit in $EDITOR");
    press(&mut state, "q");
    answer(&mut state);
    press(&mut state, "3");
    answer(&mut state);
    let rows = screen(&state);
    assert_eq!(rows[2], " 1  2  3 Dead  4  5  6  7  8");
    assert!(rows[1].ends_with("dead 0"), "{rows:#?}");
    for (width, notice) in [(39, "queuectl top needs 40x10"), (12, "needs 40x10")] {
        assert_eq!(screen(&start(width, 10))[0], notice);
    }
}

#[test]
fn a_question_is_bold_and_its_sign_alone_is_yellow() {
    let mut state = start(80, 24);
    press(&mut state, "2");
    answer(&mut state);
    press(&mut state, "R");
    let ask = crate::state::Confirm::simple(
        "pause queue mail?".to_owned(),
        crate::actions::Action::PauseQueue("mail".parse().expect("a name")),
    );
    state.mode = crate::state::Mode::Confirm(ask);
    let buffer = drawn(&state);
    assert_eq!(buffer[(1, 23)].fg, Color::Yellow);
    let sentence = &buffer[(3, 23)];
    assert_eq!((sentence.symbol(), sentence.fg), ("p", Color::Reset));
    assert!(sentence.modifier.contains(Modifier::BOLD));
}
