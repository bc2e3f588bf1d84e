//! The format of `queuectl export`, compared with a file that an earlier version wrote: every kind of line, and jobs with
//! every option.

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
