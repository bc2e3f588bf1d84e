//! Cases 13 and 14: a closed output, and homes and databases that are not usable.

use std::fs;
use std::io::Read;
use std::os::unix::fs::chown;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ops::home::location::DATABASE;
use rusqlite::Connection;
use store::sqlite::{SCHEMA_VERSION, gate_path};

use crate::cli::harness::{Home, PROGRAM, UNPRIVILEGED, allow, is_root};

const SIGPIPE: i32 = 13;

#[test]
fn fault_13_a_reader_that_exits_early_ends_the_command_quietly() {
    let home = Home::new();
    let lines = "{\"command\":\"echo a command that takes some room in the list\"}\n".repeat(3_000);
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    for args in [["list", "--limit", "3000"].as_slice(), &["list", "--limit", "3000", "--json"]] {
        let mut child = home.call(args).spawn();
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut [0]).expect("something is printed");
        drop(stdout);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.signal(), Some(SIGPIPE), "{}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn fault_13_every_verb_ends_quietly_if_its_output_is_closed() {
    let home = Home::with_jobs(&["a", "b"]);
    for args in [
        ["list"].as_slice(),
        &["list", "--json"],
        &["show", "a"],
        &["status"],
        &["status", "--json"],
        &["config", "list"],
        &["dlq", "list"],
        &["worker", "list", "--json"],
        &["completions", "bash"],
        &["--help"],
        &["enqueue", "--id", "c", "--", "true"],
        &["cancel", "a", "--json"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = home.call(args).into_command();
        let output = command.stdout(writer).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
        let is_quiet = !["panicked", "broken pipe", "error"].iter().any(|word| said.contains(word));
        assert!(is_quiet, "{args:?} says {said}");
        let is_end = output.status.signal() == Some(SIGPIPE) || output.status.success();
        assert!(is_end, "{args:?} ends with {}", output.status);
    }
    assert_eq!((home.state_of("a"), home.state_of("c")), ("cancelled".to_owned(), "pending".to_owned()));
}

/// The next file that a program opens gets the number of a closed stream, unless the program opens that first.
#[test]
fn fault_13_output_to_a_closed_stream_does_not_reach_a_file_of_the_queue() {
    let home = Home::with_jobs(&["a"]);
    let gate = || fs::read(gate_path(&home.path().join(DATABASE))).expect("the gate");
    let untouched = gate();
    for (before, closed) in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"].into_iter().enumerate() {
        let script = format!("exec \"$0\" --home \"$1\" enqueue -- true {closed}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, PROGRAM]).arg(home.path()).stdout(Stdio::null()).stderr(Stdio::null());
        assert_eq!(shell.status().expect("a shell").code(), Some(0), "{closed}");
        home.run(["doctor"]).ok().shows("intact");
        assert_eq!(home.count(), before + 2, "{closed}");
        assert_eq!(gate(), untouched, "{closed}");
    }
}

#[test]
fn fault_13_a_full_output_device_is_a_one_line_error() {
    let home = Home::with_jobs(&["a"]);
    let mut command = home.call(["list"]).into_command();
    let full = fs::File::options().write(true).open("/dev/full").expect("the full device");
    let output = command.stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: failed to write the output (") && said.lines().count() == 1, "{said}");
}

/// Asserts that every verb refuses the file with exit code 7 and leaves it unchanged.
#[track_caller]
fn incompatible(home: &Home, file: &Path, message: &str) {
    let before = fs::read(file).expect("it is a file");
    for args in [
        ["list"].as_slice(),
        &["status"],
        &["enqueue", "--", "true"],
        &["show", "a"],
        &["cancel", "a"],
        &["config", "list"],
        &["dlq", "list"],
    ] {
        home.run(args).fails(7).prints("").says(message);
        assert!(fs::read(file).expect("it is still there") == before, "{args:?} modified the file");
    }
}

#[test]
fn fault_14_a_home_that_is_a_file_is_refused() {
    let home = Home::new();
    let file = home.file("home", "precious");
    incompatible(&home, &file, "is a file, but the home must be a directory");
}

#[test]
fn fault_14_a_database_that_is_a_folder_is_refused() {
    let home = Home::new();
    let inside = home.file("home/queue.db/precious", "precious");
    incompatible(&home, &inside, "is not a file");
}

#[test]
fn fault_14_a_database_that_is_text_is_refused() {
    for (text, message) in [
        ("x", "is not a database"),
        ("precious words\n", "is not a database"),
        ("SQLite format 3\0", "is not a database"),
        (&"precious words\n".repeat(1_000), "the store is corrupt"),
    ] {
        let home = Home::new();
        let file = home.file("home/queue.db", text);
        incompatible(&home, &file, message);
    }
}

#[test]
fn fault_14_the_database_of_another_program_is_refused() {
    let home = Home::new();
    fs::create_dir(home.path()).expect("a folder");
    let connection = Connection::open(home.database()).expect("a database");
    connection.execute_batch("create table precious (x); insert into precious values (1)").expect("a table");
    drop(connection);
    incompatible(&home, &home.database(), "is a SQLite database, but not a queuectl queue");
    let queue = Home::with_jobs(&["a"]);
    let connection = Connection::open(queue.database()).expect("a database");
    connection.pragma_update(None, "application_id", 0x5175_6563).expect("the mark of a development version");
    drop(connection);
    incompatible(&queue, &queue.database(), "was made by a development version of queuectl");
}

#[test]
fn fault_14_an_emptied_database_is_refused() {
    let home = Home::with_jobs(&["a"]);
    fs::write(home.database(), "").expect("it is emptied");
    incompatible(&home, &home.database(), "is empty, but it contained a queue before");
    assert_eq!(fs::read(home.database()).expect("it is there"), b"");
}

#[test]
fn fault_14_an_empty_file_becomes_a_new_queue() {
    let home = Home::new();
    home.file("home/queue.db", "");
    home.run(["enqueue", "--id", "a", "--", "true"]).ok().prints("a\n");
}

#[test]
fn fault_14_a_newer_schema_is_refused() {
    let home = Home::with_jobs(&["a"]);
    let newer = SCHEMA_VERSION + 1;
    let connection = Connection::open(home.database()).expect("the database opens");
    connection.pragma_update(None, "user_version", newer).expect("the version is set");
    connection.execute_batch("pragma wal_checkpoint(truncate)").expect("it is in the file");
    drop(connection);
    incompatible(
        &home,
        &home.database(),
        &format!("schema version {newer}, newer than the {SCHEMA_VERSION}"),
    );
    home.run(["list"]).fails(7).says("hint: use the queuectl version that last opened this store");
}

/// A newer program has the queue open and has not checkpointed all of it yet.
#[test]
fn fault_35_an_older_program_leaves_a_newer_queue_untouched() {
    let home = Home::with_jobs(&["a"]);
    let newer = Connection::open(home.database()).expect("the database opens");
    newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("the version is set");
    newer.execute_batch("create table later (x); insert into later values (1)").expect("a newer schema");
    let files =
        || ["queue.db", "queue.db-wal"].map(|name| fs::read(home.path().join(name)).expect("it is there"));
    let before = files();
    assert!(!before[1].is_empty(), "something is not in the database yet");
    for args in [
        ["list"].as_slice(),
        &["enqueue", "--", "true"],
        &["cancel", "a"],
        &["retry", "a"],
        &["remove", "a", "--yes"],
        &["config", "set", "lease", "60s"],
        &["status"],
        &["logs", "a"],
        &["wait", "a"],
        &["run", "--", "true"],
        &["worker", "run"],
        &["worker", "start"],
        &["worker", "list"],
        &["worker", "stop"],
    ] {
        home.run(args).fails(7).prints("").says("newer than");
        assert!(files() == before, "{args:?} modified the queue");
    }
    drop(newer);
}

#[test]
fn fault_14_a_damaged_database_is_refused() {
    let home = Home::with_jobs(&["a"]);
    let connection = Connection::open(home.database()).expect("the database opens");
    connection.execute_batch("pragma wal_checkpoint(truncate)").expect("all is in the file");
    drop(connection);
    let mut bytes = fs::read(home.database()).expect("it is there");
    bytes[100..].fill(0xA5);
    fs::write(home.database(), bytes).expect("it is damaged");
    incompatible(&home, &home.database(), "the store is corrupt");
}

#[test]
fn fault_14_a_read_only_folder_is_unavailable() {
    let home = Home::new();
    allow(home.folder(), 0o755);
    fs::create_dir(home.path()).expect("a folder");
    if is_root() {
        chown(home.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("it is given away");
    }
    allow(&home.path(), 0o555);
    let enqueue = home.call(["enqueue", "--", "true"]).unprivileged().run();
    enqueue.fails(5).prints("").says("Permission denied");
    for verb in ["list", "status"] {
        home.call([verb]).unprivileged().run().fails(3).prints("").says("there is no queue in");
    }
    assert_eq!(home.path().read_dir().expect("a folder").count(), 0, "nothing was made");
    allow(&home.path(), 0o755);
}

#[test]
fn fault_14_a_home_that_cannot_be_created_is_unavailable() {
    let home = Home::new();
    allow(home.folder(), 0o555);
    home.call(["enqueue", "--", "true"]).unprivileged().run().fails(5).says("Permission denied");
    allow(home.folder(), 0o755);
    assert!(!home.path().exists());
}

#[test]
fn fault_14_a_read_only_queue_of_another_user_is_unavailable() {
    if !is_root() {
        return; // Only root can create a queue that belongs to another user.
    }
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o755);
    allow(&home.path(), 0o755);
    for entry in home.path().read_dir().expect("a folder") {
        allow(&entry.expect("an entry").path(), 0o644);
    }
    for args in [["enqueue", "--", "true"].as_slice(), &["cancel", "a"]] {
        home.call(args).unprivileged().run().fails(5).prints("");
    }
    assert_eq!((home.count(), home.state_of("a")), (1, "pending".to_owned()));
}

#[test]
fn fault_14_a_store_in_a_missing_folder_is_unavailable() {
    let home = Home::new();
    home.run(["--store", "nowhere/queue.db", "enqueue", "--", "true"]).fails(5).says("nowhere/queue.db");
    home.run(["--store", "nowhere/queue.db", "list"]).fails(3).says("nowhere/queue.db");
}
