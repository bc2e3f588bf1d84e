//! Stopping workers of one machine, and of all.

use super::Machine;
use crate::store::fixture::schema::Schema;

#[test]
fn workers_are_stopped_here_or_everywhere() {
    let schema = Schema::new();
    let (near, far) = (Machine::new(&schema, "near"), Machine::new(&schema, "far"));
    let (_near_pool, _far_pool) = (near.worker(), far.worker());
    let count = || near.run("worker list --json").ok().json().as_array().expect("a list").len();
    assert_eq!(count(), 2);
    near.run("worker stop").ok().says("1 worker stopped").says("1 worker is still running in another home");
    assert_eq!(count(), 1);
    near.run("worker stop").ok().says("No worker is running in this home");
    near.run("worker stop --everywhere").ok().says("1 worker stopped");
    assert_eq!(count(), 0);
    far.run("worker stop").ok().says("No worker is running");
}
