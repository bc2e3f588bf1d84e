//! A job that prints little makes no file.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::chaos::shim::Shim;
use crate::engine::harness::{Home, Pool};

/// A job that still runs after half a second gets a file, and on a busy machine the shortest may take that long. By a slow
/// clock it does not.
const SLOWDOWN: u64 = 30;

#[test]
fn a_drain_of_small_jobs_makes_no_other_files_than_one_of_nothing() {
    let place = Place::new();
    let of_nothing = place.made_by_drain();
    assert!(of_nothing.contains(&"home/workers/*.lock".to_owned()), "new files are seen: {of_nothing:?}");
    place.enqueue("true", 50);
    place.enqueue("echo hello; echo trouble >&2", 50);
    place.enqueue("echo no luck >&2; exit 1", 50);
    assert_eq!(place.made_by_drain(), of_nothing);
}

#[test]
fn the_file_of_a_job_that_prints_much_is_seen() {
    let place = Place::new();
    let of_nothing = place.made_by_drain();
    place.enqueue("head -c 1000000 /dev/zero", 1);
    let made = place.made_by_drain();
    assert!(made.len() > of_nothing.len() && made.iter().any(|name| name.contains("logs")), "{made:?}");
}

/// A home in which a worker has been, and a folder for temporary files.
struct Place {
    home: Home,
}

impl Place {
    fn new() -> Self {
        let place = Self { home: Home::new() };
        fs::create_dir(place.temporary()).expect("the folder is made");
        place.drain();
        place
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
        shim.slow_clock(SLOWDOWN);
        let call = self.home.call(["worker", "run", "-q", "--until-empty", "--concurrency", "4"]);
        let call = call.env("TMPDIR", self.temporary()).envs(shim.variables());
        Pool::spawn(&self.home, call.interruptible().into_command()).ends_well();
    }

    /// What kinds of files a drain makes, also those that are gone when it ends.
    fn made_by_drain(&self) -> Vec<String> {
        let watch = Watch::new(self.home.folder(), &[self.home.path(), self.temporary()]);
        self.drain();
        watch.made()
    }
}

/// Sees every file that comes into being in some folders or below.
struct Watch {
    inotify: OwnedFd,
    root: PathBuf,
    /// With the numbers that the kernel gave them.
    folders: Vec<(i32, PathBuf)>,
}

impl Watch {
    /// Names are told from `root` on.
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

    /// Names and kinds of what was made, in order; the names of workers are left out.
    fn made(&self) -> Vec<String> {
        let mut buffer = Vec::with_capacity(1 << 16);
        let mut reader = Reader::new(&self.inotify, buffer.spare_capacity_mut());
        let mut made = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(error) => panic!("what was made cannot be read: {error}"),
            };
            let (_, folder) =
                self.folders.iter().find(|(number, _)| *number == event.wd()).expect("a folder");
            let name = event.file_name().expect("a name").to_str().expect("a name is text");
            made.push(self.kind(folder, name));
        }
        made.sort();
        made
    }

    fn kind(&self, folder: &Path, name: &str) -> String {
        let folder = folder.strip_prefix(&self.root).expect("a folder below the root");
        let name = match name.split_once('.') {
            Some((_, kind)) if folder.ends_with("workers") => format!("*.{kind}"),
            Some(_) | None => name.to_owned(),
        };
        folder.join(name).display().to_string()
    }
}
