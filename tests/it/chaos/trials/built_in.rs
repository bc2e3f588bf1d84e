//! The nemeses that come with `queuectl selftest`.

use queuectl::proof::nemesis::{
    KillBoth, KillEnqueue, KillGuardian, KillWorker, StopBoth, StopWorker, Storm,
};

use super::harness::Trials;

#[test]
fn chaos_kill_worker() {
    Trials::of("chaos_kill_worker", |_| Box::new(KillWorker)).all_hold();
}

#[test]
fn chaos_kill_guardian() {
    Trials::of("chaos_kill_guardian", |_| Box::new(KillGuardian)).all_hold();
}

#[test]
fn chaos_kill_both() {
    Trials::of("chaos_kill_both", |_| Box::new(KillBoth)).all_hold();
}

#[test]
fn chaos_kill_enqueue() {
    Trials::of("chaos_kill_enqueue", |_| Box::new(KillEnqueue::default())).all_hold();
}

#[test]
fn chaos_stop_worker() {
    Trials::of("chaos_stop_worker", |_| Box::new(StopWorker)).all_hold();
}

#[test]
fn chaos_stop_both() {
    Trials::of("chaos_stop_both", |_| Box::new(StopBoth)).all_hold();
}

#[test]
fn chaos_storm() {
    Trials::of("chaos_storm", |_| Box::new(Storm)).all_hold();
}
