//! Derived data is compared with the jobs, and rebuilt where it is wrong.

use super::{Diagnosis, tamper};
use crate::cli::harness::Home;

/// A queue with jobs that produce every kind of derived data.
fn a_queue() -> Home {
    let home = Home::with_jobs(&["ready", "other"]);
    home.run(["enqueue", "-q", "--id", "later", "--delay", "1h", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "parent", "--delay", "2h", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "child", "--depends-on", "parent", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "tagged", "--tag", "t", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "keyed", "--unique-key", "k", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "batched", "--batch", "b", "--", "true"]).ok();
    home
}

/// A manipulation of the database, the table that doctor names, and its message.
const DAMAGE: [(&str, &str, &str); 16] = [
    ("update counters set count = count + 3 where state = 'pending'", "counters", "11 are counted"),
    ("delete from counters", "counters", "8 pending jobs, but 0"),
    (
        "insert into counters (queue_id, state, count) values (77, 'dead', 1)",
        "counters",
        "0 dead jobs, but 1",
    ),
    ("update batch_counters set count = 0", "batch_counters", "1 pending jobs, but 0"),
    ("update batches set finished_at = 1", "batch_counters", "the finish time of batch `b`"),
    (
        "delete from ready where seq = 1",
        "ready",
        "job `ready` is runnable, but is not in the ready or waiting table",
    ),
    (
        "delete from waiting where seq = 3",
        "ready",
        "job `later` is runnable, but is not in the ready or waiting table",
    ),
    ("insert into ready values (1, 5, 5, 999)", "ready", "belongs to no job"),
    ("insert into waiting values (5, 999)", "waiting", "belongs to no job"),
    ("delete from dependencies", "dependencies", "job `child` is blocked by 1, but has 0 links"),
    ("update dependencies set blocks = 0", "dependencies", "job `child` is blocked by 1, but has 0 links"),
    ("update jobs set blocked_by = 3 where id = 'child'", "dependencies", "is blocked by 3, but has 1"),
    ("insert into dependencies values (998, 999, 0)", "dependencies", "links a job that does not exist"),
    ("insert into pending_unblocks values (999, 0, 0)", "pending_unblocks", "missing or unfinished"),
    ("delete from job_tags", "job_tags", "missing in the tag index"),
    ("delete from unique_keys", "unique_keys", "job `keyed` does not hold its unique key"),
];

#[test]
fn every_contradiction_is_named_and_repaired() {
    let home = a_queue();
    home.run(["doctor", "--full"]).ok();
    for (damage, table, said) in DAMAGE {
        tamper(&home, damage);
        Diagnosis::of(&home).code(0).finds_no("recount");
        let full = Diagnosis { ran: home.run(["doctor", "--full", "--json"]) };
        full.code(7)
            .finds("recount", "error", &format!("{table}: "))
            .finds("recount", "error", said)
            .advises("`queuectl doctor --repair`");
        home.run(["doctor", "--repair", "--yes", "-q"]).ok();
        let mended = Diagnosis { ran: home.run(["doctor", "--full", "--json"]) };
        mended.code(0).finds("recount", "ok", "agree with the jobs");
    }
    for (id, state) in [("ready", "pending"), ("child", "pending"), ("keyed", "pending")] {
        assert_eq!(home.state_of(id), state, "{id} is as it was");
    }
    home.run(["list", "--state", "blocked", "--format", "ids"]).ok().prints("child\n");
    home.run(["list", "--tag", "t", "--format", "ids"]).ok().prints("tagged\n");
}

#[test]
fn the_repair_unblocks_a_job_that_waits_for_a_finished_one() {
    let home = a_queue();
    // As if the job had ended and the pending unblock of its dependents had been lost.
    tamper(
        &home,
        "update jobs set state = 'completed', finished_at = 1 where id = 'parent';
         delete from waiting where seq = (select seq from jobs where id = 'parent')",
    );
    Diagnosis { ran: home.run(["doctor", "--full", "--json"]) }.code(7).finds(
        "recount",
        "error",
        "pending_unblocks: ",
    );
    home.run(["doctor", "--repair", "--yes"]).ok();
    Diagnosis { ran: home.run(["doctor", "--full", "--json"]) }.code(0);
    home.run(["list", "--state", "blocked", "--format", "ids"]).ok().prints("");
}

#[test]
fn more_than_one_repair_needs_confirmation_and_reports_the_count() {
    let home = a_queue();
    tamper(&home, "delete from job_tags; delete from unique_keys");
    home.run(["doctor", "--repair"]).fails(2).says("repair 2 contradictions").says("--yes");
    home.run(["doctor", "--yes"]).fails(2);
    let said = home.run(["doctor", "--repair", "--yes", "--json"]).ok().json();
    assert_eq!((&said["repaired"], &said["left"]), (&2.into(), &serde_json::json!([])));
    home.run(["doctor", "--repair"]).ok();
}

#[test]
fn two_jobs_that_share_a_key_are_not_repaired() {
    let home = a_queue();
    tamper(&home, "update jobs set unique_key = 'k' where id = 'other'");
    home.run(["doctor", "--repair"]).fails(7).shows("`other`").shows("cancel one of them");
    home.run(["cancel", "-q", "other"]).ok();
    home.run(["doctor", "--full"]).ok();
}

#[test]
fn a_repair_reports_the_remaining_errors() {
    let home = a_queue();
    tamper(&home, "delete from job_tags; insert into settings (key, value) values ('lease', '1s')");
    let repaired = Diagnosis { ran: home.run(["doctor", "--repair", "--yes", "--json"]) };
    let repaired = repaired.code(1).finds("settings", "error", "lease").finds("recount", "ok", "agree");
    assert_eq!(repaired.ran.json()["repaired"], 1);
    tamper(&home, "delete from job_tags");
    home.run(["doctor", "--repair"]).fails(1).shows("1 contradiction repaired").says("settings");
}

/// The result of repairing a job whose count of dependencies is larger than its links.
#[track_caller]
fn repaired(home: &Home, damage: &str) {
    tamper(home, damage);
    Diagnosis { ran: home.run(["doctor", "--full", "--json"]) }.code(7).finds("recount", "error", "");
    home.run(["doctor", "--repair", "--yes"]).ok();
    Diagnosis { ran: home.run(["doctor", "--full", "--json"]) }.code(0);
}

#[test]
fn the_repair_does_not_unblock_a_job_whose_dependency_failed() {
    let death =
        "update jobs set state = 'dead', finished_at = 1, reason = 'retries_exhausted' where id = 'parent';
                 delete from waiting where seq = (select seq from jobs where id = 'parent');
                 update counters set count = count - 1 where state = 'pending';
                 insert into counters (queue_id, state, count)
                        select queue_id, 'dead', 1 from jobs where id = 'parent';";
    for lost in [
        "update dependencies set blocks = 0",
        "delete from dependencies",
        "update jobs set blocked_by = 2 where id = 'child'",
        "update dependencies set blocks = 0; insert into pending_unblocks select seq, 1, 0 from jobs where id = 'parent'",
    ] {
        let home = a_queue();
        repaired(&home, &format!("{death} {lost}"));
        assert_eq!(home.state_of("child"), "cancelled", "{lost}");
    }
}

#[test]
fn the_repair_creates_no_dependency_cycle() {
    let home = a_queue();
    // The child waits for one more job than its links say, and the only job of that name waits for the child.
    repaired(
        &home,
        "delete from dependencies;
         update jobs set depends_on = '[\"child\"]', blocked_by = 1, due_at = due_at where id = 'parent';
         delete from waiting where seq = (select seq from jobs where id = 'parent');
         insert into dependencies select p.seq, c.seq, 1 from jobs p, jobs c where p.id = 'child' and c.id = 'parent'",
    );
    home.run(["list", "--state", "blocked", "--format", "ids"]).ok().prints("parent\n");
}

#[test]
fn a_link_between_jobs_that_do_not_depend_on_each_other_is_deleted() {
    let home = a_queue();
    repaired(
        &home,
        "insert into dependencies select p.seq, c.seq, 1 from jobs p, jobs c where p.id = 'later' and c.id = 'ready'",
    );
    home.run(["list", "--state", "blocked", "--format", "ids"]).ok().prints("child\n");
}
