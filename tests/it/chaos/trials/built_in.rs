//! The nemeses that come with `queuectl selftest`.

use proof::nemesis::{
    KillBoth, KillEnqueue, KillSupervisor, KillWorker, PauseJobs, StopBoth, StopWorker, Storm,
};
use proof::plan::Plan;

use super::harness::Trials;

#[test]
fn fault_23_chaos_kill_worker() {
    Trials::of("fault_23_chaos_kill_worker", |_| Box::new(KillWorker)).assert_all_hold();
}

/// Every third job with a shell kills its worker twice; because `crash_limit` is high, it succeeds in the end.
fn make_jobs_kill_their_workers(plan: &mut Plan) {
    let mut count = 0;
    plan.each_job(|job| {
        count += u32::from(job.in_shell);
        job.kills_worker = if job.in_shell && count % 3 == 0 { 2 } else { 0 };
    });
}

#[test]
fn fault_41_chaos_jobs_kill_their_workers() {
    let test = "fault_41_chaos_jobs_kill_their_workers";
    Trials::of(test, |_| Box::new(KillWorker)).with_plans(make_jobs_kill_their_workers).assert_all_hold();
}

#[test]
fn fault_24_chaos_kill_supervisor() {
    Trials::of("fault_24_chaos_kill_supervisor", |_| Box::new(KillSupervisor)).assert_all_hold();
}

#[test]
fn fault_24_chaos_kill_both() {
    Trials::of("fault_24_chaos_kill_both", |_| Box::new(KillBoth)).assert_all_hold();
}

#[test]
fn fault_27_chaos_kill_enqueue() {
    Trials::of("fault_27_chaos_kill_enqueue", |_| Box::new(KillEnqueue::default())).assert_all_hold();
}

#[test]
fn fault_25_chaos_stop_worker() {
    Trials::of("fault_25_chaos_stop_worker", |_| Box::new(StopWorker)).assert_all_hold();
}

#[test]
fn fault_25_chaos_stop_both() {
    Trials::of("fault_25_chaos_stop_both", |_| Box::new(StopBoth)).assert_all_hold();
}

#[test]
fn fault_34_chaos_storm() {
    Trials::of("fault_34_chaos_storm", |_| Box::new(Storm)).assert_all_hold();
}

#[test]
fn fault_23_chaos_pause_jobs() {
    Trials::of("fault_23_chaos_pause_jobs", |_| Box::new(PauseJobs)).assert_all_hold();
}
