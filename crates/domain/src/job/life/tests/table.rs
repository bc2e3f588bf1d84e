//! Every event in every state.

use crate::job::life::tests::*;

/// The state after each event for a job that is not processing. An exclamation mark denotes a refusal.
const AT_REST: &str = "
                     pending     blocked    scheduled  completed  failed      waiting    dead     cancelled
claim                processing  !blocked   !not_due   !state     processing  !not_due   !state   !state
extend               !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_success       !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_failure       !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_signal        !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_timeout       !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_spawn_error   !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_lost          !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_cancelled     !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
settle_released      !stale      !stale     !stale     !stale     !stale      !stale     !stale   !stale
cancel               cancelled   cancelled  cancelled  !state     cancelled   cancelled  !state   !state
pause                !state      !state     !state     !state     !state      !state     !state   !state
resume               !state      !state     !state     !state     !state      !state     !state   !state
replace              cancelled   cancelled  cancelled  !state     cancelled   cancelled  !state   !state
retry                !state      !state     !state     pending    pending     pending    pending  pending
dependency_met       !state      pending    !state     !state     !state      !state     !state   !state
dependency_failed    !state      cancelled  !state     !state     !state      !state     !state   !state
";

/// The same for a job that is processing.
const RUNNING: &str = "
                     processing  last_try    poisoned    cancelling  paused
claim                !state      !state      !state      !state      !state
extend               processing  processing  processing  processing  processing
settle_success       completed   completed   completed   completed   completed
settle_failure       failed      dead        failed      cancelled   failed
settle_signal        failed      dead        failed      cancelled   failed
settle_timeout       failed      dead        failed      cancelled   failed
settle_spawn_error   failed      dead        failed      cancelled   failed
settle_lost          pending     pending     dead        cancelled   pending
settle_cancelled     cancelled   cancelled   cancelled   cancelled   cancelled
settle_released      pending     pending     pending     cancelled   pending
cancel               processing  processing  processing  processing  processing
pause                processing  processing  processing  !cancelling processing
resume               processing  processing  processing  processing  processing
replace              processing  processing  processing  processing  processing
retry                !state      !state      !state      !state      !state
dependency_met       !state      !state      !state      !state      !state
dependency_failed    !state      !state      !state      !state      !state
";

#[test]
fn every_event_in_every_state_at_rest() {
    assert_transitions(AT_REST);
}

#[test]
fn every_event_in_every_processing_state() {
    assert_transitions(RUNNING);
}

#[test]
fn the_tables_contain_every_start_and_the_starts_contain_every_state() {
    let mut columns = header(AT_REST);
    columns.extend(header(RUNNING));
    assert_eq!(columns, STARTS);
    for state in StateName::ALL {
        let mut starts = STARTS.iter().map(|name| start(name).state.name());
        assert!(starts.any(|start| start == state), "no {state:?}");
    }
}

/// Fails with every cell of the table that contradicts [`transition`].
fn assert_transitions(table: &str) {
    let starts = header(table);
    let mut mismatches = Vec::new();
    let mut rows = Vec::new();
    for line in table.trim().lines().skip(1) {
        let mut cells = line.split_whitespace();
        let row = cells.next().expect("a row starts with its event");
        let expected: Vec<&str> = cells.collect();
        assert_eq!(expected.len(), starts.len(), "the width of row {row}");
        let event = event(row);
        for (name, expected) in starts.iter().zip(expected) {
            let found = cell(&start(name), event.clone());
            if found != expected {
                mismatches.push(format!("{name} + {row}: {found}, not {expected}"));
            }
        }
        rows.push(label(&event));
    }
    assert!(mismatches.is_empty(), "{mismatches:#?}");
    assert_eq!(rows, events().iter().map(label).collect::<Vec<_>>());
}

fn header(table: &str) -> Vec<&str> {
    let first = table.trim_start().lines().next();
    first.expect("a header").split_whitespace().collect()
}

/// One cell of a table; also checks the details of a refusal.
fn cell(life: &Life, event: Event) -> String {
    match transition(life, event, &policy(), NOW) {
        Ok(transition) => {
            assert_eq!(transition.from, life.state.name());
            transition.life.state.name().name().to_owned()
        }
        Err(Refusal::Stale { attempt }) => {
            assert_eq!(attempt, 1, "the attempt of the event");
            "!stale".to_owned()
        }
        Err(Refusal::NotDue) => "!not_due".to_owned(),
        Err(Refusal::Blocked) => "!blocked".to_owned(),
        Err(Refusal::Cancelling) => "!cancelling".to_owned(),
        Err(Refusal::WrongState(state)) => {
            assert_eq!(state, life.state.name(), "the current state");
            "!state".to_owned()
        }
    }
}

fn event(name: &str) -> Event {
    let mut events = events().into_iter();
    events.find(|event| label(event) == name).unwrap_or_else(|| panic!("unknown event {name}"))
}
