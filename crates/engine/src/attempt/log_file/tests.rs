//! Log files that exceed their limit, and log files that cannot be written to.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use tempfile::TempDir;

use crate::attempt::log_file::*;
use domain::log::{Entry, entries};

const MIB: u64 = 1 << 20;

struct Log {
    folder: TempDir,
    file: LogFile,
    now: Instant,
}

impl Log {
    fn new(max_bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = LogFile::create(folder.path().join("1-1.log"), max_bytes).expect("a file");
        Self { folder, file, now: Instant::now() }
    }

    fn print(&mut self, text: impl AsRef<[u8]>) {
        let frame = Frame { stream: Stream::Out, at: Duration::from_millis(9), bytes: text.as_ref() };
        self.file.append(frame, self.now);
    }

    fn later(&mut self) {
        self.now += RETRY_AFTER;
    }

    fn disk_bytes(&self) -> u64 {
        self.file.file.metadata().expect("its size").blocks() * 512
    }

    /// The reported number of kept bytes, and the kept output, with marks shown as `<7>`.
    fn finish(self) -> (u64, String) {
        let kept = self.file.finish();
        let names: Vec<_> = fs::read_dir(self.folder.path()).expect("its folder").collect();
        assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
        (kept, shown(&self.folder.path().join("1-1.log")))
    }
}

/// The contents of a file without a hole.
fn shown(path: &Path) -> String {
    let bytes = fs::read(path).expect("the log");
    let (header, kept) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
    assert_eq!(Header::decode(header), Ok(Header::default()));
    let mut reading = entries(kept);
    let shown = reading
        .by_ref()
        .map(|entry| match entry.expect("an undamaged entry") {
            Entry::Output(frame) => String::from_utf8(frame.bytes.to_vec()).expect("text"),
            Entry::Cut { bytes } => format!("<{bytes}>"),
        })
        .collect();
    assert_eq!(reading.read(), kept.len(), "no entry is incomplete");
    shown
}

/// A file that cannot grow, as on a full disk.
fn full_disk(length: u64) -> File {
    let file = memfd_create("full", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, length).expect("its length");
    fcntl_add_seals(&file, SealFlags::GROW).expect("a seal");
    file.into()
}

#[test]
fn disk_use_is_bounded_while_much_is_printed() {
    const LIMIT: u64 = 4 * MIB;
    let mut log = Log::new(LIMIT);
    let line = format!("{}\n", "x".repeat(127));
    let chunk = line.repeat(512);
    for _ in 0..1_600 {
        log.print(&chunk);
        assert!(log.disk_bytes() <= LIMIT + 2 * log.file.step_bytes() + MIB / 2, "{}", log.disk_bytes());
        assert!(log.file.boundaries.len() <= 16, "{}", log.file.boundaries.len());
    }
    assert!(log.file.end.offset > 100 * MIB, "much was printed");
    let printed = log.file.end.printed;
    let (kept, shown) = log.finish();
    assert_eq!(kept, LIMIT);
    let half = shown.find('<').expect("a mark");
    assert_eq!(half as u64, LIMIT / 2);
    let mark = format!("<{}>", printed - LIMIT);
    assert!(shown[half..].starts_with(&mark));
    assert_eq!(shown.len() as u64, LIMIT + mark.len() as u64);
    assert!(shown.ends_with(&line));
}

#[test]
fn the_finished_file_has_no_hole() {
    let mut log = Log::new(MIB);
    log.print("y".repeat(10 << 20));
    let path = log.folder.path().join("1-1.log");
    log.file.finish();
    let length = fs::metadata(path).expect("the log").len();
    assert!(length < MIB + 4_096, "{length}");
}

#[test]
fn output_lost_on_a_full_disk_is_counted() {
    let mut log = Log::new(MIB);
    log.print("before ");
    let full = full_disk(log.file.end.offset);
    let file = std::mem::replace(&mut log.file.file, full);
    log.print("lost");
    log.file.file = file;
    log.print("too soon");
    log.later();
    log.print(" after");
    log.print("!");
    assert_eq!(log.finish(), (14, "before <12> after!".to_owned()));
}

#[test]
fn a_partially_written_entry_is_removed() {
    let mut log = Log::new(MIB);
    log.print("before");
    let end = log.file.end.offset;
    // Space for a part of the next entry: the kernel writes that part, then reports a full disk.
    let full = full_disk(end + 4_096);
    let original = std::mem::replace(&mut log.file.file, full);
    log.print("z".repeat(60_000));
    assert_eq!(log.file.file.metadata().expect("its length").len(), end);
    log.file.file = original;
    assert_eq!(log.finish(), (6, "before<60000>".to_owned()));
}

#[test]
fn nothing_follows_a_partial_entry_that_could_not_be_removed() {
    let mut log = Log::new(MIB);
    log.print("before");
    let read_only = File::open(&log.file.path).expect("it is there");
    let file = std::mem::replace(&mut log.file.file, read_only);
    log.print("lost");
    log.file.file = file;
    log.later();
    log.print("never");
    assert_eq!(log.finish(), (6, "before".to_owned()));
}

#[test]
fn losses_in_the_start_and_in_the_end_add_up() {
    let mut log = Log::new(8);
    log.print("abc");
    log.file.drop_bytes(5);
    log.print("defghijk");
    log.file.drop_bytes(2);
    log.print("lmnop");
    log.file.drop_bytes(1);
    // abc<5>d efghijk<2>l mnop<1>: the start ends after d, the end begins with m.
    assert_eq!(log.finish(), (8, "abc<5>d<10>mnop<1>".to_owned()));
}

#[test]
fn without_support_for_holes_the_start_is_kept() {
    let mut log = Log::new(10);
    log.print("abcde");
    let path = log.file.path.clone();
    let file = std::mem::replace(&mut log.file.file, File::open(path).expect("it is there"));
    assert!(!sparse::is_supported(&log.file.file), "it can only be read");
    assert!(log.file.may_write(log.now));
    log.file.file = file;
    log.print("fghij");
    let path = log.file.path.clone();
    let file = std::mem::replace(&mut log.file.file, File::open(path).expect("it is there"));
    assert!(!log.file.may_write(log.now), "it is full");
    log.file.file = file;
    log.print("klmnop");
    assert_eq!(log.finish(), (10, "abcdefghij<6>".to_owned()));
}

#[test]
fn nothing_is_written_while_no_space_can_be_freed() {
    let mut log = Log::new(10);
    let chunk = "x".repeat(64 << 10);
    while log.file.boundaries.len() < 3 {
        log.print(&chunk);
    }
    let before = log.file.end.offset;
    // The next cut is due and fails.
    log.file.cut_pending = true;
    let path = log.file.path.clone();
    let file = std::mem::replace(&mut log.file.file, File::open(path).expect("it is there"));
    log.print(&chunk);
    log.file.file = file;
    assert_eq!(log.file.end.offset, before);
    assert_eq!(log.file.dropped, chunk.len() as u64);
    log.later();
    log.print(&chunk);
    assert!(log.file.end.offset > before && !log.file.cut_pending);
    assert_eq!(log.finish().0, 10);
}

#[test]
fn a_file_that_cannot_be_rewritten_is_kept_as_it_is() {
    let mut log = Log::new(MIB);
    log.print("w".repeat(5 << 20));
    let path = log.file.path.clone();
    fs::create_dir(new_name(&path)).expect("an obstacle to the rename");
    let kept = log.file.finish();
    assert!((MIB..2 * MIB).contains(&kept), "{kept}");
    let bytes = fs::read(&path).expect("the log");
    let header = bytes.first_chunk::<HEADER_BYTES>().expect("a header");
    let cut = Header::decode(header).expect("an undamaged header").cut.expect("a cut");
    let end: u64 = usize::try_from(cut.resume_at)
        .map(|at| entries(&bytes[at..]))
        .expect("a small file")
        .map(|entry| match entry.expect("an undamaged entry") {
            Entry::Output(frame) => frame.printed(),
            Entry::Cut { bytes } => bytes,
        })
        .sum();
    assert_eq!(cut.resume_printed + end, 5 << 20, "the header accounts for all missing output");
}
