//! Output from both sides: a reader reads what a worker captures, also while the file is being written and cut.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::log::Stream;
use engine::attempt::capture::{Capture, CapturedOutput};
use ops::jobs::logs::Piece;
use ops::jobs::logs::reader::LogReader;
use proptest::prelude::*;
use tempfile::TempDir;

const MIB: usize = 1 << 20;

struct Attempt {
    folder: TempDir,
    capture: Capture,
    printed: u64,
}

impl Attempt {
    fn new(max_bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let capture = Capture::new(folder.path().join("1-1.log"), max_bytes);
        Self { folder, capture, printed: 0 }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("1-1.log")
    }

    /// Prints the next `length` bytes of a text in which every position is distinguishable from its neighbours.
    fn print(&mut self, length: usize) {
        let stream = if length.is_multiple_of(3) { Stream::Err } else { Stream::Out };
        self.capture.take(stream, &text_at(self.printed, length));
        self.printed += length as u64;
    }

    /// Ends it; keeps its folder for readers.
    fn finish(self) -> (CapturedOutput, TempDir) {
        (self.capture.finish(), self.folder)
    }
}

/// The text at a position: a long random text, repeated.
fn text_at(position: u64, length: usize) -> Vec<u8> {
    const PERIOD: usize = 1_000_003;
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut random = fastrand::Rng::with_seed(7);
        (0..PERIOD).map(|_| random.u8(..)).collect()
    });
    let mut start = usize::try_from(position % PERIOD as u64).expect("a small remainder");
    let mut text = Vec::with_capacity(length);
    while text.len() < length {
        let part = (PERIOD - start).min(length - text.len());
        text.extend_from_slice(&TEXT[start..start + part]);
        start = 0;
    }
    text
}

/// A reader that checks the text at each position.
struct Checker {
    reader: LogReader,
    position: u64,
    cut: u64,
    kept: u64,
}

impl Checker {
    fn open(path: &Path) -> Self {
        let reader = LogReader::open(path).expect("it can be read").expect("it is there");
        Self { reader, position: 0, cut: 0, kept: 0 }
    }

    /// Reads once; `false` if there was nothing.
    fn read(&mut self) -> bool {
        let pieces = self.reader.read().expect("it can be read");
        for piece in &pieces {
            match piece {
                Piece::Output(chunk) => self.check(&chunk.bytes),
                Piece::Cut { bytes } => self.cut += bytes,
            }
            self.position += piece.printed();
        }
        !pieces.is_empty()
    }

    fn check(&mut self, bytes: &[u8]) {
        let is_right = bytes == text_at(self.position, bytes.len());
        assert!(is_right, "wrong text at position {}", self.position);
        self.kept += bytes.len() as u64;
    }

    fn read_all(&mut self) {
        while self.read() {}
    }
}

#[test]
fn a_reader_from_the_start_sees_only_printed_output() {
    let mut attempt = Attempt::new(2 << 20);
    attempt.print(100);
    attempt.capture.spill();
    let log = attempt.log();
    let is_over = AtomicBool::new(false);
    let printed = 400 * MIB as u64;
    let (seen, _folder) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut checker = Checker::open(&log);
            while !is_over.load(Ordering::Acquire) {
                checker.read();
            }
            checker.read_all();
            checker
        });
        for length in (1..).map(|turn: usize| turn * 7_919 % 70_000 + 1) {
            let left = usize::try_from(printed - attempt.printed).expect("a size");
            if left == 0 {
                break;
            }
            attempt.print(length.min(left));
        }
        let (captured, folder) = attempt.finish();
        assert_eq!(captured.log_bytes, 2 << 20);
        is_over.store(true, Ordering::Release);
        (reading.join().expect("the reader finds no error"), folder)
    });
    assert_eq!(seen.position, printed, "all output is accounted for");
    assert!(seen.kept >= 2 << 20);
}

#[test]
fn a_slow_reader_learns_exactly_how_much_it_missed() {
    let mut attempt = Attempt::new(1 << 20);
    attempt.print(700_000);
    let mut checker = Checker::open(&attempt.log());
    checker.read_all();
    assert_eq!((checker.position, checker.cut), (700_000, 0));
    attempt.print(20 * MIB);
    checker.read_all();
    assert_eq!(checker.position, attempt.printed);
    let missed = checker.cut;
    assert!(missed > 18 * MIB as u64, "{missed}");
    attempt.print(1_000);
    checker.read_all();
    assert_eq!((checker.position, checker.cut), (attempt.printed, missed), "and continues");
    let mut late = Checker::open(&attempt.log());
    late.read_all();
    assert_eq!(late.position, attempt.printed, "a late reader sees both ends");
    assert!(late.cut < 20 * MIB as u64 && late.kept > 1 << 20);
}

#[test]
fn a_reader_can_keep_a_file_open_that_was_rewritten() {
    let mut attempt = Attempt::new(1 << 20);
    attempt.print(10 * MIB);
    let mut checker = Checker::open(&attempt.log());
    checker.read();
    let printed = attempt.printed;
    let (_, folder) = attempt.finish();
    checker.read_all();
    assert_eq!(checker.position, printed);
    let mut rewritten = Checker::open(&folder.path().join("1-1.log"));
    rewritten.read_all();
    assert_eq!((rewritten.position, rewritten.kept), (printed, 1 << 20));
}

#[test]
fn a_file_without_a_complete_header_is_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("1-1.log");
    std::fs::write(&path, b"qctl").expect("a partial header");
    assert!(!Checker::open(&path).read());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn exactly_both_ends_are_kept_and_the_rest_is_counted(
        lengths in prop::collection::vec(1_usize..200_000, 1..16),
        limit in 0_u64..1_200_000,
    ) {
        let mut attempt = Attempt::new(limit);
        for length in lengths {
            attempt.print(length);
            attempt.capture.spill();
        }
        let printed = attempt.printed;
        let (captured, folder) = attempt.finish();
        prop_assert_eq!(captured.output, None);
        let mut checker = Checker::open(&folder.path().join("1-1.log"));
        checker.read_all();
        prop_assert_eq!(checker.position, printed);
        prop_assert_eq!(checker.kept, captured.log_bytes);
        prop_assert_eq!(checker.kept, printed.min(limit));
        prop_assert_eq!(checker.cut, printed - printed.min(limit));
    }
}
