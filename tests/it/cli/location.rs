//! Where the home and the store are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::harness::pseudo_terminal::on_terminal;
use super::harness::{Home, RunResult, allow, is_root};

/// A folder with a home for each way to specify one: flag, variable, `.queuectl` in a parent, the user's.
struct HomeCandidates {
    home: Home,
    below: PathBuf,
}

impl HomeCandidates {
    fn new() -> Self {
        let home = Home::new();
        let below = home.folder().join("project/src/deep");
        fs::create_dir_all(&below).expect("a folder");
        Self { home, below }
    }

    fn in_folder(&self, name: &str) -> PathBuf {
        self.home.folder().join(name)
    }

    /// Enqueues from a deep subfolder, with the user's home elsewhere.
    fn enqueue(&self, args: &[&str], variable: Option<&OsStr>) -> RunResult {
        let call = self.home.call_without_home(args.iter().chain(&["enqueue", "-q", "--", "true"]));
        let call = call.at(&self.below).env("HOME", self.in_folder("user"));
        match variable {
            Some(value) => call.env("QUEUECTL_HOME", value).run(),
            None => call.run(),
        }
    }

    fn made(&self, name: &str) -> bool {
        self.in_folder(name).join("queue.db").is_file()
    }
}

#[test]
fn the_flag_comes_first_then_the_variable_then_the_nearest_then_the_users() {
    let candidates = HomeCandidates::new();
    let (flag, variable) = (candidates.in_folder("flag"), candidates.in_folder("variable"));
    candidates.enqueue(&[], None).ok();
    assert!(candidates.made("user/.queuectl"), "without anything else the user's is taken");

    candidates.home.call_without_home(["init", "-q", "project"]).run().ok();
    let taken_from =
        |name: &str| candidates.in_folder(name).join("queue.db").metadata().expect("a queue").len();
    let before = taken_from("user/.queuectl");
    candidates.enqueue(&[], None).ok();
    let ran =
        candidates.home.call_without_home(["list", "--json"]).at(&candidates.in_folder("project")).run().ok();
    assert_eq!(ran.json().as_array().map(Vec::len), Some(1), "the nearest above is taken");
    assert_eq!(taken_from("user/.queuectl"), before);

    candidates.enqueue(&[], Some(variable.as_os_str())).ok();
    assert!(candidates.made("variable"));
    candidates.enqueue(&["--home", flag.to_str().expect("text")], Some(OsStr::new("/nonexistent/x"))).ok();
    assert!(candidates.made("flag"));
}

#[test]
fn a_file_called_queuectl_and_an_empty_variable_are_ignored() {
    let candidates = HomeCandidates::new();
    candidates.home.file("project/.queuectl", "");
    candidates.enqueue(&[], Some(OsStr::new(""))).ok();
    assert!(candidates.made("user/.queuectl"));
}

#[test]
fn a_variable_need_not_be_utf_8() {
    let candidates = HomeCandidates::new();
    let name = OsStr::from_bytes(b"caf\xe9");
    candidates.enqueue(&[], Some(candidates.home.folder().join(name).as_os_str())).ok();
    assert!(candidates.home.folder().join(name).join("queue.db").is_file(), "it was not silently ignored");
}

#[test]
fn a_parent_home_of_another_user_is_ignored() {
    if !is_root() {
        return; // Only root can create a folder that belongs to another user.
    }
    let candidates = HomeCandidates::new();
    candidates.home.call_without_home(["init", "-q", "project"]).run().ok();
    for path in ["", "project", "project/src"] {
        allow(&candidates.in_folder(path), 0o755);
    }
    let user = candidates.in_folder("user");
    fs::create_dir(&user).expect("a folder");
    chown(&user, Some(65_534), Some(65_534)).expect("it is given away");
    let call = candidates.home.call_without_home(["enqueue", "-q", "--", "true"]).at(&candidates.below);
    call.env("HOME", &user).unprivileged().run().ok();
    assert!(candidates.made("user/.queuectl"), "the home of another user was skipped");
}

#[test]
fn an_empty_flag_is_refused() {
    for flag in ["--home=", "--store="] {
        let home = Home::new();
        home.call_without_home([flag, "list"]).run().fails(2);
        let made: Vec<_> = home.folder().read_dir().expect("a folder").collect();
        assert!(made.is_empty(), "{flag}: {made:?}");
    }
}

#[test]
fn a_missing_home_is_reported() {
    let home = Home::new();
    let root = Path::new("/");
    home.call_without_home(["list"]).at(root).without_env("HOME").run().fails(2).says("no home directory: ");
}

#[test]
fn a_store_can_be_elsewhere() {
    let home = Home::new();
    let path = |name: &str| home.folder().join(name);
    home.file("home/config.toml", format!("store = {:?}\n", path("configured.db")));
    let enqueue = ["enqueue", "-q", "--", "true"];
    home.run(enqueue).ok();
    assert!(path("configured.db").is_file());
    home.call(enqueue).env("QUEUECTL_STORE", path("variable.db")).run().ok();
    assert!(path("variable.db").is_file());
    let flag = path("flag.db");
    let args = ["--store", flag.to_str().expect("text")].into_iter().chain(enqueue);
    home.call(args).env("QUEUECTL_STORE", "/nonexistent/x.db").run().ok();
    assert!(flag.is_file());
    assert!(!home.database().exists());
}

#[test]
fn a_path_in_the_settings_file_is_relative_to_it() {
    let home = Home::new();
    home.file("home/config.toml", "store = \"other.db\"\n");
    home.call(["enqueue", "-q", "--", "true"]).at(Path::new("/tmp")).run().ok();
    assert!(home.path().join("other.db").is_file());
}

#[test]
fn an_invalid_settings_file_is_refused() {
    for (content, message) in [
        (b"store = ".as_slice(), "line 1"),
        (b"stor = \"x.db\"", "unknown field `stor`"),
        (b"\n\nstore = 5", "line 3"),
        (b"store = \"caf\xe9\"", "config.toml"),
    ] {
        let home = Home::new();
        home.file("home/config.toml", content);
        home.run(["enqueue", "--", "true"]).fails(2).says("config.toml").says(message);
        assert!(!home.database().exists(), "it was not silently ignored");
    }
}

const URLS: [(&str, i32); 6] = [
    // Nothing listens there.
    ("postgres://ada:s3cret@127.0.0.1:1/queue", 5),
    ("postgresql://ada:s3cret@127.0.0.1:1/queue", 5),
    ("POSTGRES://ada:s3cret@127.0.0.1:1/queue", 5),
    ("mysql://ada:s3cret@db/queue", 2),
    ("postgres://ada:s3cret@[bad", 2),
    ("postgres://ada:s3cret@db/queue?sslmode=prefer", 2),
];

#[test]
fn a_server_that_cannot_be_used_is_refused_and_its_password_never_printed() {
    for (url, code) in URLS {
        let home = Home::new();
        let flag = format!("--store={url}");
        let calls = [
            home.call([&flag, "list"]),
            home.call([&flag, "list", "--json"]),
            home.call(["list"]).env("QUEUECTL_STORE", url),
            home.call([&flag, "enqueue", "--", "true"]),
            home.call([&flag, "doctor"]),
        ];
        for (at, call) in calls.into_iter().enumerate() {
            let ran = call.run().fails(if at == 4 && code == 2 { 1 } else { code });
            assert!(!ran.stderr.contains("s3cret") && !ran.stdout.contains("s3cret"), "{ran}");
        }
        for mistyped in
            [home.call(["list", &flag, "--bogus"]), home.call(["list", &format!("--stroe={url}")])]
        {
            let ran = mistyped.run().fails(2);
            assert!(!ran.stderr.contains("s3cret"), "{ran}");
        }
        assert!(!home.path().exists(), "nothing was made");
    }
}

#[test]
fn a_password_in_an_invalid_settings_file_is_not_printed() {
    for (url, _) in URLS {
        for line in [
            format!("store = {url:?}"),
            format!("stor = {url:?}"),
            format!("store = \"{url}"),
            format!("[{url:?}]"),
            format!("{url:?} = 1"),
            format!("[[store]]\n{url:?} = 1"),
            url.to_owned(),
        ] {
            let home = Home::new();
            home.file("home/config.toml", &line);
            let ran = home.run(["list"]).fails(2);
            assert!(!ran.stderr.contains("s3cret"), "{line}: {ran}");
        }
    }
}

#[test]
fn a_settings_file_with_a_password_must_be_private() {
    let home = Home::new();
    let path = home.file("home/config.toml", "store = 'postgres://ada:s3cret@127.0.0.1:1/queue'");
    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
    set_mode(0o640);
    let ran = home.run(["list"]).fails(2).says("can be read by others (mode 0640)").says("chmod 600");
    assert!(!ran.stderr.contains("s3cret"), "{ran}");
    set_mode(0o600);
    home.run(["list"]).fails(5).says("connection refused");
    // Without a password its mode does not matter.
    fs::write(&path, "store = 'postgres://ada@127.0.0.1:1/queue'").expect("written");
    set_mode(0o644);
    home.run(["list"]).fails(5).says("connection refused");
}

#[test]
fn verbs_about_a_file_refuse_a_server_with_another_way() {
    let home = Home::new();
    for args in [["backup", "copy"], ["restore", "copy"]] {
        let ran = home.call(args).env("QUEUECTL_STORE", "postgres://ada@127.0.0.1:1/queue?schema=s1").run();
        ran.fails(2).says("this one is in PostgreSQL").says("pg_dump -n").says("s1").says("queuectl export");
    }
}

/// Verbs that add nothing to a queue.
const READERS: [&[&str]; 24] = [
    &["list"],
    &["show", "a"],
    &["status"],
    &["logs", "a"],
    &["explain", "a"],
    &["wait", "a"],
    &["graph", "a"],
    &["events"],
    &["cancel", "a"],
    &["retry", "a"],
    &["remove", "a"],
    &["dlq", "list"],
    &["queue", "list"],
    &["queue", "remove", "q"],
    &["schedule", "list"],
    &["batch", "list"],
    &["hook", "list"],
    &["config", "list"],
    &["config", "get", "lease"],
    &["config", "unset", "lease"],
    &["worker", "list"],
    &["worker", "stop"],
    &["export", "-"],
    &["backup", "copy"],
];

#[test]
fn a_verb_that_only_reads_does_not_create_a_home_that_was_named() {
    let home = Home::new();
    let typed = home.folder().join("tpyo/deep");
    let path = typed.to_str().expect("text");
    for args in READERS {
        let named = home.call_without_home(["--home", path].iter().chain(args));
        let in_variable = home.call_without_home(args).env("QUEUECTL_HOME", path);
        for call in [named, in_variable] {
            let ran = call.run().fails(3).prints("").says(&format!("there is no queue in `{path}`"));
            ran.says(&format!("hint: check the path; to create a queue there, enqueue the first job: `queuectl --home {path} "));
        }
    }
    assert_eq!(home.folder().read_dir().expect("a folder").count(), 0, "nothing is made");
    let error = home.call_without_home(["--home", path, "list", "--json"]).run().fails(3).error_json();
    assert_eq!(error["exit_code"], 3);
    home.call_without_home(["--home", path, "enqueue", "-q", "--", "true"]).run().ok();
    home.call_without_home(["--home", path, "list"]).run().ok();
}

#[test]
fn a_named_store_that_does_not_exist_is_not_created_by_a_reader() {
    let home = Home::with_queue();
    let store = home.folder().join("other.db");
    let flag = format!("--store={}", store.display());
    home.run([flag.as_str(), "list"])
        .fails(3)
        .says(&format!("there is no queue in `{}`", store.display()))
        .says("--store");
    assert!(!store.exists());
}

#[test]
fn the_home_of_the_user_is_created_on_first_use_by_any_verb() {
    let home = Home::new();
    home.call_without_home(["list", "--json"]).run().ok().prints("[]\n");
    assert!(home.folder().join(".queuectl/queue.db").is_file());
}

#[test]
fn a_home_that_was_found_above_is_named_on_a_terminal() {
    let home = Home::new();
    home.call_without_home(["init", "-q", "project"]).run().ok();
    let below = home.folder().join("project/src");
    fs::create_dir(&below).expect("a folder");
    let call = |folder: &str, args: &[&str]| {
        let call = home.call_without_home([&["--color", "never"], args].concat());
        call.at(&home.folder().join(folder)).env("HOME", home.folder().join("user"))
    };
    let line = format!("Home: {}\n", home.folder().join("project/.queuectl").display());
    call("project", &["enqueue", "-q", "--", "true"]).run().ok();
    for args in [["list"].as_slice(), &["status"], &["worker", "start"]] {
        let seen =
            |folder: &str, args: &[&str]| on_terminal(call(folder, args).into_command(), 80, "").screen;
        assert_eq!(seen("project/src", args).matches(&line).count(), 1, "{args:?}");
        assert!(!seen("project", args).contains("Home: "), "{args:?}: in its folder");
        assert!(!seen("project/src", &[args, &["-q"]].concat()).contains("Home: "), "{args:?}: quiet");
        let piped = call("project/src", args).run().ok();
        assert!(!piped.stdout.contains("Home: ") && !piped.stderr.contains("Home: "), "{piped}");
    }
    call("project", &["worker", "stop", "-q"]).run().ok();
}

/// The user's own home is used everywhere without a word, also below the folder that contains it.
#[test]
fn the_home_of_the_user_is_not_news() {
    let home = Home::new();
    fs::create_dir(home.folder().join("src")).expect("a folder");
    for args in [["list"], ["status"]] {
        let call = home.call_without_home(args).at(&home.folder().join("src"));
        let screen = on_terminal(call.into_command(), 80, "").screen;
        assert!(!screen.contains("Home: "), "{screen}");
    }
}
