//! Workers for some queues: strict preference, and waking the right worker.

use crate::engine::harness::{Home, Pool};

#[test]
fn queues_are_served_strictly_in_the_given_order() {
    let home = Home::new();
    for (id, flags) in [
        ("b-1", "--queue b --priority 9"),
        ("b-2", "--queue b"),
        ("a-1", "--queue a"),
        ("a-2", "--queue a --priority 1"),
        ("c-1", "--queue c --priority 99"),
    ] {
        home.enqueue_with(id, "echo $QUEUECTL_JOB_ID >> order", flags);
    }
    Pool::drain(&home, "--queue a,b");
    assert_eq!(home.read("order").lines().collect::<Vec<_>>(), ["a-2", "a-1", "b-1", "b-2"]);
    assert_eq!(home.state_of("c-1"), "pending");
}

#[test]
fn a_ring_for_one_queue_reaches_its_worker_although_another_hears_it_first() {
    let home = Home::new();
    let _pools = [
        Pool::run_without_polling(&home, "--queue a --count 2"),
        Pool::run_without_polling(&home, "--queue b"),
    ];
    for round in 0..12 {
        let id = format!("job-{round}");
        home.enqueue_with(&id, "true", if round % 4 == 3 { "--queue a" } else { "--queue b" });
        home.wait_for(&id, "completed");
    }
}
