//! Case 14: a queue on a filesystem that is mounted read-only can be read, and nothing else.

use std::fs;
use std::process::Command;

use rusqlite::Connection;

use crate::cli::harness::{Call, Home, PROGRAM};
use crate::folder_snapshot::snapshot;

/// Makes the folder of the home read-only for the program alone.
const MOUNT: &str = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";

/// A queue that the program sees on a read-only filesystem. `None` where mounting is not permitted.
pub(crate) fn read_only(home: &Home, args: &[&str]) -> Option<Call> {
    let script = format!("{MOUNT} && shift && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-m", "/bin/sh", "-c", &script, PROGRAM]).arg(home.path());
    can_mount(home).then(|| home.call(args).through(command))
}

fn can_mount(home: &Home) -> bool {
    let mut command = Command::new("unshare");
    let tried = command.args(["-m", "/bin/sh", "-c", MOUNT, "sh"]).arg(home.path()).output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        eprintln!("WARNING: nothing can be mounted here, so this test checks nothing");
    }
    can
}

/// The files next to the database, as an earlier process may have left them.
#[derive(Clone, Copy, Debug)]
enum Left {
    LogAndIndex,
    Log,
    Nothing,
}

impl Left {
    fn prepare(self, home: &Home) {
        let companion = |suffix: &str| home.path().join(format!("queue.db{suffix}"));
        match self {
            Self::LogAndIndex => {}
            Self::Log => fs::remove_file(companion("-shm")).expect("an index"),
            Self::Nothing => {
                // The last connection to close writes the log back and deletes both files.
                let connection = Connection::open(home.database()).expect("the database opens");
                connection.execute_batch("pragma wal_checkpoint(truncate)").expect("it is complete");
            }
        }
        let log = companion("-wal").metadata().map_or(0, |meta| meta.len());
        assert_eq!(log > 0, !matches!(self, Self::Nothing), "{self:?}: a log of {log} bytes");
    }
}

const WAYS: [Left; 3] = [Left::LogAndIndex, Left::Log, Left::Nothing];

fn queue() -> Home {
    let home = Home::new();
    home.run(["schedule", "add", "-q", "nightly", "--cron", "@daily", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "done", "--", "echo", "hello"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["enqueue", "-q", "--id", "waiting", "--batch", "b", "--", "true"]).ok();
    home
}

#[test]
fn fault_14_a_queue_on_a_read_only_filesystem_can_be_read() {
    for left in WAYS {
        let home = queue();
        left.prepare(&home);
        let before = snapshot(&home.path());
        for (args, shown) in [
            (["list"].as_slice(), "waiting"),
            (&["--color", "never"], "waiting"),
            (&["status"], "! the queue is on a read-only filesystem"),
            (&["show", "done"], "completed"),
            (&["logs", "done"], "hello"),
            (&["explain", "waiting"], "no worker is running"),
            (&["events", "--jobs"], "done"),
            (&["queue", "list"], "default"),
            (&["schedule", "list"], "nightly"),
            (&["upcoming"], "nightly"),
            (&["batch", "list"], "b"),
            (&["config", "list"], "max_retries"),
            (&["graph", "waiting"], "waiting"),
            (&["wait", "done"], ""),
            (&["worker", "list"], ""),
            (&["dlq", "list"], ""),
            (&["hook", "list"], ""),
            (&["export", "-"], "waiting"),
        ] {
            let Some(call) = read_only(&home, args) else {
                return;
            };
            call.run().ok().shows(shown);
            assert_eq!(snapshot(&home.path()), before, "{left:?}: {args:?} changed something");
        }
    }
}

#[test]
fn fault_14_a_read_only_queue_refuses_writes() {
    for left in WAYS {
        let home = queue();
        left.prepare(&home);
        let before = snapshot(&home.path());
        for args in [
            ["enqueue", "--", "true"].as_slice(),
            &["run", "--", "true"],
            &["cancel", "waiting"],
            &["retry", "done"],
            &["remove", "done"],
            &["edit", "waiting", "--priority", "3"],
            &["edit", "waiting", "waiting", "--priority", "3"],
            &["queue", "pause", "default"],
            &["config", "set", "lease", "60s"],
            &["schedule", "pause", "nightly"],
            &["worker", "start"],
            &["worker", "run", "--until-empty"],
            &["prune", "--yes"],
        ] {
            let Some(call) = read_only(&home, args) else {
                return;
            };
            let ran = call.run().fails(5).prints("").says("the store is read-only");
            assert_eq!(ran.stderr.matches("error:").count(), 1, "{left:?}: {}", ran.stderr);
            ran.says("hint: its filesystem may be mounted read-only; `queuectl doctor` shows more");
            assert_eq!(snapshot(&home.path()), before, "{left:?}: {args:?} changed something");
        }
    }
}

/// A disk that was mounted read-only after an error is a common reason to make a backup.
#[test]
fn fault_14_a_read_only_queue_can_be_backed_up() {
    for left in WAYS {
        let home = queue();
        left.prepare(&home);
        let Some(call) = read_only(&home, &["backup", "copy"]) else {
            return;
        };
        call.run().ok().says("hint: failed to record the backup in the event log (the store is read-only)");
        let restored = Home::new();
        let copy = home.folder().join("copy");
        restored.run(["restore".as_ref(), copy.as_os_str()]).ok();
        assert_eq!((restored.count(), restored.state_of("done")), (2, "completed".to_owned()), "{left:?}");
        restored.run(["logs", "done"]).ok().prints("hello\n");
    }
}

#[test]
fn fault_14_doctor_names_a_read_only_filesystem() {
    let home = queue();
    let Some(call) = read_only(&home, &["doctor"]) else {
        return;
    };
    let ran = call.run();
    assert!(ran.status.code() == Some(5), "{ran}");
    ran.shows("mounted read-only").shows("intact");
}

/// Other mounts of the same filesystem may be writable.
#[test]
fn fault_14_a_reader_on_a_read_only_mount_sees_later_writes() {
    let home = queue();
    for id in ["first", "second"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
        let Some(call) = read_only(&home, &["list"]) else {
            return;
        };
        call.run().ok().shows(id);
    }
}
