//! Findings of `doctor` about real pools: about a running one, and about one that was killed.

use super::harness::CrashHome;
use super::processes::wait;

/// How often `doctor` examines a busy pool.
const VISITS: usize = 20;

/// The finding of this check, if any.
fn said(crash_home: &CrashHome, check: &str) -> Option<String> {
    let diagnosis = crash_home.run(&["doctor", "--json"]).ok().json();
    let findings = diagnosis["findings"].as_array().expect("a list").clone();
    let finding = findings.into_iter().find(|finding| finding["check"] == check)?;
    Some(finding["said"].as_str().expect("text").to_owned())
}

#[test]
fn fault_24_doctor_reports_a_killed_pool_until_another_has_cleaned_up() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "first && hang");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &[]);
    assert_eq!(said(&crash_home, "workers").as_deref(), Some("1 running"));
    assert_eq!(said(&crash_home, "dead_worker"), None);

    crash_home.kill_pool(pool);
    wait("no worker is alive", || crash_home.workers().is_empty());
    let dead = said(&crash_home, "dead_worker").expect("it is reported");
    assert!(dead.ends_with("died; 1 job waits to be recovered"), "{dead}");

    crash_home.recovers("a", || _ = crash_home.pool());
    crash_home.finish();
    assert_eq!(said(&crash_home, "dead_worker"), None);
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn doctor_does_not_disturb_a_busy_pool() {
    let crash_home = CrashHome::new();
    crash_home.jobs(VISITS, |_| "until_there go-$QUEUECTL_JOB_ID");
    crash_home.pool_of(&["--count", "2"]);
    let ids = crash_home.ids();
    // The oldest first: each visit happens while a job ends and the next one is claimed.
    for id in ids.iter().rev() {
        assert!(!crash_home.unfinished().is_empty(), "the pool is at work");
        crash_home.put(&format!("go-{id}"));
        assert_eq!(said(&crash_home, "database").map(|said| said.starts_with("intact")), Some(true));
    }
    assert_eq!(ids.len(), VISITS);
    crash_home.finish();
    // A prefetched job that waited for a slot may have been released.
    let is_undisturbed = |story: &str| story.replace(" released", "") == "completed: success";
    assert!(ids.iter().all(|id| is_undisturbed(&crash_home.story(id))));
}
