//! Root works in the home of another user, who has planted files there to get at those of root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use super::harness::{Home, UNPRIVILEGED, allow, is_root};
use super::ownership::foreign_home;
use crate::folder_snapshot::snapshot;

const SECRET: &str = "a secret of root\n";

/// A home of another user beside a file of root.
struct Trap {
    home: Home,
    target: PathBuf,
}

impl Trap {
    fn new() -> Self {
        let home = foreign_home();
        let target = home.file("of-root", SECRET);
        allow(&target, 0o600);
        Self { home, target }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn plant_link(&self, name: &str) {
        let _ = fs::remove_file(self.at(name));
        symlink(&self.target, self.at(name)).expect("a link");
        lchown(self.at(name), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("it is given away");
    }

    fn plant_hard_link(&self, name: &str) {
        let _ = fs::remove_file(self.at(name));
        fs::hard_link(&self.target, self.at(name)).expect("a hard link");
    }

    #[track_caller]
    fn check_target(&self, planted: &str) {
        let meta = self.target.symlink_metadata().expect("it is there");
        assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (0, 0, 0o600), "{planted}");
        assert_eq!(fs::read_to_string(&self.target).expect("a file"), SECRET, "{planted}");
    }
}

fn owner_of(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").uid()
}

#[test]
fn a_planted_link_never_gives_a_file_of_root_away() {
    if !is_root() {
        return; // Only root can work in a foreign home.
    }
    for name in ["worker.log", "queue.db-gate"] {
        let trap = Trap::new();
        trap.plant_link(name);
        trap.home
            .run(["run", "--foreign-home", "--", "true"])
            .fails(5)
            .says(&format!("`{}` is a symlink", trap.at(name).display()));
        trap.home.run(["worker", "run", "-q", "--until-empty", "--foreign-home"]).fails(5);
        trap.check_target(name);
    }
    for name in ["queue.db-bell", "queue.db-wal", "queue.db-shm"] {
        let trap = Trap::new();
        trap.plant_link(name);
        let _ = trap.home.run(["run", "--foreign-home", "--", "true"]);
        trap.check_target(name);
    }
}

#[test]
fn a_planted_hard_link_never_gives_a_file_of_root_away() {
    if !is_root() {
        return; // As above.
    }
    for name in ["worker.log", "queue.db-gate", "queue.db-wal", "queue.db-shm"] {
        let trap = Trap::new();
        trap.plant_hard_link(name);
        trap.home
            .run(["run", "--foreign-home", "--", "true"])
            .fails(5)
            .says(&format!("`{}` belongs to root, but the home belongs to ", trap.at(name).display()))
            .says("hint: ");
        trap.check_target(name);
    }
    let trap = Trap::new();
    trap.plant_hard_link("queue.db-bell");
    let _ = trap.home.run(["run", "--foreign-home", "--", "true"]);
    trap.check_target("queue.db-bell");
}

#[test]
fn a_file_of_the_owner_with_another_name_is_refused() {
    if !is_root() {
        return; // As above.
    }
    let trap = Trap::new();
    fs::hard_link(trap.home.database(), trap.at("worker.log")).expect("a hard link");
    trap.home
        .run(["run", "--foreign-home", "--", "true"])
        .fails(5)
        .says(&format!("`{}` has more than one name", trap.at("worker.log").display()));
}

#[test]
fn a_planted_log_is_replaced_and_a_planted_folder_of_logs_leads_nowhere() {
    if !is_root() {
        return; // As above.
    }
    let run = ["worker", "run", "-q", "--until-empty", "--foreign-home"];
    for plant in [Trap::plant_link, Trap::plant_hard_link] {
        let trap = Trap::new();
        fs::create_dir(trap.at("logs")).expect("a folder");
        chown(trap.at("logs"), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("given away");
        // Job `a` is number 1, so this is the log of its first attempt.
        plant(&trap, "logs/1-1.log");
        trap.home.call(["edit", "-q", "a", "--command", "seq 200000"]).unprivileged().run().ok();
        trap.home.run(run).ok();
        trap.check_target("logs/1-1.log");
        assert_eq!(owner_of(&trap.at("logs/1-1.log")), UNPRIVILEGED);
    }
    let trap = Trap::new();
    let folder = trap.home.folder().join("folder-of-root");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("1-1.log"), SECRET).expect("a file");
    symlink(&folder, trap.at("logs")).expect("a link");
    trap.home.call(["edit", "-q", "a", "--command", "seq 200000"]).unprivileged().run().ok();
    trap.home.run(run).fails(5).says("belongs to root");
    assert_eq!(fs::read_to_string(folder.join("1-1.log")).expect("a file"), SECRET);
    assert_eq!(owner_of(&folder), 0);
}

#[test]
fn a_job_of_a_foreign_home_still_runs_with_all_rights_of_root() {
    if !is_root() {
        return; // As above.
    }
    let trap = Trap::new();
    let read = format!("cat {} && touch {}/made", trap.target.display(), trap.home.folder().display());
    trap.home.run(["run", "--foreign-home", "-c", &read]).ok().prints(SECRET);
    assert_eq!(owner_of(&trap.home.folder().join("made")), 0);
}

#[test]
fn root_lists_and_stops_the_workers_that_it_started() {
    if !is_root() {
        return; // As above.
    }
    let home = foreign_home();
    for args in [["worker", "list"].as_slice(), &["worker", "stop", "--now"], &["status"]] {
        home.run(args).fails(5).says("sudo -u ").says("--foreign-home");
    }
    home.run(["worker", "start", "-q", "--foreign-home"]).ok();
    let listed = home.run(["worker", "list", "--json", "--foreign-home"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    home.run(["status", "--foreign-home"]).ok();
    home.run(["worker", "stop", "--foreign-home", "--timeout", "30s"]).ok().says("1 worker stopped");
    for (path, _) in snapshot(&home.path()) {
        assert_eq!(owner_of(&path), UNPRIVILEGED, "{}", path.display());
    }
}
