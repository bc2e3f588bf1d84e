//! A job that prints little creates no file.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::chaos::shim::Shim;
use crate::engine::harness::{Home, Pool};

/// A job that runs longer than half a second gets a log file, and on a busy machine even the shortest may take that
/// long. With a slow clock it does not.
const CLOCK_SLOWDOWN: u64 = 30;

#[test]
fn a_drain_of_small_jobs_creates_the_same_files_as_an_empty_drain() {
    let sandbox = Sandbox::new();
    let by_empty_drain = sandbox.created_by_drain();
    assert!(
        by_empty_drain.contains(&"home/workers/*.lock".to_owned()),
        "the watch reports new files: {by_empty_drain:?}"
    );
    sandbox.enqueue("true", 50);
    sandbox.enqueue("echo hello; echo trouble >&2", 50);
    sandbox.enqueue("echo failed >&2; exit 1", 50);
    assert_eq!(sandbox.created_by_drain(), by_empty_drain);
}

#[test]
fn the_watch_reports_the_log_file_of_a_job_that_prints_much() {
    let sandbox = Sandbox::new();
    let by_empty_drain = sandbox.created_by_drain();
    sandbox.enqueue("head -c 1000000 /dev/zero", 1);
    let created = sandbox.created_by_drain();
    assert!(
        created.len() > by_empty_drain.len() && created.iter().any(|name| name.contains("logs")),
        "{created:?}"
    );
}

/// A home that a worker has already used, and a folder for temporary files.
struct Sandbox {
    home: Home,
}

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self { home: Home::new() };
        fs::create_dir(sandbox.temporary()).expect("the folder is created");
        sandbox.drain();
        sandbox
    }

    fn temporary(&self) -> PathBuf {
        self.home.folder().join("temporary")
    }

    fn enqueue(&self, command: &str, count: usize) {
        let job = serde_json::json!({"command": command, "max_retries": 0});
        let lines = format!("{job}\n").repeat(count);
        self.home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    }

    fn drain(&self) {
        let shim = Shim::new(&self.home);
        shim.slow_clock(CLOCK_SLOWDOWN);
        let call = self.home.call(["worker", "run", "-q", "--until-empty", "--concurrency", "4"]);
        let call = call.env("TMPDIR", self.temporary()).envs(shim.variables());
        Pool::spawn(&self.home, call.interruptible().into_command()).ends_well();
    }

    /// The kinds of files that a drain creates, including those that it deletes again.
    fn created_by_drain(&self) -> Vec<String> {
        let watch = CreationWatch::new(self.home.folder(), &[self.home.path(), self.temporary()]);
        self.drain();
        watch.created()
    }
}

/// Records every file that is created in these folders or below.
struct CreationWatch {
    inotify: OwnedFd,
    root: PathBuf,
    /// With their inotify watch descriptors.
    folders: Vec<(i32, PathBuf)>,
}

impl CreationWatch {
    /// Names are reported relative to `root`.
    fn new(root: &Path, folders: &[PathBuf]) -> Self {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
        let mut watch = Self { inotify, root: root.to_owned(), folders: Vec::new() };
        for folder in folders {
            watch.add(folder);
        }
        watch
    }

    fn add(&mut self, folder: &Path) {
        let what = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let number = inotify::add_watch(&self.inotify, folder, what).expect("the folder is watched");
        self.folders.push((number, folder.to_owned()));
        for entry in fs::read_dir(folder).expect("the folder is read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.add(&path);
            }
        }
    }

    /// The created files in sorted order, with worker ids replaced by `*`.
    fn created(&self) -> Vec<String> {
        let mut buffer = Vec::with_capacity(1 << 16);
        let mut reader = Reader::new(&self.inotify, buffer.spare_capacity_mut());
        let mut created = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(error) => panic!("failed to read inotify events: {error}"),
            };
            let (_, folder) =
                self.folders.iter().find(|(number, _)| *number == event.wd()).expect("the folder is watched");
            let name = event.file_name().expect("a name").to_str().expect("the name is UTF-8");
            created.push(self.kind(folder, name));
        }
        created.sort();
        created
    }

    fn kind(&self, folder: &Path, name: &str) -> String {
        let folder = folder.strip_prefix(&self.root).expect("the folder is below the root");
        let name = match name.split_once('.') {
            Some((_, kind)) if folder.ends_with("workers") => format!("*.{kind}"),
            Some(_) | None => name.to_owned(),
        };
        folder.join(name).display().to_string()
    }
}
