//! FAULTS 35 and 31: whoever brings a database up to date is killed at any moment, or is not alone.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use domain::job::life::StateName;
use store::sqlite::SCHEMA_VERSION;

use super::migration::{first_database, schema};
use super::{Home, value};
use crate::cli::harness::PROGRAM;
use crate::engine::harness::wait_until;

/// The program, which brings the database up to date before it lists the jobs.
pub(super) fn list(home: &Home) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(home.folder.path()).args(["list", "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The next who comes finds the old schema or the new one, brings it up to date, and nothing is lost.
#[track_caller]
pub(super) fn assert_whole(home: &Home) {
    let version = value(&home.connect(), "pragma user_version");
    assert!(version == "1" || version == SCHEMA_VERSION.to_string(), "there is no version {version}");
    let fixture = home.fixture();
    fixture.recount();
    assert_eq!(
        ["completed", "processing", "pending"].map(|id| fixture.state(id)),
        [StateName::Completed, StateName::Processing, StateName::Pending]
    );
    assert_eq!(fixture.store.settings().expect("settings").len(), 1);
    drop(fixture);
    assert_eq!(value(&home.connect(), "pragma user_version"), SCHEMA_VERSION.to_string());
    assert_eq!(value(&home.connect(), "pragma integrity_check"), "ok");
    assert_eq!(schema(home), schema(&Home::with_queue()));
}

#[test]
fn fault_35_a_migration_may_be_killed_at_any_moment() {
    const ROUNDS: usize = 40;
    let mut random = fastrand::Rng::with_seed(35);
    let began = Instant::now();
    assert!(list(&first_database()).output().expect("it runs").status.success());
    let whole_run = began.elapsed();
    let (mut found_old, mut found_new) = (0, 0);
    for _ in 0..ROUNDS {
        let home = first_database();
        let mut child = list(&home).spawn().expect("it starts");
        // Not to wait for anything: this is the moment of the crash.
        std::thread::sleep(whole_run.mul_f64(1.2 * random.f64()));
        child.kill().expect("it is ours to kill");
        child.wait().expect("it is gone");
        let is_old = value(&home.connect(), "pragma user_version") == "1";
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
        let children: Vec<Child> = (0..PROCESSES).map(|_| list(&home).spawn().expect("it starts")).collect();
        for child in children {
            let output = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "round {round}: {}: {said}", output.status);
        }
        assert_whole(&home);
    }
}

/// A database that somebody is in the middle of changing is waited for.
#[test]
fn fault_31_a_migration_waits_for_another() {
    let home = first_database();
    let connection = home.connect();
    connection.execute_batch("begin immediate").expect("it is free");
    let child = list(&home).spawn().expect("it starts");
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
