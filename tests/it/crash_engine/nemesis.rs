//! Workers are killed at random while jobs run: none waits for long, and all end well.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::harness::{Ground, RECOVERY};
use super::processes::{kill, pid, wait};

/// Since when jobs have been seen in the hands of workers that do not live.
#[derive(Default)]
struct Abandoned {
    since: HashMap<String, Instant>,
    longest: Duration,
}

impl Abandoned {
    fn look(&mut self, ground: &Ground) {
        let processing = ground.processing();
        // Read last: a job that was claimed in between must find its worker.
        let live: Vec<String> = ground.workers().iter().map(|worker| worker.id.to_string()).collect();
        let abandoned: Vec<String> = processing
            .into_iter()
            .filter(|(_, worker)| !live.contains(worker))
            .map(|(lease, _)| lease)
            .collect();
        self.since.retain(|lease, _| abandoned.contains(lease));
        for lease in abandoned {
            let since = *self.since.entry(lease).or_insert_with(Instant::now);
            self.longest = self.longest.max(since.elapsed());
        }
    }
}

#[test]
fn no_job_waits_for_long_when_workers_are_killed() {
    const KILLS: u32 = 10;
    let (ground, mut random) = (Ground::new(), fastrand::Rng::with_seed(23));
    ground.jobs(40, |at| if at % 4 == 0 { "escape daemon setsid; sleep 0.7" } else { "sleep 0.05" });
    ground.pool_of(&["--count", "2", "--concurrency", "2"]);
    ground.pool_of(&["--count", "2"]);
    let (mut abandoned, mut killed, mut next) = (Abandoned::default(), 0, Instant::now());
    wait("every job has ended", || {
        abandoned.look(&ground);
        if next <= Instant::now() && killed < KILLS {
            let running: Vec<u32> = ground.workers().iter().map(|worker| worker.pid).collect();
            if let Some(worker) = random.choice(&running) {
                kill(pid(*worker), Signal::KILL);
            }
            killed += 1;
            next = Instant::now() + Duration::from_millis(random.u64(50..300));
        }
        ground.unfinished().is_empty()
    });
    println!("after {killed} kills the longest wait was {:?}", abandoned.longest);
    assert!(killed > KILLS / 2 && abandoned.longest < RECOVERY);
    ground.finish();
    let lost = ground.ids().iter().filter(|id| ground.story(id).contains("lost")).count();
    assert!(lost > 0, "nobody was killed in mid-job: the test proves nothing");
}
