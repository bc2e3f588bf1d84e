//! Output that stays in memory or goes to a file, at times chosen by the test; and files that cannot be written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use crate::attempt::capture::*;
use domain::log::{HEADER_BYTES, Header};

const PLENTY: u64 = 16 << 20;

/// An attempt with times chosen by the test.
struct Attempt {
    folder: TempDir,
    start: Instant,
    capture: Capture,
}

impl Attempt {
    fn new() -> Self {
        Self::with_limit(PLENTY)
    }

    fn with_limit(max_bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, start) = (folder.path().join("logs/7-1.log"), Instant::now());
        Self { capture: Capture::starting_at(path, max_bytes, start), folder, start }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("logs/7-1.log")
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn print(&mut self, millis: u64, stream: Stream, bytes: impl AsRef<[u8]>) {
        let now = self.at(millis);
        self.capture.take_at(stream, bytes.as_ref(), now);
    }

    fn has_file(&self) -> bool {
        self.path().exists()
    }

    /// The captured output, and its entries from memory or from the file.
    fn finish(self) -> (CapturedOutput, Vec<(Stream, u64, String)>) {
        let path = self.path();
        let mut captured = self.capture.finish();
        let entries = captured.output.take().unwrap_or_else(|| in_file(&path));
        (captured, readable(&entries))
    }
}

fn in_file(path: &Path) -> Vec<u8> {
    let Ok(bytes) = fs::read(path) else {
        return Vec::new();
    };
    let (header, entries) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a log has a header");
    assert_eq!(Header::decode(header), Ok(Header::default()));
    entries.to_vec()
}

/// Entries as stream, time and text; a mark is shown as `<7>` on stdout.
fn readable(bytes: &[u8]) -> Vec<(Stream, u64, String)> {
    let mut reading = entries(bytes);
    let shown = reading
        .by_ref()
        .map(|entry| match entry.expect("an undamaged entry") {
            Entry::Output(frame) => {
                let millis = u64::try_from(frame.at.as_millis()).expect("a short time");
                (frame.stream, millis, String::from_utf8_lossy(frame.bytes).into_owned())
            }
            Entry::Cut { bytes } => (Stream::Out, 0, format!("<{bytes}>")),
        })
        .collect();
    assert_eq!(reading.read(), bytes.len(), "no entry is incomplete");
    shown
}

fn out(millis: u64, text: &str) -> (Stream, u64, String) {
    (Stream::Out, millis, text.to_owned())
}

fn err(millis: u64, text: &str) -> (Stream, u64, String) {
    (Stream::Err, millis, text.to_owned())
}

#[test]
fn output_with_a_reader_goes_to_the_file_at_once() {
    let mut attempt = Attempt::new();
    attempt.print(0, Stream::Out, "one\n");
    assert!(!attempt.has_file());
    attempt.capture.watch();
    assert!(attempt.has_file(), "earlier output is moved");

    let mut attempt = Attempt::new();
    attempt.capture.watch();
    assert!(!attempt.has_file(), "there is no output yet");
    attempt.print(1, Stream::Err, "two\n");
    assert!(attempt.has_file(), "later output goes there at once");
    let path = attempt.path();
    let captured = attempt.capture.finish();
    let entries = readable(&captured.output.expect("it is stored with the outcome"));
    assert_eq!((entries, path.exists()), (vec![(Stream::Err, 1, "two\n".to_owned())], false));

    let mut attempt = Attempt::new();
    attempt.capture.watch();
    attempt.print(1, Stream::Out, "soon\n");
    attempt.print(600, Stream::Out, "late\n");
    let (captured, entries) = attempt.finish();
    let expected = [(1, "soon\n"), (600, "late\n")].map(|(at, text)| (Stream::Out, at, text.to_owned()));
    assert_eq!((captured.output, entries), (None, expected.to_vec()), "late output stays in the file");
}

#[test]
fn an_attempt_without_output_creates_no_file() {
    let mut attempt = Attempt::new();
    attempt.print(3, Stream::Out, "");
    assert_eq!(attempt.capture.spill_due(), None);
    attempt.capture.spill();
    assert!(!attempt.has_file());
    assert_eq!(attempt.capture.finish(), CapturedOutput::default());
}

#[test]
fn small_and_early_output_stays_in_memory() {
    let mut attempt = Attempt::new();
    attempt.print(1, Stream::Out, "hello\n");
    attempt.print(300, Stream::Err, "oh\n");
    assert_eq!(attempt.capture.spill_due(), Some(attempt.at(500)));
    assert!(!attempt.has_file());
    let (captured, entries) = attempt.finish();
    assert_eq!(entries, [out(1, "hello\n"), err(300, "oh\n")]);
    assert_eq!((captured.log_bytes, captured.last_error_line.as_deref()), (9, Some("oh")));
}

#[test]
fn output_of_one_stream_in_quick_succession_shares_a_frame() {
    let mut attempt = Attempt::new();
    for (millis, stream, text) in [
        (1, Stream::Out, "a"),
        (3, Stream::Out, "b"),
        (6, Stream::Out, "c"),
        (7, Stream::Out, "d"),
        (7, Stream::Err, "e"),
        (7, Stream::Out, "f"),
    ] {
        attempt.print(millis, stream, text);
    }
    let (_, entries) = attempt.finish();
    assert_eq!(entries, [out(1, "abc"), out(7, "d"), err(7, "e"), out(7, "f")]);
}

#[test]
fn a_file_is_created_when_the_output_exceeds_the_memory_limit() {
    let mut attempt = Attempt::new();
    attempt.print(1, Stream::Out, "x".repeat(SMALL_BYTES));
    assert!(!attempt.has_file());
    attempt.print(2, Stream::Err, "y");
    assert!(attempt.has_file());
    assert_eq!(attempt.capture.spill_due(), None);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&attempt.path()), 0o600);
    assert_eq!(mode(&attempt.folder.path().join("logs")), 0o700);
    let (captured, entries) = attempt.finish();
    assert_eq!(entries, [out(1, &"x".repeat(SMALL_BYTES)), err(2, "y")]);
    assert_eq!(captured.log_bytes, SMALL_BYTES as u64 + 1);
    assert_eq!(captured.output, None);
}

#[test]
fn a_file_is_created_when_an_attempt_prints_late() {
    let mut attempt = Attempt::new();
    attempt.print(499, Stream::Out, "early ");
    assert!(!attempt.has_file());
    attempt.print(500, Stream::Out, "late");
    assert!(attempt.has_file());
    let (_, entries) = attempt.finish();
    assert_eq!(entries, [out(499, "early "), out(500, "late")]);
}

#[test]
fn spilled_output_can_be_read_while_the_attempt_runs() {
    let mut attempt = Attempt::new();
    attempt.print(1, Stream::Out, "working…\n");
    attempt.capture.spill();
    assert_eq!(readable(&in_file(&attempt.path())), [out(1, "working…\n")], "the attempt still runs");
    assert_eq!(attempt.capture.spill_due(), None);
}

#[test]
fn a_file_grows_with_each_print() {
    let mut attempt = Attempt::new();
    let mut expected = Vec::new();
    for second in 1..5 {
        attempt.print(1_000 * second, Stream::Out, second.to_string());
        expected.push(out(1_000 * second, &second.to_string()));
        assert_eq!(readable(&in_file(&attempt.path())), expected);
    }
}

#[test]
fn the_limit_also_applies_to_output_in_memory() {
    for (limit, kept) in [(6, "abc<4>hij"), (7, "abcd<3>hij"), (1, "a<9>"), (0, "<10>"), (10, "abcdefghij")] {
        let mut attempt = Attempt::with_limit(limit);
        attempt.print(1, Stream::Out, "abcdefghij");
        let (captured, entries) = attempt.finish();
        assert_eq!(entries.into_iter().map(|(_, _, text)| text).collect::<String>(), kept);
        assert_eq!(captured.log_bytes, limit);
    }
}

#[test]
fn a_file_keeps_exactly_the_start_and_the_end() {
    let lines: Vec<String> = (0..30_000).map(|number| format!("{number:05}")).collect();
    let text = lines.join("\n");
    for limit in [0, 1, 2, 101, 100_000, 179_998] {
        let mut attempt = Attempt::with_limit(limit);
        for (at, chunk) in text.as_bytes().chunks(997).enumerate() {
            attempt.print(at as u64, if at % 3 == 0 { Stream::Err } else { Stream::Out }, chunk);
        }
        let (captured, entries) = attempt.finish();
        let (head, tail) = (limit - limit / 2, limit / 2);
        let (head, tail) =
            (usize::try_from(head).expect("small"), text.len() - usize::try_from(tail).expect("small"));
        let expected = format!("{}<{}>{}", &text[..head], tail - head, &text[tail..]);
        let kept: String = entries.into_iter().map(|(_, _, text)| text).collect();
        assert!(kept == expected, "{limit}: {} bytes instead of {}", kept.len(), expected.len());
        assert_eq!(captured.log_bytes, limit);
    }
}

#[test]
fn output_of_exactly_the_limit_is_not_cut() {
    let mut attempt = Attempt::with_limit(100_000);
    attempt.print(1, Stream::Out, "x".repeat(60_000));
    attempt.print(2, Stream::Out, "y".repeat(40_000));
    let (captured, entries) = attempt.finish();
    assert_eq!(captured.log_bytes, 100_000);
    assert!(entries.iter().all(|(_, _, text)| !text.starts_with('<')));
}

#[test]
fn long_reads_are_split_into_frames() {
    let mut attempt = Attempt::new();
    attempt.print(1, Stream::Out, "z".repeat(5 * MAX_FRAME_BYTES + 3));
    let (captured, entries) = attempt.finish();
    assert_eq!(captured.log_bytes, 5 * MAX_FRAME_BYTES as u64 + 3);
    assert!(entries.iter().all(|(_, _, text)| text.len() <= MAX_FRAME_BYTES));
}

#[test]
fn if_no_file_can_be_created_the_start_stays_in_memory() {
    let mut attempt = Attempt::new();
    fs::write(attempt.folder.path().join("logs"), "not a folder").expect("a file instead of the folder");
    attempt.print(1, Stream::Out, "x".repeat(SMALL_BYTES - 10));
    attempt.print(600, Stream::Out, "fits");
    attempt.print(700, Stream::Out, "too much for it");
    attempt.print(800, Stream::Out, "!");
    assert!(!attempt.has_file());
    let (captured, entries) = attempt.finish();
    assert_eq!(entries[1..], [out(600, "fits"), out(0, "<16>")]);
    assert_eq!(captured.log_bytes, SMALL_BYTES as u64 - 6);
}

#[test]
fn a_file_that_could_not_be_created_is_created_later() {
    let mut attempt = Attempt::new();
    let obstacle = attempt.folder.path().join("logs");
    fs::write(&obstacle, "not a folder").expect("a file instead of the folder");
    attempt.print(600, Stream::Out, "one ");
    assert_eq!(attempt.capture.spill_due(), Some(attempt.at(1_600)));
    attempt.print(700, Stream::Out, "x".repeat(SMALL_BYTES));
    fs::remove_file(&obstacle).expect("the obstacle is removed");
    attempt.print(1_599, Stream::Out, "lost");
    assert!(!attempt.has_file(), "the next try is not due yet");
    attempt.print(1_600, Stream::Out, "two");
    let (captured, entries) = attempt.finish();
    assert_eq!(entries, [out(600, "one "), out(0, &format!("<{}>", SMALL_BYTES + 4)), out(1_600, "two")]);
    assert_eq!(captured.log_bytes, 7);
}

#[test]
fn a_job_may_delete_its_log_or_all_logs() {
    for delete_folder in [false, true] {
        let mut attempt = Attempt::with_limit(50_000);
        attempt.print(600, Stream::Out, "before");
        let logs = attempt.folder.path().join("logs");
        if delete_folder {
            fs::remove_dir_all(&logs).expect("logs/ is removed");
        } else {
            fs::remove_file(attempt.path()).expect("the log is removed");
        }
        for millis in 700..800 {
            attempt.print(millis, Stream::Err, "more than the limit allows".repeat(100));
        }
        let captured = attempt.capture.finish();
        assert!(captured.last_error_line.is_some());
        assert!(captured.log_bytes >= 50_000);
    }
}

#[test]
fn nothing_is_written_through_a_symlink_of_a_job() {
    let mut attempt = Attempt::new();
    let victim = attempt.folder.path().join("precious");
    fs::write(&victim, "untouched").expect("a file");
    fs::create_dir(attempt.folder.path().join("logs")).expect("logs/");
    symlink(&victim, attempt.path()).expect("a link");
    attempt.print(600, Stream::Out, "hello");
    assert_eq!(fs::read(&victim).expect("it is there"), b"untouched");
    assert_eq!(readable(&in_file(&attempt.path())), [out(600, "hello")]);
}
