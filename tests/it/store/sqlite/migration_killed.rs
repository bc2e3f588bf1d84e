//! FAULTS 35 and 31: a process that brings a database up to date is killed at any moment, or is not alone.

use std::process::Child;
use std::time::Instant;

use store::sqlite::SCHEMA_VERSION;

use super::Home;
use super::migration::{assert_whole, first_database, list_by_newer, version};
use crate::engine::harness::wait_until;

#[test]
fn fault_35_a_migration_may_be_killed_at_any_moment() {
    const ROUNDS: usize = 40;
    let mut random = fastrand::Rng::with_seed(35);
    let home = first_database();
    let began = Instant::now();
    assert!(list_by_newer(&home).output().expect("it runs").status.success());
    let whole_run = began.elapsed();
    let (mut found_old, mut found_new) = (0, 0);
    for _ in 0..ROUNDS {
        let home = first_database();
        let mut child = list_by_newer(&home).spawn().expect("it starts");
        // Not a wait for anything: this is the moment of the crash.
        std::thread::sleep(whole_run.mul_f64(1.2 * random.f64()));
        child.kill().expect("it is ours to kill");
        child.wait().expect("it is gone");
        let is_old = version(&home) == SCHEMA_VERSION;
        *(if is_old { &mut found_old } else { &mut found_new }) += 1;
        assert_whole(&home);
    }
    assert!(found_old > 0, "no run was killed in time: the test proves nothing");
    println!("{found_old} were rolled back or never begun, {found_new} were done");
}

#[test]
fn fault_31_many_migrations_at_once_make_one() {
    const ROUNDS: usize = 5;
    const PROCESSES: usize = 12;
    for round in 0..ROUNDS {
        let home = first_database();
        let children: Vec<Child> =
            (0..PROCESSES).map(|_| list_by_newer(&home).spawn().expect("it starts")).collect();
        for child in children {
            let output = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "round {round}: {}: {said}", output.status);
        }
        assert_whole(&home);
    }
}

/// The program waits for another process that is changing the database.
#[test]
fn fault_31_a_migration_waits_for_another() {
    let home = first_database();
    let connection = home.connect();
    connection.execute_batch("begin immediate").expect("it is free");
    let child = list_by_newer(&home).spawn().expect("it starts");
    wait_until("it has opened the database", || has_open(&child, &home));
    connection.execute_batch("rollback").expect("it is given back");
    drop(connection);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert_whole(&home);
}

fn has_open(child: &Child, home: &Home) -> bool {
    let links = std::fs::read_dir(format!("/proc/{}/fd", child.id())).expect("it lives").flatten();
    links.filter_map(|link| std::fs::read_link(link.path()).ok()).any(|file| file == home.database())
}
