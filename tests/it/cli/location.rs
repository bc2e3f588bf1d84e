//! Where the home and the store are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use super::harness::{Home, Ran, allow, is_root};

/// A folder with a home for each way to specify one: flag, variable, `.queuectl` in a parent, the user's.
struct Places {
    home: Home,
    below: PathBuf,
}

impl Places {
    fn new() -> Self {
        let home = Home::new();
        let below = home.folder().join("project/src/deep");
        std::fs::create_dir_all(&below).expect("a folder");
        Self { home, below }
    }

    fn in_folder(&self, name: &str) -> PathBuf {
        self.home.folder().join(name)
    }

    /// Enqueues from a deep subfolder, with the user's home elsewhere.
    fn enqueue(&self, args: &[&str], variable: Option<&OsStr>) -> Ran {
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
    let places = Places::new();
    let (flag, variable) = (places.in_folder("flag"), places.in_folder("variable"));
    places.enqueue(&[], None).ok();
    assert!(places.made("user/.queuectl"), "without anything else the user's is taken");

    places.home.call_without_home(["init", "-q", "project"]).run().ok();
    let taken_from = |name: &str| places.in_folder(name).join("queue.db").metadata().expect("a queue").len();
    let before = taken_from("user/.queuectl");
    places.enqueue(&[], None).ok();
    let ran = places.home.call_without_home(["list", "--json"]).at(&places.in_folder("project")).run().ok();
    assert_eq!(ran.json().as_array().map(Vec::len), Some(1), "the nearest above is taken");
    assert_eq!(taken_from("user/.queuectl"), before);

    places.enqueue(&[], Some(variable.as_os_str())).ok();
    assert!(places.made("variable"));
    places.enqueue(&["--home", flag.to_str().expect("text")], Some(OsStr::new("/nonexistent/x"))).ok();
    assert!(places.made("flag"));
}

#[test]
fn a_file_called_queuectl_and_an_empty_variable_are_ignored() {
    let places = Places::new();
    places.home.file("project/.queuectl", "");
    places.enqueue(&[], Some(OsStr::new(""))).ok();
    assert!(places.made("user/.queuectl"));
}

#[test]
fn a_variable_need_not_be_utf_8() {
    let places = Places::new();
    let name = OsStr::from_bytes(b"caf\xe9");
    places.enqueue(&[], Some(places.home.folder().join(name).as_os_str())).ok();
    assert!(places.home.folder().join(name).join("queue.db").is_file(), "it was not silently ignored");
}

#[test]
fn a_parent_home_of_another_user_is_ignored() {
    if !is_root() {
        return; // Only root can create a folder that belongs to another user.
    }
    let places = Places::new();
    places.home.call_without_home(["init", "-q", "project"]).run().ok();
    for path in ["", "project", "project/src"] {
        allow(&places.in_folder(path), 0o755);
    }
    let user = places.in_folder("user");
    std::fs::create_dir(&user).expect("a folder");
    chown(&user, Some(65_534), Some(65_534)).expect("it is given away");
    let call = places.home.call_without_home(["enqueue", "-q", "--", "true"]).at(&places.below);
    call.env("HOME", &user).unprivileged().run().ok();
    assert!(places.made("user/.queuectl"), "the strange one was passed by");
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
    home.call_without_home(["list"]).at(root).without_env("HOME").run().fails(2).says("no home folder: ");
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

const URLS: [&str; 5] = [
    "postgres://ada:s3cret@db/queue",
    "postgresql://ada:s3cret@db/queue",
    "POSTGRES://ada:s3cret@db/queue",
    "mysql://ada:s3cret@db/queue",
    "postgres://ada:s3cret@[bad",
];

#[test]
fn a_server_is_refused_and_its_password_never_printed() {
    for url in URLS {
        let home = Home::new();
        let flag = format!("--store={url}");
        let calls = [
            home.call([&flag, "list"]),
            home.call([&flag, "list", "--json"]),
            home.call(["list"]).env("QUEUECTL_STORE", url),
            home.call(["list", &flag, "--bogus"]),
            home.call(["list", &format!("--stroe={url}")]),
        ];
        for call in calls {
            let ran = call.run().fails(2);
            assert!(!ran.stderr.contains("s3cret"), "{ran}");
        }
        assert!(!home.path().exists(), "nothing was made");
    }
}

#[test]
fn a_password_in_an_invalid_settings_file_is_not_printed() {
    for url in URLS {
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
