//! Homes and stores that another user could have planted, could change, or owns: refused before anything is made in them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use super::harness::working_home::wait_until;
use super::harness::{Call, Home, RunResult, UNPRIVILEGED, allow, is_root};
use crate::folder_snapshot::snapshot;

const ENQUEUE: [&str; 4] = ["enqueue", "-q", "--", "true"];
const RUN: [&str; 4] = ["worker", "run", "-q", "--until-empty"];

/// A project folder in which the program runs, next to the user's home.
struct Project {
    home: Home,
}

impl Project {
    fn new() -> Self {
        let project = Self { home: Home::new() };
        fs::create_dir_all(project.folder().join("src")).expect("a folder");
        project
    }

    fn folder(&self) -> PathBuf {
        self.home.folder().join("project")
    }

    fn found(&self) -> PathBuf {
        self.folder().join(".queuectl")
    }

    /// Runs below the project, so that the program looks for a home in parent folders.
    fn call(&self, args: &[&str]) -> Call {
        let call = self.home.call_without_home(args).at(&self.folder().join("src"));
        call.env("HOME", self.home.folder().join("user"))
    }

    fn init(&self) {
        self.call(&["init", "-q", ".."]).run().ok();
    }

    fn count_in_users_home(&self) -> usize {
        let listed = self.call(&["list", "--json"]).at(Path::new("/")).run().ok();
        listed.json().as_array().expect("an array").len()
    }
}

/// Gives a folder and everything in it to another user.
fn give_away(folder: &Path) {
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if path.symlink_metadata().expect("it is there").is_dir() {
            open.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        }
        lchown(&path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("it is given away");
    }
}

/// Runs it and asserts that it was refused and changed nothing.
#[track_caller]
fn refused(home: &Home, call: Call) -> RunResult {
    let before = snapshot(home.folder());
    let ran = call.run().fails(5);
    assert!(snapshot(home.folder()) == before, "something was changed: {ran}");
    ran
}

#[test]
fn fault_39_a_linked_home_in_a_parent_folder_is_not_followed() {
    let project = Project::new();
    let target = project.home.folder().join("target");
    project.home.make_queue(&target);
    symlink(&target, project.found()).expect("a link");
    refused(&project.home, project.call(&ENQUEUE))
        .says(&format!("`{}` is a symlink", project.found().display()))
        .says("hint: ")
        .says("--home");
    refused(&project.home, project.call(&["init", "-q", ".."])).says("is a symlink");
}

#[test]
fn fault_39_a_home_planted_by_another_user_is_ignored_and_named() {
    if !is_root() {
        return; // Only root can make what belongs to another user.
    }
    let project = Project::new();
    let open = project.home.folder().join("open");
    project.home.make_queue(&open);
    allow(&open, 0o777);
    allow(&project.folder(), 0o1777);
    symlink(&open, project.found()).expect("a link");
    lchown(project.found(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("the link is given away");
    let before = snapshot(&open);
    let ran = project.call(&["enqueue", "--", "true"]).run().ok();
    let said = format!("`{}` belongs to ", project.found().display());
    assert!(ran.stderr.contains(&said) && ran.stderr.contains("ignoring it"), "{ran}");
    assert!(snapshot(&open) == before, "the planted home was used");
    assert_eq!(project.count_in_users_home(), 1);
}

#[test]
fn fault_39_a_home_in_a_folder_that_others_can_write_is_refused() {
    let project = Project::new();
    project.init();
    for mode in [0o777, 0o1777, 0o757] {
        allow(&project.folder(), mode);
        refused(&project.home, project.call(&ENQUEUE))
            .says(&format!("`{}` is writable by others", project.folder().display()))
            .says(&format!("`chmod go-w {}`", project.folder().display()));
        fs::rename(project.found(), project.home.folder().join("away")).expect("renamed");
        refused(&project.home, project.call(&["init", "-q", ".."])).says("is writable by others");
        fs::rename(project.home.folder().join("away"), project.found()).expect("renamed");
    }
    allow(&project.folder(), 0o755);
    project.call(&ENQUEUE).run().ok();
}

#[test]
fn fault_39_a_home_or_a_file_of_it_that_others_can_write_is_refused() {
    let home = Home::with_jobs(&["a"]);
    home.run(RUN).ok();
    fs::create_dir_all(home.path().join("logs")).expect("a folder");
    allow(&home.file("home/config.toml", "store = \"queue.db\"\n"), 0o600);
    for (name, args) in [
        ("", ENQUEUE.as_slice()),
        ("queue.db", &ENQUEUE),
        ("queue.db-wal", &ENQUEUE),
        ("queue.db-shm", &ENQUEUE),
        ("queue.db-gate", &ENQUEUE),
        ("config.toml", &ENQUEUE),
        ("workers", &RUN),
        ("workers", &["worker", "start", "-q"]),
        ("logs", &RUN),
        ("worker.log", &RUN),
        ("worker.log", &["worker", "start", "-q"]),
    ] {
        let path = if name.is_empty() { home.path() } else { home.path().join(name) };
        let before = path.metadata().unwrap_or_else(|_| panic!("{name} is there")).permissions().mode();
        allow(&path, before | 0o002);
        let ran = if args == ENQUEUE { refused(&home, home.call(args)) } else { home.run(args).fails(5) };
        ran.says(&format!("`{}` is writable by others", path.display()))
            .says(&format!("hint: run `chmod go-w {}`", path.display()));
        allow(&path, before & 0o7777);
        home.run(ENQUEUE).ok();
    }
}

#[test]
fn fault_39_a_file_of_the_home_that_is_a_link_is_refused() {
    for name in ["queue.db", "queue.db-gate", "queue.db-wal"] {
        let home = Home::with_jobs(&["a"]);
        let (path, elsewhere) = (home.path().join(name), home.folder().join("elsewhere"));
        fs::rename(&path, &elsewhere).expect("renamed");
        symlink(&elsewhere, &path).expect("a link");
        refused(&home, home.call(ENQUEUE)).says(&format!("`{}` is a symlink", path.display()));
    }
}

#[test]
fn a_given_home_may_be_a_link_and_its_target_is_checked() {
    let home = Home::with_jobs(&["a"]);
    let link = home.folder().join("link");
    symlink(home.path(), &link).expect("a link");
    let call = || home.call_without_home(["--home".as_ref(), link.as_os_str(), "list".as_ref()]);
    call().run().ok();
    home.call_without_home(["list"]).env("QUEUECTL_HOME", &link).run().ok();
    symlink(home.path(), home.folder().join(".queuectl")).expect("a link");
    home.call_without_home(["list"]).run().ok(); // `~/.queuectl`, which only its user can make.
    allow(&home.path(), 0o757);
    refused(&home, call()).says("is writable by others");
}

#[test]
fn a_given_store_may_be_a_link_to_the_same_queue() {
    let home = Home::new();
    let (store, link) = (home.folder().join("store.db"), home.folder().join("link.db"));
    for name in [&store, &link] {
        let _ = symlink(&store, &link);
        home.run(["--store".as_ref(), name.as_os_str(), "enqueue".as_ref(), "--".as_ref(), "true".as_ref()])
            .ok();
    }
    let beside: Vec<_> = home.folder().read_dir().expect("a folder").flatten().collect();
    let links = beside.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with("link"));
    assert_eq!(links.count(), 1, "nothing is made beside the link: {beside:?}");
}

#[test]
fn fault_39_a_store_in_a_folder_that_others_can_write_is_refused() {
    let home = Home::new();
    let shared = home.folder().join("shared");
    fs::create_dir(&shared).expect("a folder");
    allow(&shared, 0o1777);
    let store = shared.join("queue.db");
    let args = ["--store".as_ref(), store.as_os_str(), "enqueue".as_ref(), "--".as_ref(), "true".as_ref()];
    home.call(args).run().fails(5).says(&format!("`{}` is writable by others", shared.display()));
    assert_eq!(shared.read_dir().expect("a folder").count(), 0, "nothing is made");
}

/// Verbs of every kind: writing, running, reading.
const VERBS: [&[&str]; 18] = [
    &ENQUEUE,
    &["list"],
    &["status"],
    &["show", "a"],
    &["logs", "a"],
    &["cancel", "a"],
    &["retry", "a"],
    &["config", "list"],
    &["config", "set", "lease", "60s"],
    &["run", "--", "true"],
    &["worker", "run", "--until-empty"],
    &["worker", "start"],
    &["worker", "stop"],
    &["worker", "list"],
    &["prune"],
    &["export", "-"],
    &["backup", "copy"],
    &["queue", "pause", "default"],
];

#[test]
fn fault_39_root_in_a_home_of_another_user_is_refused_and_leaves_nothing_behind() {
    if !is_root() {
        return; // Only root can make what belongs to another user.
    }
    let home = Home::with_jobs(&["a"]);
    home.run(["backup", "good"]).ok();
    give_away(&home.path());
    let restore: &[&str] = &["restore", "--yes", "good"];
    for args in VERBS.into_iter().chain([restore]) {
        refused(&home, home.call(args))
            .prints("")
            .says(&format!("`{}` belongs to ", home.path().display()))
            .says("hint: ")
            .says("sudo -u ");
    }
    // The same if the program has to find the home itself.
    let (below, user) = (home.folder().join("below"), home.folder().join("user"));
    fs::create_dir(&below).expect("a folder");
    fs::create_dir(&user).expect("a folder");
    chown(&user, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("it is given away");
    refused(&home, home.call_without_home(ENQUEUE).at(&below).env("HOME", &user)).says("belongs to ");
    fs::rename(home.path(), home.folder().join(".queuectl")).expect("renamed");
    let ran = refused(&home, home.call_without_home(["list"]).at(&below)).says("sudo -u ");
    assert!(!ran.stderr.contains("ignoring it"), "the user's own home is refused: {ran}");
    refused(&home, home.call_without_home(ENQUEUE).env("QUEUECTL_HOME", user.join("a/b"))).says("sudo -u ");
}

#[test]
fn fault_39_another_user_in_a_home_of_root_is_refused() {
    if !is_root() {
        return; // As above.
    }
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o755);
    allow(&home.path(), 0o755);
    for entry in home.path().read_dir().expect("a folder") {
        allow(&entry.expect("an entry").path(), 0o644);
    }
    for args in VERBS {
        refused(&home, home.call(args).unprivileged()).says("belongs to root");
    }
}

#[test]
fn fault_39_a_store_of_another_user_is_refused() {
    if !is_root() {
        return; // As above.
    }
    let home = Home::with_jobs(&["a"]);
    for (folder_too, foreign) in [(false, "store/queue.db"), (true, "store")] {
        let folder = home.folder().join("store");
        let store = folder.join("queue.db");
        let with_store = |args: &[&str]| {
            let flag = ["--store", store.to_str().expect("text")];
            home.call(flag.into_iter().chain(args.iter().copied()))
        };
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        with_store(&ENQUEUE).run().ok();
        if folder_too {
            give_away(&folder);
        } else {
            chown(&store, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("it is given away");
        }
        let foreign = home.folder().join(foreign);
        for args in [ENQUEUE.as_slice(), &["list"], &["worker", "run", "--until-empty"]] {
            refused(&home, with_store(args)).says(&format!("`{}` belongs to ", foreign.display()));
        }
    }
}

#[test]
fn fault_39_doctor_reports_foreign_owners_and_writable_files() {
    if !is_root() {
        return; // As above.
    }
    let home = Home::with_jobs(&["a"]);
    let log = home.file("home/logs/1-1.log", "said");
    allow(&home.path().join("logs"), 0o700);
    allow(&log, 0o602);
    let gate = home.path().join("queue.db-gate");
    chown(&gate, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("it is given away");
    let before = snapshot(home.folder());
    let ran = home.run(["doctor", "--json"]);
    let ran = ran.fails(5);
    let find = |part: &str| {
        let found = ran.json()["findings"].as_array().expect("a list").clone();
        let said = found.iter().any(|finding| {
            finding["level"] == "error" && finding["said"].as_str().expect("text").contains(part)
        });
        assert!(said, "`{part}` is missing: {ran}");
    };
    find(&format!("`{}` belongs to ", gate.display()));
    find(&format!("`{}` is writable by others", log.display()));

    give_away(&home.path());
    let ran = home.run(["doctor", "--json"]).fails(5);
    assert!(
        ran.stdout.contains("belongs to") && ran.stdout.contains("intact"),
        "it looks at the queue: {ran}"
    );
    give_back(&home.path(), &gate);
    assert_eq!(before.len(), snapshot(home.folder()).len(), "nothing was made");
}

/// All files but one belong to root again.
fn give_back(folder: &Path, but: &Path) {
    for path in snapshot(folder).into_keys().filter(|path| path != but) {
        assert_eq!(path.metadata().expect("it is there").uid(), UNPRIVILEGED, "doctor changed no owner");
        lchown(&path, Some(0), Some(0)).expect("it is given back");
    }
}

#[test]
fn a_home_that_cannot_be_read_names_its_owner() {
    if !is_root() {
        return; // As above.
    }
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o755);
    for args in VERBS {
        refused(&home, home.call(args).unprivileged())
            .says(&format!("the queue in `{}` belongs to root, but you are ", home.path().display()));
    }
}

/// A home of another user that root works in, because it was asked to.
pub(super) fn foreign_home() -> Home {
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o777);
    give_away(&home.path());
    home
}

#[test]
fn root_works_in_a_foreign_home_only_if_asked_to_and_its_files_stay_with_the_owner() {
    if !is_root() {
        return; // As above.
    }
    let home = foreign_home();
    for args in [RUN.as_slice(), &["worker", "start"], &["run", "--", "true"]] {
        refused(&home, home.call(args))
            .says(&format!("the queue in `{}` belongs to ", home.path().display()))
            .says("sudo -u ");
    }
    home.run(["worker", "run", "-q", "--until-empty", "--foreign-home"]).ok();
    home.run(["run", "--foreign-home", "--id", "b", "--", "id", "-u"]).ok().prints("0\n");
    home.run(["run", "--foreign-home", "--", "seq", "200000"]).ok();
    // `run` answers before its supervisor has ended and removed the files of its worker.
    wait_until("only the home's own file is left", || {
        fs::read_dir(home.path().join("workers")).expect("a folder").count() == 1
    });
    for (path, _) in snapshot(&home.path()) {
        let owner = path.symlink_metadata().expect("it is there").uid();
        assert_eq!(owner, UNPRIVILEGED, "{}", path.display());
    }
    let as_owner = |args: &[&str]| home.call(args).unprivileged().run().ok();
    as_owner(&["enqueue", "--id", "c", "--", "true"]);
    as_owner(&RUN);
    let listed = as_owner(&["list", "--json"]).json();
    assert!(
        listed.as_array().is_some_and(|jobs| jobs.iter().all(|job| job["state"] == "completed")),
        "{listed}"
    );
}

#[test]
fn only_root_can_work_in_a_foreign_home() {
    if !is_root() {
        return; // As above.
    }
    let home = Home::with_jobs(&["a"]);
    allow(home.folder(), 0o755);
    let asked = ["worker", "run", "--until-empty", "--foreign-home"];
    refused(&home, home.call(asked).unprivileged()).says("belongs to root");
}
