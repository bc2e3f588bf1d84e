//! How soon an idle worker starts what there is to do. These are bounds for a busy machine, not a benchmark.

use super::harness::{Home, Pool, millis_between};

#[test]
fn an_idle_worker_starts_a_job_at_once() {
    let home = Home::new();
    let _pool = Pool::run(&home, "");
    for round in 0..5 {
        let id = format!("job-{round}");
        home.enqueue(&id, "true");
        let job = home.wait_for(&id, "completed");
        let pause = millis_between(&job["created_at"], &job["started_at"]);
        assert!((0..500).contains(&pause), "{pause} ms");
    }
}

#[test]
fn an_idle_worker_starts_a_job_when_its_time_has_come() {
    let home = Home::new();
    let _pool = Pool::run(&home, "");
    let mut late = Vec::new();
    for round in 0..4 {
        let id = format!("job-{round}");
        home.enqueue_with(&id, "true", "--delay 100ms");
        let job = home.wait_for(&id, "completed");
        assert_eq!(millis_between(&job["created_at"], &job["run_at"]), 100);
        late.push(millis_between(&job["run_at"], &job["started_at"]));
    }
    late.sort_unstable();
    assert!(late[0] >= 0 && late[3] < 700, "{late:?}");
    // They would be that late, all in all, if they were only found by looking once a second.
    assert!(late[1] < 300, "{late:?}");
}

#[test]
fn a_job_that_waits_for_another_starts_when_that_is_done() {
    let home = Home::new();
    let _pool = Pool::run(&home, "");
    home.enqueue("first", "sleep 0.1");
    home.enqueue_with("second", "true", "--depends-on first");
    let second = home.wait_for("second", "completed");
    let late = millis_between(&home.show("first")["finished_at"], &second["started_at"]);
    assert!((0..700).contains(&late), "{late} ms");
}

#[test]
fn jobs_that_one_worker_makes_ready_are_started_by_the_others() {
    let home = Home::new();
    let _pool = Pool::run(&home, "--count 2 --concurrency 1");
    let mut late = Vec::new();
    for round in 0..4 {
        let [first, one, other] = ["first", "one", "other"].map(|name| format!("{name}-{round}"));
        let dependent = format!("--depends-on {first}");
        home.enqueue(&first, "sleep 0.1");
        // Each of them waits for both, so they must run side by side.
        let both =
            format!("touch $QUEUECTL_JOB_ID; until [ -e {one} ] && [ -e {other} ]; do sleep 0.01; done");
        home.enqueue_with(&one, &both, &dependent);
        home.enqueue_with(&other, &both, &dependent);
        let ends = [&one, &other].map(|id| home.wait_for(id, "completed"));
        let finished = &home.show(&first)["finished_at"];
        late.extend(ends.iter().map(|job| millis_between(finished, &job["started_at"])).max());
    }
    late.sort_unstable();
    assert!(late[1] < 300, "{late:?}");
}
