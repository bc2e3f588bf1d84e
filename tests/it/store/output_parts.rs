//! The output of attempts that a store of several machines keeps in parts.

use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{Cursor, LeaseRef, OutputPart, Prunable, PruneStep, ShippedAttempt};

use super::fixture::new_job::{job, job_id};
use super::fixture::{Fixture, every_store};

every_store!(
    parts_are_read_in_order_from_an_offset,
    a_part_that_is_offered_again_replaces_itself,
    parts_that_are_offered_again_replace_those_with_other_limits,
    parts_behind_a_cut_are_deleted,
    the_output_of_a_removed_job_is_not_kept,
    output_of_another_job_with_the_same_number_is_not_kept,
    parts_expire_with_their_attempt,
);

fn part(at: u64, content: &str) -> OutputPart {
    OutputPart { at, content: content.as_bytes().to_vec() }
}

fn attempt_of(job: &str, number: u64, attempt: u32) -> ShippedAttempt {
    ShippedAttempt { lease: LeaseRef { job: job_id(job), attempt }, number }
}

fn put(fixture: &Fixture, attempt: u32, parts: &[OutputPart]) {
    fixture.store.put_output(&attempt_of("a", 1, attempt), None, parts).expect("put_output");
}

fn read(fixture: &Fixture, attempt: u32, offset: u64, max_bytes: usize) -> Vec<OutputPart> {
    fixture.store.output_after(&job_id("a"), attempt, offset, max_bytes).expect("output_after")
}

fn parts_are_read_in_order_from_an_offset(fixture: &Fixture) {
    fixture.enqueue("a");
    put(fixture, 1, &[part(9, "late"), part(4, "early")]);
    put(fixture, 2, &[part(4, "another attempt")]);
    assert_eq!(read(fixture, 1, 0, 1 << 20), [part(4, "early"), part(9, "late")]);
    assert_eq!(read(fixture, 1, 5, 1 << 20), [part(9, "late")]);
    assert_eq!(read(fixture, 1, 0, 1), [part(4, "early")], "at least one");
    assert_eq!((read(fixture, 1, 10, 1 << 20), read(fixture, 3, 0, 1 << 20)), (vec![], vec![]));
    let unknown = fixture.store.output_after(&job_id("unknown"), 1, 0, 1).expect("output_after");
    assert_eq!(unknown, []);
    let before = |job: &str, offset| {
        let size = fixture.store.output_size_before(&job_id(job), 1, offset).expect("the size");
        (size.parts, size.bytes)
    };
    let sizes = [before("a", 4), before("a", 9), before("a", 99), before("unknown", 99)];
    assert_eq!(sizes, [(0, 0), (1, 5), (2, 9), (0, 0)]);
}

fn a_part_that_is_offered_again_replaces_itself(fixture: &Fixture) {
    fixture.enqueue("a");
    put(fixture, 1, &[part(4, "one")]);
    put(fixture, 1, &[part(4, "one and more")]);
    assert_eq!(read(fixture, 1, 0, 1 << 20), [part(4, "one and more")]);
}

fn parts_that_are_offered_again_replace_those_with_other_limits(fixture: &Fixture) {
    fixture.enqueue("a");
    put(fixture, 1, &[part(4, "one "), part(8, "two "), part(12, "three")]);
    put(fixture, 1, &[part(4, "one two "), part(12, "three four")]);
    assert_eq!(read(fixture, 1, 0, 1 << 20), [part(4, "one two "), part(12, "three four")]);
}

fn parts_behind_a_cut_are_deleted(fixture: &Fixture) {
    fixture.enqueue("a");
    put(fixture, 1, &[part(4, "start"), part(10, "x"), part(20, "y"), part(30, "end")]);
    fixture
        .store
        .put_output(&attempt_of("a", 1, 1), Some(&(10..30)), &[part(10, "cut")])
        .expect("put_output");
    assert_eq!(read(fixture, 1, 0, 1 << 20), [part(4, "start"), part(10, "cut"), part(30, "end")]);
    fixture.store.delete_output_parts(&attempt_of("a", 1, 1)).expect("delete_output_parts");
    assert_eq!(read(fixture, 1, 0, 1 << 20), []);
}

/// After a failover that lost a job, another may have its number.
fn output_of_another_job_with_the_same_number_is_not_kept(fixture: &Fixture) {
    fixture.enqueue("a");
    put(fixture, 1, &[part(4, "its own")]);
    let lost = attempt_of("lost", 1, 1);
    fixture.store.put_output(&lost, Some(&(0..100)), &[part(4, "of another")]).expect("put_output");
    fixture.store.delete_output_parts(&lost).expect("delete_output_parts");
    assert_eq!(read(fixture, 1, 0, 1 << 20), [part(4, "its own")]);
}

fn the_output_of_a_removed_job_is_not_kept(fixture: &Fixture) {
    fixture.enqueue("a");
    put(fixture, 1, &[part(4, "one")]);
    fixture.remove("a");
    assert_eq!(fixture.store.find(&job_id("a")).expect("find"), None);
    put(fixture, 1, &[part(4, "too late")]);
    assert_eq!(read(fixture, 1, 0, 1 << 20), []);
}

fn parts_expire_with_their_attempt(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b")]);
    let leases = fixture.leases(&worker, 2);
    fixture.settle(&worker, &leases[0], Outcome::Success);
    put(fixture, 1, &[part(4, "one")]);
    fixture.store.put_output(&attempt_of("b", 2, 1), None, &[part(4, "it runs")]).expect("put_output");
    let prune = |before| {
        let step = PruneStep {
            what: Prunable::Outputs,
            before,
            after: Cursor::default(),
            limit: 10,
            dry_run: false,
        };
        fixture.store.prune(&step).expect("prune").count
    };
    let ended = fixture.now();
    fixture.pass_secs(100);
    assert_eq!(prune(ended.saturating_sub(Duration::from_secs(1))), 0, "it is too new");
    assert_eq!(prune(ended), 1);
    assert_eq!(read(fixture, 1, 0, 1), []);
    let running = fixture.store.output_after(&job_id("b"), 1, 0, 1).expect("output_after");
    assert_eq!((running.len(), fixture.state("b")), (1, StateName::Processing));
}
