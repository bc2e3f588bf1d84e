//! What lies on the desk, who takes it, and who gets it back.

use super::bell::Told;
use crate::worker::dispatcher::*;
use domain::job::limits::Limits;
use domain::values::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

fn claim(id: &str) -> Claim {
    claim_of(0, id)
}

fn claim_of(priority: i32, id: &str) -> Claim {
    Claim {
        lease: LeaseRef { job: id.parse().expect("an id"), attempt: 1 },
        number: 1,
        lease_until: Timestamp::EPOCH,
        queue: "default".parse().expect("a name"),
        is_limited: false,
        priority,
        due_at: Timestamp::EPOCH,
        command: "true".to_owned(),
        cwd: None,
        environment: None,
        env: BTreeMap::new(),
        timeout: None,
        limits: Limits::default(),
        runs_alone: false,
    }
}

fn desk(order: Order) -> Desk {
    Desk::new(Rules { kill_grace: Duration::ZERO, log_max_bytes: 0 }, order).expect("a desk")
}

fn ids(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.lease.job.as_str()).collect()
}

#[test]
fn a_softer_order_does_not_replace_one_that_was_not_heard_yet() {
    let bell = SlotBell::new().expect("a bell");
    bell.ring(Interrupt::Cancel);
    bell.ring(Interrupt::Lost);
    bell.ring(Interrupt::Release);
    assert_eq!(bell.take().interrupt, Some(Interrupt::Lost));
    bell.ring(Interrupt::Cancel);
    assert_eq!(bell.take().interrupt, Some(Interrupt::Cancel), "what was heard is over");
    assert_eq!(bell.take(), Told::default());
}

#[test]
fn a_slot_hears_of_the_reader_of_its_job_whenever_that_comes() {
    let desk = desk(Order::Turn);
    let (slot, bell) = desk.add_slot().expect("a slot");
    let numbered = |id, number| Claim { number, ..claim(id) };
    desk.note_readers(&[3]);
    desk.hand_out(vec![numbered("unread", 1), numbered("read", 2), numbered("early", 3)], 0);
    desk.note_readers(&[2]);
    let mut heard = Vec::new();
    for _ in 0..3 {
        desk.take(slot).expect("a claim");
        heard.push(bell.take().is_watched);
    }
    assert_eq!(heard, [false, true, true]);
    desk.note_readers(&[3]);
    assert_eq!(bell.take(), Told { interrupt: None, is_watched: true }, "it runs");
    desk.note_readers(&[3]);
    desk.hand_out(vec![numbered("next", 4)], 0);
    desk.take(slot).expect("a claim");
    assert_eq!(bell.take(), Told::default(), "that was about another job");
}

fn finished(id: &str) -> Finished {
    let settlement = Some(store::Settlement::never_started(claim(id).lease));
    Finished { began: Instant::now(), settlement, record: None, obstacle: None }
}

#[test]
fn a_claim_that_must_be_alone_waits_for_all_others_and_nothing_is_started_beside_it() {
    let desk = desk(Order::Turn);
    let slots: Vec<usize> = (0..3).map(|_| desk.add_slot().expect("a slot").0).collect();
    let suspect = Claim { runs_alone: true, ..claim_of(9, "suspect") };
    desk.hand_out(vec![suspect, claim("a"), claim("b")], 0);
    assert!(desk.load().is_reserved, "nothing more is claimed");
    let next = |desk: &Desk| desk.lock().next().map(|waiting| waiting.claim.lease.job.to_string());
    let take = |slot: usize| desk.take(slot).expect("a claim").0.lease.job.to_string();
    assert_eq!([take(slots[0]), take(slots[1])], ["a", "b"]);
    assert_eq!(next(&desk), None);
    desk.hand_in(slots[0], finished("a"));
    desk.hand_in(slots[1], finished("b"));
    assert_eq!(next(&desk), None, "what has ended is not recorded yet, so it would be lost too");
    desk.note_recorded(2);
    assert_eq!(take(slots[0]), "suspect");
    desk.hand_out(vec![claim("c")], 0);
    assert_eq!((next(&desk), desk.load().is_reserved), (None, true));
    desk.hand_in(slots[0], finished("suspect"));
    assert_eq!((take(slots[1]).as_str(), desk.load().is_reserved), ("c", false));
}

#[test]
fn a_claim_that_must_be_alone_starts_beside_others_that_do_not_end() {
    let desk = desk(Order::Turn);
    let slots: Vec<usize> = (0..3).map(|_| desk.add_slot().expect("a slot").0).collect();
    let suspect = Claim { runs_alone: true, ..claim_of(9, "suspect") };
    desk.hand_out(vec![claim("long"), suspect], 0);
    desk.take(slots[0]).expect("the long one");
    let left = desk.lock().solitude_left().expect("it waits");
    assert!(left <= SOLITUDE_PATIENCE && desk.lock().next().is_none());
    if let Some(waiting) = desk.lock().claims.front_mut() {
        waiting.since -= SOLITUDE_PATIENCE;
    }
    let (taken, _) = desk.take(slots[1]).expect("the suspect");
    assert_eq!((taken.lease.job.as_str(), taken.runs_alone), ("suspect", false));
    desk.hand_out(vec![claim("next")], 0);
    assert_eq!(desk.take(slots[2]).expect("the next").0.lease.job.as_str(), "next", "nothing is reserved");
}

#[test]
fn a_slot_that_was_given_up_reserves_nothing_and_frees_nothing() {
    let desk = desk(Order::Turn);
    let slots: Vec<usize> = (0..3).map(|_| desk.add_slot().expect("a slot").0).collect();
    let alone = |id: &str| Claim { runs_alone: true, ..claim(id) };
    desk.hand_out(vec![alone("stuck")], 0);
    desk.take(slots[0]).expect("the first");
    desk.give_up(slots[0], Vec::new());
    desk.hand_out(vec![alone("second")], 0);
    desk.take(slots[1]).expect("the second");
    desk.hand_in(slots[0], finished("stuck"));
    assert!(desk.load().is_reserved, "the second must still be alone");
}

#[test]
fn what_an_idle_slot_is_about_to_take_is_not_recalled_as_claimed_ahead() {
    let desk = desk(Order::Turn);
    let (slot, _bell) = desk.add_slot().expect("a slot");
    desk.hand_out(vec![claim("first"), claim("second"), claim("third")], 0);
    let later = Instant::now() + Duration::from_secs(1);
    assert!(desk.oldest_ahead().is_some_and(|since| since < later));
    assert_eq!(ids(&desk.recall_ahead(later)), ["second", "third"]);
    assert_eq!(desk.oldest_ahead(), None, "nobody need look again");
    desk.take(slot).expect("the first");
    desk.hand_out(vec![claim("fourth")], 0);
    assert_eq!(ids(&desk.recall_ahead(later)), ["fourth"], "the slot is busy");
    desk.hand_out(vec![claim("fifth")], 0);
    assert_eq!(ids(&desk.recall()), ["fifth"]);
}

#[test]
fn what_is_interrupted_is_out_of_reach_at_once() {
    let desk = desk(Order::Turn);
    let (slot, bell) = desk.add_slot().expect("a slot");
    desk.hand_out(["runs", "long", "other", "waits"].map(claim).to_vec(), 0);
    desk.take(slot).expect("the first");
    let leases = ["waits", "long", "runs", "gone"].map(|id| claim(id).lease);
    assert_eq!(ids(&desk.interrupt(&leases, Interrupt::Cancel)), ["long", "waits"]);
    assert_eq!(bell.take().interrupt, Some(Interrupt::Cancel));
    assert_eq!(ids(&desk.recall()), ["other"]);
}

#[test]
fn what_is_claimed_later_takes_its_turn_before_what_lies_there() {
    let name = |name: &str| name.parse::<QueueName>().expect("a name");
    let in_queue = |queue: &str, claim: Claim| Claim { queue: name(queue), ..claim };
    let due = |millis, claim: Claim| Claim { due_at: Timestamp::from_millis(millis), ..claim };
    for (order, expected) in [
        (Order::Turn, ["urgent", "early", "first", "second", "late"]),
        (Order::Queues(vec![name("a"), name("b")]), ["first", "late", "urgent", "early", "second"]),
    ] {
        let desk = desk(order);
        let (slot, _bell) = desk.add_slot().expect("a slot");
        desk.hand_out(vec![in_queue("a", due(5, claim("first"))), in_queue("b", due(6, claim("second")))], 0);
        desk.hand_out(
            vec![
                in_queue("b", due(9, claim_of(1, "urgent"))),
                in_queue("a", due(7, claim_of(-1, "late"))),
                in_queue("b", due(4, claim("early"))),
            ],
            0,
        );
        let taken = expected.map(|_| desk.take(slot).expect("a claim").0);
        assert_eq!(ids(&taken), expected);
    }
}

#[test]
fn claims_of_limited_queues_are_counted_while_they_wait_and_while_they_run() {
    let desk = desk(Order::Turn);
    let (slot, _bell) = desk.add_slot().expect("a slot");
    let limited = |id| Claim { is_limited: true, ..claim(id) };
    desk.hand_out(vec![limited("first"), claim("plain"), limited("second")], 0);
    assert_eq!(desk.load(), Load { running: 0, waiting: 3, limited: 2, is_reserved: false });
    desk.take(slot).expect("the first");
    assert_eq!(desk.load(), Load { running: 1, waiting: 2, limited: 2, is_reserved: false });
    desk.recall();
    assert_eq!(desk.load(), Load { running: 1, waiting: 0, limited: 1, is_reserved: false });
}

#[test]
fn what_others_overtake_is_not_forgotten() {
    let desk = desk(Order::Turn);
    let (slot, _bell) = desk.add_slot().expect("a slot");
    desk.hand_out(vec![claim("first"), claim("second")], 0);
    desk.take(slot).expect("the first");
    let between = Instant::now();
    desk.hand_out(vec![claim_of(1, "urgent")], 0);
    assert!(desk.oldest_ahead().is_some_and(|since| since <= between));
    assert_eq!(ids(&desk.recall_ahead(between)), ["urgent", "second"]);
}

#[test]
fn a_claim_is_not_recalled_without_those_behind_it() {
    let desk = desk(Order::Turn);
    let (slot, _bell) = desk.add_slot().expect("a slot");
    desk.hand_out(vec![claim("first"), claim("second")], 0);
    desk.take(slot).expect("the first");
    let between = Instant::now();
    desk.hand_out(vec![claim("third")], 0);
    assert_eq!(ids(&desk.recall_ahead(between)), ["second", "third"], "or the third would overtake it");
}

#[test]
fn no_more_run_than_may_although_there_are_more_slots() {
    let desk = desk(Order::Turn);
    let (first, _bell) = desk.add_slot().expect("a slot");
    let (second, _other_bell) = desk.add_slot().expect("a slot");
    desk.set_most(1);
    desk.hand_out(vec![claim("first"), claim("second")], 0);
    desk.take(first).expect("the first");
    assert!(desk.oldest_ahead().is_some(), "the second waits for the slot that is taken");
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| desk.take(second).expect("the second").0.lease.job);
        desk.set_most(2);
        assert_eq!(taken.join().expect("it is taken").as_str(), "second");
    });
}
