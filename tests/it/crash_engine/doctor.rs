//! Findings of `doctor` about real pools: about a running one, and about one that was killed.

use super::harness::CrashHome;
use super::processes::wait;

/// How often `doctor` examines a busy pool.
const VISITS: usize = 20;

/// The finding of this check, if any.
fn said(ground: &CrashHome, check: &str) -> Option<String> {
    let diagnosis = ground.run(&["doctor", "--json"]).ok().json();
    let findings = diagnosis["findings"].as_array().expect("a list").clone();
    let finding = findings.into_iter().find(|finding| finding["check"] == check)?;
    Some(finding["said"].as_str().expect("text").to_owned())
}

#[test]
fn fault_24_doctor_reports_a_killed_pool_until_another_has_cleaned_up() {
    let ground = CrashHome::new();
    ground.job("a", "first && hang");
    let pool = ground.pool();
    ground.runs("a", 1, &[]);
    assert_eq!(said(&ground, "workers").as_deref(), Some("1 running"));
    assert_eq!(said(&ground, "dead_worker"), None);

    ground.kill_pool(pool);
    wait("no worker is alive", || ground.workers().is_empty());
    let dead = said(&ground, "dead_worker").expect("it is reported");
    assert!(dead.ends_with("died; 1 job waits to be recovered"), "{dead}");

    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(said(&ground, "dead_worker"), None);
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn doctor_does_not_disturb_a_busy_pool() {
    let ground = CrashHome::new();
    ground.jobs(VISITS, |_| "until_there go-$QUEUECTL_JOB_ID");
    ground.pool_of(&["--count", "2"]);
    let ids = ground.ids();
    // The oldest first: each visit happens while a job ends and the next one is claimed.
    for id in ids.iter().rev() {
        assert!(!ground.unfinished().is_empty(), "the pool is at work");
        ground.put(&format!("go-{id}"));
        assert_eq!(said(&ground, "database").map(|said| said.starts_with("intact")), Some(true));
    }
    assert_eq!(ids.len(), VISITS);
    ground.finish();
    // A prefetched job that waited for a slot may have been released.
    let is_undisturbed = |story: &str| story.replace(" released", "") == "completed: success";
    assert!(ids.iter().all(|id| is_undisturbed(&ground.story(id))));
}
