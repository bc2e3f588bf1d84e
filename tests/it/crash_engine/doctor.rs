//! What `doctor` says of real pools: of one that lives, and of one that was killed.

use super::harness::Ground;
use super::processes::wait;

/// How often a pool at work is looked at.
const LOOKS: usize = 20;

/// What it says of this check, if anything.
fn said(ground: &Ground, check: &str) -> Option<String> {
    let diagnosis = ground.run(&["doctor", "--json"]).ok().json();
    let findings = diagnosis["findings"].as_array().expect("a list").clone();
    let finding = findings.into_iter().find(|finding| finding["check"] == check)?;
    Some(finding["said"].as_str().expect("text").to_owned())
}

#[test]
fn fault_24_a_pool_that_was_killed_is_told_until_another_has_cleaned_up() {
    let ground = Ground::new();
    ground.job("a", "first && hang");
    let pool = ground.pool();
    ground.runs("a", 1, &[]);
    assert_eq!(said(&ground, "workers").as_deref(), Some("1 runs"));
    assert_eq!(said(&ground, "dead_worker"), None);

    ground.kill_whole(pool);
    wait("no worker lives", || ground.workers().is_empty());
    let dead = said(&ground, "dead_worker").expect("it is told");
    assert!(dead.ends_with("died; 1 job waits to be given back"), "{dead}");

    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(said(&ground, "dead_worker"), None);
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn a_pool_at_work_is_not_disturbed() {
    let ground = Ground::new();
    ground.jobs(LOOKS, |_| "until_there go-$QUEUECTL_JOB_ID");
    ground.pool_of(&["--count", "2"]);
    let ids = ground.ids();
    // The oldest first: each look is taken while a job ends and the next one is claimed.
    for id in ids.iter().rev() {
        assert!(!ground.unfinished().is_empty(), "the pool is at work");
        ground.put(&format!("go-{id}"));
        assert_eq!(said(&ground, "database").map(|said| said.starts_with("whole")), Some(true));
    }
    assert_eq!(ids.len(), LOOKS);
    ground.finish();
    // A job that was claimed ahead and found no slot soon was given back.
    let is_undisturbed = |story: &str| story.replace(" released", "") == "completed: success";
    assert!(ids.iter().all(|id| is_undisturbed(&ground.story(id))));
}
