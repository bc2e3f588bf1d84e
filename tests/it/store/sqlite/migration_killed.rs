//! FAULTS 35 and 31: a process that brings a database up to date is killed at any moment, or is not alone.

use std::process::Child;
use std::time::Instant;

use store::sqlite::SCHEMA_VERSION;

use super::Home;
use super::migration::{assert_intact, first_database, list_by_newer, version};
use crate::engine::harness::wait_until;

#[test]
fn fault_35_a_migration_may_be_killed_at_any_time() {
    const ROUNDS: usize = 40;
    let mut random = fastrand::Rng::with_seed(35);
    let home = first_database();
    let began = Instant::now();
    assert!(list_by_newer(&home).output().expect("the program runs").status.success());
    let whole_run = began.elapsed();
    let (mut found_old, mut found_new) = (0, 0);
    for _ in 0..ROUNDS {
        let home = first_database();
        let mut child = list_by_newer(&home).spawn().expect("the program starts");
        // Not for synchronisation: this chooses the time of the crash.
        std::thread::sleep(whole_run.mul_f64(1.2 * random.f64()));
        child.kill().expect("the child is killed");
        child.wait().expect("the child is reaped");
        let is_old = version(&home) == SCHEMA_VERSION;
        *(if is_old { &mut found_old } else { &mut found_new }) += 1;
        assert_intact(&home);
    }
    assert!(found_old > 0, "no run was killed before the migration: the test proves nothing");
    println!("{found_old} migrations were rolled back or not started, {found_new} were completed");
}

#[test]
fn fault_31_concurrent_migrations_migrate_once() {
    const ROUNDS: usize = 5;
    const PROCESSES: usize = 12;
    for round in 0..ROUNDS {
        let home = first_database();
        let children: Vec<Child> =
            (0..PROCESSES).map(|_| list_by_newer(&home).spawn().expect("the program starts")).collect();
        for child in children {
            let output = child.wait_with_output().expect("the program ends");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && stderr.is_empty(),
                "round {round}: {}: {stderr}",
                output.status
            );
        }
        assert_intact(&home);
    }
}

/// The program waits for another process that is changing the database.
#[test]
fn fault_31_a_migration_waits_for_another_writer() {
    let home = first_database();
    let connection = home.connect();
    connection.execute_batch("begin immediate").expect("the write lock is free");
    let child = list_by_newer(&home).spawn().expect("the program starts");
    wait_until("the program opens the database", || has_open(&child, &home));
    connection.execute_batch("rollback").expect("the write lock is released");
    drop(connection);
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{output:?}");
    assert_intact(&home);
}

fn has_open(child: &Child, home: &Home) -> bool {
    let links = std::fs::read_dir(format!("/proc/{}/fd", child.id())).expect("the child is alive").flatten();
    links.filter_map(|link| std::fs::read_link(link.path()).ok()).any(|file| file == home.database())
}
