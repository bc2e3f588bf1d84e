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

#[test]
fn git_ignores_a_home_that_init_or_first_use_created() {
    let home = Home::new();
    home.call_without_home(["init", "-q"]).run().ok();
    home.run(["enqueue", "-q", "--", "true"]).ok();
    for made in [home.folder().join(".queuectl"), home.path()] {
        let ignore = std::fs::read_to_string(made.join(".gitignore")).expect("a file");
        assert!(ignore.lines().any(|line| line == "*"), "{ignore}");
        assert_eq!(mode(&made.join(".gitignore")), 0o600);
    }
}

#[test]
fn an_older_home_gets_its_ignore_file_from_init_and_workers_and_a_file_of_the_user_stays() {
    let home = Home::new();
    let init = || home.call_without_home(["init", "-q"]).run().ok();
    let work = || home.call_without_home(["worker", "run", "-q", "--until-empty"]).run().ok();
    let own = home.folder().join(".queuectl/.gitignore");
    init();
    for add in [&init as &dyn Fn() -> _, &work] {
        std::fs::remove_file(&own).expect("a file");
        add();
        assert!(own.exists());
        std::fs::write(&own, "logs/\n").expect("it is written");
        add();
        assert_eq!(std::fs::read_to_string(&own).expect("a file"), "logs/\n");
    }
}

#[test]
fn an_empty_ignore_file_of_an_interrupted_creation_is_filled() {
    let home = Home::new();
    let init = || home.call_without_home(["init", "-q"]).run().ok();
    init();
    let made = home.folder().join(".queuectl");
    std::fs::write(made.join(".gitignore"), "").expect("emptied");
    init();
    let ignore = std::fs::read_to_string(made.join(".gitignore")).expect("a file");
    assert!(ignore.lines().any(|line| line == "*"), "{ignore}");
    let drafts = std::fs::read_dir(&made).expect("a folder").flatten().map(|entry| entry.file_name());
    let drafts: Vec<_> = drafts.filter(|name| name.to_string_lossy().contains("gitignore.")).collect();
    assert!(drafts.is_empty(), "{drafts:?}");
}

#[test]
fn a_variable_that_keeps_the_new_queue_from_being_used_is_named() {
    let home = Home::new();
    let init = || home.call_without_home(["init", "-q"]);
    let loud = || home.call_without_home(["init"]);
    init().env("QUEUECTL_HOME", "/other").run().ok().says_nothing();
    loud()
        .env("QUEUECTL_HOME", "/other")
        .run()
        .ok()
        .says("while QUEUECTL_HOME is set")
        .says("`unset QUEUECTL_HOME`");
    let ran = loud().env("QUEUECTL_STORE", "postgres://ada:s3cret@db/queue").run().ok();
    assert!(!ran.stderr.contains("s3cret"), "{ran}");
    ran.says("while QUEUECTL_STORE is set");
    loud().env("QUEUECTL_HOME", home.folder().join(".queuectl")).run().ok().says_nothing();
}
