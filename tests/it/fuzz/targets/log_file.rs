//! A log file with any content: reading it terminates, with output or with an error.
//!
//! The first byte of the input decides how the file begins: as given, with a header without a cut, or with a header
//! whose cut consists of the numbers that follow. Random mutation would never find a valid checksum.

use std::cell::RefCell;

use domain::log::{Cut, Entry, Header, entries};
use ops::jobs::logs::Piece;
use ops::jobs::logs::reader::LogReader;
use tempfile::TempDir;

use super::file::write_new;
use super::message;
use super::numbers::Numbers;

pub const TOKENS: &[&str] = &[
    "\0",
    "\u{1}",
    "\u{2}",
    "qctllog\u{1}",
    "\0\u{5}hello",
    "\u{1}\u{5}world",
    "\0\0\u{1}",
    "\0\0\u{7f}",
    "\u{28}\0\0\0\0\0\0\0",
    "\u{32}\0\0\0\0\0\0\0",
    "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}",
];

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a temporary folder"));
        let path = folder.path().join("1-1.log");
        let (header, body) = parts(data);
        let bytes = header.map_or_else(|| body.to_vec(), |header| [&header.encode()[..], body].concat());
        write_new(&path, &bytes);
        let mut reader = LogReader::open(&path).expect("the log opens").expect("the log exists");
        check(&mut reader, header, body);
    });
}

fn parts(data: &[u8]) -> (Option<Header>, &[u8]) {
    let mut numbers = Numbers(data);
    let header = match numbers.byte() % 3 {
        0 => None,
        1 => Some(Header::default()),
        _ => {
            let cut = Cut { at: numbers.u64(), resume_at: numbers.u64(), resume_printed: numbers.u64() };
            Some(Header { cut: Some(cut) })
        }
    };
    (header, numbers.0)
}

fn check(reader: &mut LogReader, header: Option<Header>, body: &[u8]) {
    let mut pieces = Vec::new();
    // An entry has at least two bytes, and a cut is reported once.
    for _ in 0..body.len() + 3 {
        match reader.read() {
            Ok(more) if more.is_empty() => return check_pieces(&pieces, header, body),
            Ok(more) => pieces.extend(more),
            Err(error) => return message::check(&error, &[0; 400]),
        }
    }
    panic!("reading does not terminate");
}

fn check_pieces(pieces: &[Piece], header: Option<Header>, body: &[u8]) {
    let kept = |piece: &Piece| match piece {
        Piece::Output(chunk) => chunk.bytes.len(),
        Piece::Cut { .. } => 0,
    };
    assert!(pieces.iter().map(kept).sum::<usize>() <= 2 * body.len(), "more is read than was written");
    if header == Some(Header::default()) {
        let expected = entries(body).map_while(Result::ok).map(|entry: Entry<'_>| Piece::from(entry));
        assert_eq!(pieces, expected.collect::<Vec<_>>());
    }
}
