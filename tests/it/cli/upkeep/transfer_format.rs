//! The format of `queuectl export`, compared with a file that an earlier version wrote: every kind of line, and jobs with
//! every option.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::cli::harness::Home;
use crate::store::fixture::Fixture;

const EXPORTED: &str = include_str!("exported.jsonl");

/// An export without the event that records the import.
fn export(home: &Home) -> String {
    let exported = home.run(["export"]).ok().stdout;
    exported.split_inclusive('\n').filter(|line| !line.contains("\"event\":\"import\"")).collect()
}

#[test]
fn a_file_of_an_earlier_version_is_imported_and_exported_byte_for_byte() {
    let (first, second) = (Home::new(), Home::new());
    first.call(["import", "-"]).with_stdin(EXPORTED).run().ok().prints("19\n");
    let exported = export(&first);
    assert!(exported == EXPORTED, "{exported}");
    second.file("all.jsonl", exported);
    second.run(["import", "-q", "all.jsonl"]).ok();
    assert!(export(&second) == EXPORTED, "imported twice");
    for home in [first, second] {
        Fixture::sqlite_in(&home.path()).recount();
        home.run(["logs", "long"]).ok().shows("\n4000\n");
        home.run(["logs", "done"]).ok().prints("secret\n");
    }
}

fn only_log(home: &Home) -> PathBuf {
    let mut logs = fs::read_dir(home.path().join("logs")).expect("a folder");
    logs.next().expect("a log file").expect("an entry").path()
}

#[test]
fn the_hole_in_a_log_file_takes_no_space_in_an_export() {
    const LENGTH: u64 = 1 << 30;
    let (first, second) = (Home::new(), Home::new());
    first.call(["import", "-q", "-"]).with_stdin(EXPORTED).run().ok();
    let log = File::options().write(true).open(only_log(&first)).expect("a log file");
    log.write_all_at(b"end", LENGTH - 3).expect("it grows");
    let exported = export(&first);
    assert!(exported.len() < 1 << 20, "{} bytes", exported.len());
    second.call(["import", "-q", "-"]).with_stdin(exported.as_str()).run().ok();
    let copy = File::open(only_log(&second)).expect("a log file");
    let mut end = [0; 4];
    copy.read_exact_at(&mut end, LENGTH - 4).expect("it is as long");
    assert_eq!((copy.metadata().expect("a file").len(), &end), (LENGTH, b"\0end"));
    assert!(export(&second) == exported);
}

#[test]
fn an_import_that_cannot_write_the_logs_says_that_the_jobs_are_stored() {
    let home = Home::with_jobs(&["before"]);
    fs::write(home.path().join("logs"), "").expect("a file in the way");
    let ran = home.call(["import", "-"]).with_stdin(EXPORTED).run().fails(1);
    ran.says("the jobs were imported, but not all of their log files").says("logs/").says("Not a directory");
    assert_eq!(home.count(), 1 + 19);
}
