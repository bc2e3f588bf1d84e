//! Fault 26: a crash at each fail-point of `enqueue`.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use super::crash::assert_sound;
use crate::cli::harness::Home;

#[test]
fn fault_26_a_commit_is_whole_or_not_at_all() {
    let home = Home::with_jobs(&["first"]);
    let mark = home.folder().join("died");
    for (place, is_stored) in [("enqueue.before_commit", false), ("enqueue.after_commit", true)] {
        let call = || {
            let armed = format!("{place}={}", mark.display());
            home.call(["enqueue", "--if-absent", "--id", place, "--", "true"])
                .env("QUEUECTL_FAILPOINT", armed)
        };
        let mut child = call().spawn();
        assert_eq!(child.wait().expect("it is gone").signal(), Some(Signal::KILL.as_raw()), "{place}");
        let stored = home.jobs().iter().any(|job| job.id.as_str() == place);
        assert_eq!(stored, is_stored, "{place}");
        assert_sound(&home);
        // A fail-point fires once: the same call succeeds now, and there is one job.
        call().run().ok().prints(&format!("{place}\n"));
        assert_eq!(home.jobs().iter().filter(|job| job.id.as_str() == place).count(), 1);
        std::fs::remove_file(&mark).expect("it was made");
    }
}
