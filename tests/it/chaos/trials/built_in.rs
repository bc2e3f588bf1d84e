//! The nemeses that come with `queuectl selftest`.

use queuectl::proof::nemesis::{
    KillBoth, KillEnqueue, KillGuardian, KillWorker, StopBoth, StopWorker, Storm,
};

use super::harness::Trials;

#[test]
fn fault_23_chaos_kill_worker() {
    Trials::of("fault_23_chaos_kill_worker", |_| Box::new(KillWorker)).all_hold();
}

#[test]
fn fault_24_chaos_kill_guardian() {
    Trials::of("fault_24_chaos_kill_guardian", |_| Box::new(KillGuardian)).all_hold();
}

#[test]
fn fault_24_chaos_kill_both() {
    Trials::of("fault_24_chaos_kill_both", |_| Box::new(KillBoth)).all_hold();
}

#[test]
fn fault_27_chaos_kill_enqueue() {
    Trials::of("fault_27_chaos_kill_enqueue", |_| Box::new(KillEnqueue::default())).all_hold();
}

#[test]
fn fault_25_chaos_stop_worker() {
    Trials::of("fault_25_chaos_stop_worker", |_| Box::new(StopWorker)).all_hold();
}

#[test]
fn fault_25_chaos_stop_both() {
    Trials::of("fault_25_chaos_stop_both", |_| Box::new(StopBoth)).all_hold();
}

#[test]
fn fault_34_chaos_storm() {
    Trials::of("fault_34_chaos_storm", |_| Box::new(Storm)).all_hold();
}
