//! The entries of a log: any bytes are read up to the first invalid entry, and written entries are read back.

use std::time::Duration;

use domain::log::{
    Entry, Frame, HEADER_BYTES, Header, LogError, MAX_FRAME_BYTES, Stream, encode_cut_into, encode_into,
    entries, keep_ends,
};

use super::numbers::Numbers;

pub const TOKENS: &[&str] = &[
    "\0\0\u{1}",
    "\0\0\0",
    "\0\u{5}hello",
    "\u{1}\u{5}hello",
    "\u{7f}",
    "qctllog\u{1}",
    "\0\0\u{7f}",
    "\u{2}\u{1}\n",
];

pub fn run(data: &[u8]) {
    check_reading(data);
    check_writing(data);
    check_header(data);
}

/// All entries up to the first invalid one.
fn read(bytes: &[u8]) -> (Vec<Entry<'_>>, usize, Option<LogError>) {
    let mut reading = entries(bytes);
    let mut found = Vec::new();
    let error = loop {
        match reading.next() {
            Some(Ok(entry)) => found.push(entry),
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    assert!(reading.next().is_none(), "the iterator continues after its end");
    (found, reading.read(), error)
}

fn check_reading(data: &[u8]) {
    let (found, taken, error) = read(data);
    assert!(taken <= data.len());
    let mut written = Vec::new();
    for entry in &found {
        match entry {
            Entry::Output(frame) => {
                assert!((1..=MAX_FRAME_BYTES).contains(&frame.bytes.len()));
                encode_into(&mut written, *frame);
            }
            Entry::Cut { bytes } => encode_cut_into(&mut written, *bytes),
        }
    }
    assert_eq!(read(&written), (found.clone(), written.len(), None), "entries survive a round trip");
    // Truncated data yields the entries before the truncation.
    let torn = &data[..data.len() / 2];
    let (before, torn_taken, torn_error) = read(torn);
    assert!(found.starts_with(&before) && torn_taken <= taken, "truncated data is read differently");
    assert!(torn_error.is_none() || torn_error == error, "truncation must not add an error");
}

/// Splits the input into frames, all of which must be read back.
fn check_writing(data: &[u8]) {
    let mut written = Vec::new();
    let frames: Vec<Frame<'_>> = data.chunks(7).map(frame).collect();
    for frame in &frames {
        encode_into(&mut written, *frame);
    }
    let expected: Vec<Entry<'_>> = frames.iter().copied().map(Entry::Output).collect();
    assert_eq!(read(&written), (expected, written.len(), None));
    let first = usize::from(data.first().copied().unwrap_or(0));
    let last = usize::from(data.last().copied().unwrap_or(0));
    check_ends(data, &written, first, last);
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    let stream = Stream::ALL[usize::from(bytes[0] & 1)];
    Frame { stream, at: Duration::from_millis(u64::from(bytes[0]) << (bytes.len() * 4)), bytes }
}

fn check_ends(printed: &[u8], written: &[u8], head: usize, tail: usize) {
    let kept = keep_ends(written, head as u64, tail as u64);
    let (found, _, error) = read(&kept);
    assert_eq!(error, None);
    let (mut before, mut after, mut cut) = (Vec::new(), Vec::new(), None);
    for entry in found {
        match entry {
            Entry::Output(frame) if cut.is_none() => before.extend_from_slice(frame.bytes),
            Entry::Output(frame) => after.extend_from_slice(frame.bytes),
            Entry::Cut { bytes } => assert_eq!(cut.replace(bytes), None, "there is only one cut"),
        }
    }
    if head + tail >= printed.len() {
        assert_eq!((before.as_slice(), cut), (printed, None), "output that fits is kept whole");
        return;
    }
    assert_eq!(before, printed[..head], "the beginning");
    assert_eq!(after, printed[printed.len() - tail..], "the end");
    assert_eq!(cut, Some((printed.len() - head - tail) as u64), "the size of the cut");
}

fn check_header(data: &[u8]) {
    let mut bytes = [0; HEADER_BYTES];
    let count = data.len().min(HEADER_BYTES);
    bytes[..count].copy_from_slice(&data[..count]);
    if let Ok(header) = Header::decode(&bytes) {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
    let mut whole = Header::default().encode();
    let mut numbers = Numbers(data);
    let (at, bit) = (usize::from(numbers.byte()) % HEADER_BYTES, numbers.byte() % 8);
    whole[at] ^= 1 << bit;
    assert_ne!(Header::decode(&whole), Ok(Header::default()), "a flipped bit is detected");
}
