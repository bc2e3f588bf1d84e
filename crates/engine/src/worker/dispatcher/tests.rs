//! Queueing claims, taking them, and recalling them.

use super::bell::Notice;
use crate::worker::dispatcher::*;
use domain::job::limits::Limits;
use domain::settings::Traces;
use domain::values::name::QueueName;
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
        trace: None,
        stdin: None,
        timeout: None,
        limits: Limits::default(),
        runs_alone: false,
    }
}

fn dispatcher(served: ServedJobs) -> Dispatcher {
    Dispatcher::new(Rules { kill_grace: Duration::ZERO, log_max_bytes: 0, traces: Traces::Off }, served)
        .expect("a dispatcher")
}

fn ids(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.lease.job.as_str()).collect()
}

#[test]
fn a_softer_interrupt_does_not_replace_a_pending_stronger_one() {
    let bell = SlotBell::new().expect("a bell");
    let cancel = Interrupt::Cancel(Signal::TERM);
    bell.ring(cancel);
    bell.ring(Interrupt::Lost);
    bell.ring(Interrupt::Release);
    assert_eq!(bell.take().interrupt, Some(Interrupt::Lost));
    bell.ring(cancel);
    assert_eq!(bell.take().interrupt, Some(cancel), "a taken notice is gone");
    bell.ring(cancel);
    bell.ring(Interrupt::Cancel(Signal::KILL));
    assert_eq!(
        bell.take().interrupt,
        Some(Interrupt::Cancel(Signal::KILL)),
        "the latest cancellation names the signal"
    );
    assert_eq!(bell.take(), Notice::default());
}

#[test]
fn a_slot_is_notified_of_a_reader_before_and_after_its_job_is_claimed() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, bell) = dispatcher.add_slot().expect("a slot");
    let numbered = |id, number| Claim { number, ..claim(id) };
    dispatcher.note_readers(&[3]);
    dispatcher.dispatch(vec![numbered("unread", 1), numbered("read", 2), numbered("early", 3)], 0);
    dispatcher.note_readers(&[2]);
    let mut notices = Vec::new();
    for _ in 0..3 {
        dispatcher.take(slot).expect("a claim");
        notices.push(bell.take().is_watched);
    }
    assert_eq!(notices, [false, true, true]);
    dispatcher.note_readers(&[3]);
    assert_eq!(bell.take(), Notice { is_watched: true, ..Notice::default() }, "the job is running");
    dispatcher.note_readers(&[3]);
    dispatcher.dispatch(vec![numbered("next", 4)], 0);
    dispatcher.take(slot).expect("a claim");
    assert_eq!(bell.take(), Notice::default(), "the notice was for another job");
}

fn finished(id: &str) -> FinishedAttempt {
    let settlement = Some(store::Settlement::never_started(claim(id).lease));
    FinishedAttempt { began: Instant::now(), settlement, record: None, obstacle: None }
}

#[test]
fn a_claim_that_must_run_alone_waits_for_all_others_and_blocks_new_ones() {
    let dispatcher = dispatcher(ServedJobs::All);
    let slots: Vec<usize> = (0..3).map(|_| dispatcher.add_slot().expect("a slot").0).collect();
    let suspect = Claim { runs_alone: true, ..claim_of(9, "suspect") };
    dispatcher.dispatch(vec![suspect, claim("a"), claim("b")], 0);
    assert!(dispatcher.load().is_reserved, "the worker claims nothing more");
    let next =
        |dispatcher: &Dispatcher| dispatcher.lock().next().map(|queued| queued.claim.lease.job.to_string());
    let take = |slot: usize| dispatcher.take(slot).expect("a claim").0.lease.job.to_string();
    assert_eq!([take(slots[0]), take(slots[1])], ["a", "b"]);
    assert_eq!(next(&dispatcher), None);
    dispatcher.submit(slots[0], finished("a"));
    dispatcher.submit(slots[1], finished("b"));
    assert_eq!(
        next(&dispatcher),
        None,
        "the ended attempts are not recorded yet, so a crash would lose them too"
    );
    dispatcher.note_recorded(2);
    assert_eq!(take(slots[0]), "suspect");
    dispatcher.dispatch(vec![claim("c")], 0);
    assert_eq!((next(&dispatcher), dispatcher.load().is_reserved), (None, true));
    dispatcher.submit(slots[0], finished("suspect"));
    assert_eq!((take(slots[1]).as_str(), dispatcher.load().is_reserved), ("c", false));
}

#[test]
fn a_claim_that_must_run_alone_starts_anyway_when_the_others_do_not_end() {
    let dispatcher = dispatcher(ServedJobs::All);
    let slots: Vec<usize> = (0..3).map(|_| dispatcher.add_slot().expect("a slot").0).collect();
    let suspect = Claim { runs_alone: true, ..claim_of(9, "suspect") };
    dispatcher.dispatch(vec![claim("long"), suspect], 0);
    dispatcher.take(slots[0]).expect("the long one");
    let left = dispatcher.lock().alone_wait_left().expect("it waits");
    assert!(left <= MAX_ALONE_WAIT && dispatcher.lock().next().is_none());
    if let Some(queued) = dispatcher.lock().claims.front_mut() {
        queued.since -= MAX_ALONE_WAIT;
    }
    let (taken, _) = dispatcher.take(slots[1]).expect("the suspect");
    assert_eq!((taken.lease.job.as_str(), taken.runs_alone), ("suspect", false));
    dispatcher.dispatch(vec![claim("next")], 0);
    assert_eq!(
        dispatcher.take(slots[2]).expect("the next").0.lease.job.as_str(),
        "next",
        "nothing is reserved"
    );
}

#[test]
fn a_slot_that_was_given_up_neither_reserves_nor_frees_the_worker() {
    let dispatcher = dispatcher(ServedJobs::All);
    let slots: Vec<usize> = (0..3).map(|_| dispatcher.add_slot().expect("a slot").0).collect();
    let alone = |id: &str| Claim { runs_alone: true, ..claim(id) };
    dispatcher.dispatch(vec![alone("stuck")], 0);
    dispatcher.take(slots[0]).expect("the first");
    dispatcher.give_up(slots[0], Vec::new());
    dispatcher.dispatch(vec![alone("second")], 0);
    dispatcher.take(slots[1]).expect("the second");
    dispatcher.submit(slots[0], finished("stuck"));
    assert!(dispatcher.load().is_reserved, "the second must still run alone");
}

#[test]
fn a_claim_that_an_idle_slot_is_about_to_take_is_not_recalled_as_prefetched() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, _bell) = dispatcher.add_slot().expect("a slot");
    dispatcher.dispatch(vec![claim("first"), claim("second"), claim("third")], 0);
    let later = Instant::now() + Duration::from_secs(1);
    assert!(dispatcher.oldest_prefetched().is_some_and(|since| since < later));
    assert_eq!(ids(&dispatcher.recall_prefetched(later)), ["second", "third"]);
    assert_eq!(dispatcher.oldest_prefetched(), None, "no recall is due");
    dispatcher.take(slot).expect("the first");
    dispatcher.dispatch(vec![claim("fourth")], 0);
    assert_eq!(ids(&dispatcher.recall_prefetched(later)), ["fourth"], "the slot is busy");
    dispatcher.dispatch(vec![claim("fifth")], 0);
    assert_eq!(ids(&dispatcher.recall()), ["fifth"]);
}

#[test]
fn a_slot_gets_each_pause_once_also_if_its_claim_was_still_queued() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, bell) = dispatcher.add_slot().expect("a slot");
    dispatcher.dispatch(["runs", "waits"].map(claim).to_vec(), 0);
    dispatcher.take(slot).expect("the first");
    let leases = ["runs", "waits"].map(|id| claim(id).lease);
    dispatcher.set_paused(&[]);
    assert_eq!(bell.take(), Notice::default());
    for expected in [Some(true), None] {
        dispatcher.set_paused(&leases);
        assert_eq!(bell.take().pause, expected);
    }
    dispatcher.set_paused(&leases[1..]);
    assert_eq!(bell.take().pause, Some(false));
    dispatcher.take(slot).expect("the second");
    assert_eq!(bell.take().pause, Some(true), "it was paused before a slot took it");
    dispatcher.set_paused(&[]);
    assert_eq!(bell.take().pause, Some(false));
}

#[test]
fn an_interrupted_claim_cannot_be_taken_any_more() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, bell) = dispatcher.add_slot().expect("a slot");
    dispatcher.dispatch(["runs", "long", "other", "waits"].map(claim).to_vec(), 0);
    dispatcher.take(slot).expect("the first");
    let leases = ["waits", "long", "runs", "gone"].map(|id| claim(id).lease);
    let cancel = Interrupt::Cancel(Signal::TERM);
    let interrupted = dispatcher.interrupt(|lease| leases.contains(lease).then_some(cancel));
    assert_eq!(ids(&interrupted), ["long", "waits"]);
    assert_eq!(bell.take().interrupt, Some(cancel));
    assert_eq!(ids(&dispatcher.recall()), ["other"]);
}

#[test]
fn a_later_claim_is_queued_by_order_and_not_by_arrival() {
    let name = |name: &str| name.parse::<QueueName>().expect("a name");
    let in_queue = |queue: &str, claim: Claim| Claim { queue: name(queue), ..claim };
    let due = |millis, claim: Claim| Claim { due_at: Timestamp::from_millis(millis), ..claim };
    for (order, expected) in [
        (ServedJobs::All, ["urgent", "early", "first", "second", "late"]),
        (ServedJobs::InOrder(vec![name("a"), name("b")]), ["first", "late", "urgent", "early", "second"]),
    ] {
        let dispatcher = dispatcher(order);
        let (slot, _bell) = dispatcher.add_slot().expect("a slot");
        dispatcher
            .dispatch(vec![in_queue("a", due(5, claim("first"))), in_queue("b", due(6, claim("second")))], 0);
        dispatcher.dispatch(
            vec![
                in_queue("b", due(9, claim_of(1, "urgent"))),
                in_queue("a", due(7, claim_of(-1, "late"))),
                in_queue("b", due(4, claim("early"))),
            ],
            0,
        );
        let taken = expected.map(|_| dispatcher.take(slot).expect("a claim").0);
        assert_eq!(ids(&taken), expected);
    }
}

#[test]
fn claims_of_limited_queues_are_counted_while_they_wait_and_while_they_run() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, _bell) = dispatcher.add_slot().expect("a slot");
    let limited = |id| Claim { is_limited: true, ..claim(id) };
    dispatcher.dispatch(vec![limited("first"), claim("plain"), limited("second")], 0);
    assert_eq!(dispatcher.load(), Load { running: 0, waiting: 3, limited: 2, is_reserved: false });
    dispatcher.take(slot).expect("the first");
    assert_eq!(dispatcher.load(), Load { running: 1, waiting: 2, limited: 2, is_reserved: false });
    dispatcher.recall();
    assert_eq!(dispatcher.load(), Load { running: 1, waiting: 0, limited: 1, is_reserved: false });
}

#[test]
fn a_claim_that_others_overtook_is_still_recalled_by_its_age() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, _bell) = dispatcher.add_slot().expect("a slot");
    dispatcher.dispatch(vec![claim("first"), claim("second")], 0);
    dispatcher.take(slot).expect("the first");
    let between = Instant::now();
    dispatcher.dispatch(vec![claim_of(1, "urgent")], 0);
    assert!(dispatcher.oldest_prefetched().is_some_and(|since| since <= between));
    assert_eq!(ids(&dispatcher.recall_prefetched(between)), ["urgent", "second"]);
}

#[test]
fn a_claim_is_recalled_together_with_all_claims_after_it() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, _bell) = dispatcher.add_slot().expect("a slot");
    dispatcher.dispatch(vec![claim("first"), claim("second")], 0);
    dispatcher.take(slot).expect("the first");
    let between = Instant::now();
    dispatcher.dispatch(vec![claim("third")], 0);
    assert_eq!(
        ids(&dispatcher.recall_prefetched(between)),
        ["second", "third"],
        "otherwise the third would overtake it"
    );
}

#[test]
fn no_more_attempts_run_than_allowed_although_there_are_more_slots() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (first, _bell) = dispatcher.add_slot().expect("a slot");
    let (second, _other_bell) = dispatcher.add_slot().expect("a slot");
    dispatcher.set_max_running(1);
    dispatcher.dispatch(vec![claim("first"), claim("second")], 0);
    dispatcher.take(first).expect("the first");
    assert!(dispatcher.oldest_prefetched().is_some(), "the second waits for the busy slot");
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| dispatcher.take(second).expect("the second").0.lease.job);
        dispatcher.set_max_running(2);
        assert_eq!(taken.join().expect("the slot takes it").as_str(), "second");
    });
}

#[test]
fn a_job_that_still_runs_is_not_started_again() {
    let dispatcher = dispatcher(ServedJobs::All);
    let (slot, bell) = dispatcher.add_slot().expect("a slot");
    let numbered = |id: &str, number, attempt| {
        let claim = claim(id);
        Claim { lease: LeaseRef { attempt, ..claim.lease }, number, ..claim }
    };
    dispatcher.dispatch(vec![numbered("a", 1, 2), numbered("b", 2, 1)], 0);
    dispatcher.take(slot).expect("a claim");
    let again = vec![numbered("a", 1, 2), numbered("b", 2, 1), numbered("c", 3, 1)];
    assert_eq!(ids(&dispatcher.without_running(again)), ["c"]);
    assert_eq!(bell.take().interrupt, None, "the same attempt continues");
    for other in [numbered("a", 7, 1), numbered("d", 1, 1)] {
        assert_eq!(ids(&dispatcher.without_running(vec![other])), [""; 0]);
        assert_eq!(
            bell.take().interrupt,
            Some(Interrupt::Lost),
            "another attempt, or another job with its file"
        );
    }
}
