use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::cli::harness::Home;

#[test]
fn init_creates_a_queue_in_the_folder() {
    let home = Home::new();
    let folder = home.folder().canonicalize().expect("a folder");
    let made = folder.join(".queuectl");
    home.call_without_home(["init"]).run().ok().prints(&format!("{}\n", made.display())).says_nothing();
    assert!(made.join("queue.db").is_file());
    let again = home.call_without_home(["init", "--json"]).run().ok().json();
    assert_eq!(again, json!({"home": made, "existing": true}));
    home.call_without_home(["init", "-q"]).run().ok().prints("");
}

#[test]
fn another_folder_can_be_given() {
    let home = Home::new();
    std::fs::create_dir(home.folder().join("site")).expect("a folder");
    home.call_without_home(["init", "site"]).run().ok();
    assert!(home.folder().join("site/.queuectl/queue.db").is_file());
    assert!(!home.folder().join(".queuectl").exists());
}

#[test]
fn an_existing_queue_stays_unchanged() {
    let home = Home::new();
    home.call_without_home(["init"]).run().ok();
    home.call_without_home(["enqueue", "--id", "a", "--", "true"]).run().ok();
    home.call_without_home(["init"]).run().ok();
    home.call_without_home(["show", "a"]).run().ok();
}

#[test]
fn only_the_owner_can_read_the_new_queue() {
    let home = Home::new();
    home.call_without_home(["init"]).run().ok();
    home.call_without_home(["enqueue", "-q", "--", "true"]).run().ok();
    let made = home.folder().join(".queuectl");
    assert_eq!(mode(&made), 0o700);
    for entry in made.read_dir().expect("the home is a folder") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_failure_to_create_a_queue_is_reported() {
    let home = Home::new();
    home.file("file", "");
    home.call_without_home(["init", "file"]).run().fails(5).says("failed to create");
    home.file("taken/.queuectl", "");
    home.call_without_home(["init", "taken"]).run().fails(7).says("is a file");
}
