//! The log format: entries survive a round trip, and incomplete or damaged ones are detected.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::log::*;

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum OwnedEntry {
    Output(Stream, u64, Vec<u8>),
    Cut(u64),
}

fn encode(all: &[OwnedEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in all {
        match entry {
            OwnedEntry::Output(stream, millis, bytes) => {
                encode_into(&mut out, Frame { stream: *stream, at: Duration::from_millis(*millis), bytes });
            }
            OwnedEntry::Cut(bytes) => encode_cut_into(&mut out, *bytes),
        }
    }
    out
}

fn owned(entry: Entry<'_>) -> OwnedEntry {
    match entry {
        Entry::Output(frame) => {
            let millis = u64::try_from(frame.at.as_millis()).expect("written as 64 bits");
            OwnedEntry::Output(frame.stream, millis, frame.bytes.to_vec())
        }
        Entry::Cut { bytes } => OwnedEntry::Cut(bytes),
    }
}

fn read(bytes: &[u8]) -> Vec<OwnedEntry> {
    entries(bytes).map(|entry| owned(entry.expect("undamaged"))).collect()
}

/// All output without streams and times; a mark counts as that many `~`.
fn text(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in read(bytes) {
        match entry {
            OwnedEntry::Output(_, _, bytes) => text.extend(bytes),
            OwnedEntry::Cut(bytes) => text.extend(vec![b'~'; usize::try_from(bytes).expect("a small cut")]),
        }
    }
    text
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Out), Just(Stream::Err)]
}

fn any_entry() -> impl Strategy<Value = OwnedEntry> {
    prop_oneof![
        4 => (stream(), 0..=MAX_MILLIS, vec(any::<u8>(), 1..300))
            .prop_map(|(stream, millis, bytes)| OwnedEntry::Output(stream, millis, bytes)),
        1 => (1..=u64::MAX).prop_map(OwnedEntry::Cut),
    ]
}

proptest! {
    #[test]
    fn entries_survive_a_round_trip(written in vec(any_entry(), 0..20)) {
        prop_assert_eq!(read(&encode(&written)), written);
    }

    #[test]
    fn a_truncated_log_lacks_only_the_last_entry(written in vec(any_entry(), 1..8), torn_off in 1_usize..400) {
        let bytes = encode(&written);
        let kept = &bytes[..bytes.len().saturating_sub(torn_off)];
        let mut reading = entries(kept);
        let found: Vec<OwnedEntry> = reading.by_ref().map(|entry| owned(entry.expect("truncation is not damage"))).collect();
        prop_assert_eq!(&found[..], &written[..found.len()], "complete entries are intact");
        prop_assert_eq!(reading.read(), encode(&found).len());
        if let Some(next) = written.get(found.len()) {
            prop_assert!(kept.len() < encode(&found).len() + encode(std::slice::from_ref(next)).len());
        }
    }

    #[test]
    fn reading_arbitrary_bytes_does_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        let mut reading = entries(&bytes);
        let _ = reading.by_ref().count();
        prop_assert!(reading.read() <= bytes.len());
    }

    #[test]
    fn both_ends_are_kept_exactly(
        printed in vec((stream(), vec(any::<u8>(), 1..40)), 0..20),
        head in 0_u64..300,
        tail in 0_u64..300,
    ) {
        let printed: Vec<OwnedEntry> =
            printed.into_iter().map(|(stream, bytes)| OwnedEntry::Output(stream, 7, bytes)).collect();
        let frames = encode(&printed);
        let (whole, kept) = (text(&frames), text(&keep_ends(&frames, head, tail)));
        let (head, tail) = (usize::try_from(head).expect("small"), usize::try_from(tail).expect("small"));
        let mut expected = whole.clone();
        if head + tail < whole.len() {
            let resume = whole.len() - tail;
            expected[head..resume].fill(b'~');
        }
        prop_assert_eq!(kept, expected);
    }
}

#[test]
fn the_frame_of_a_short_line_costs_two_or_three_bytes() {
    let hi = [OwnedEntry::Output(Stream::Out, 3, b"hi\n".to_vec())];
    assert_eq!(encode(&hi), [6, 3, b'h', b'i', b'\n']);
    let later = [OwnedEntry::Output(Stream::Err, 8_000, b"hi\n".to_vec())];
    assert_eq!(encode(&later).len(), 3 + 3);
}

#[test]
fn the_longest_frame_fits_the_maximum_entry_length() {
    let mut out = Vec::new();
    encode_into(&mut out, Frame { stream: Stream::Err, at: Duration::MAX, bytes: &vec![1; MAX_FRAME_BYTES] });
    assert_eq!(out.len(), MAX_ENTRY_BYTES);
    assert_eq!(read(&out), [OwnedEntry::Output(Stream::Err, MAX_MILLIS, vec![1; MAX_FRAME_BYTES])]);
}

#[test]
fn long_output_takes_several_frames_and_empty_output_takes_none() {
    let mut out = Vec::new();
    let bytes = vec![7; MAX_FRAME_BYTES * 2 + 1];
    encode_into(&mut out, Frame { stream: Stream::Out, at: Duration::ZERO, bytes: &bytes });
    assert_eq!(read(&out).len(), 3);
    assert_eq!(text(&out), bytes);
    assert!(encode(&[OwnedEntry::Output(Stream::Out, 5, Vec::new()), OwnedEntry::Cut(0)]).is_empty());
}

#[test]
fn bytes_that_no_writer_writes_are_damage() {
    let too_long = [0, 0x81, 0x80, 0x04];
    let endless_number = [0xFF; 11];
    let too_late = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1, b'x'];
    let mark_with_a_time = [2, 0, 5];
    for bytes in [&[0; 64][..], &too_long, &endless_number, &too_late, &mark_with_a_time] {
        let mut reading = entries(bytes);
        assert_eq!(reading.next(), Some(Err(LogError::Damaged)), "{bytes:?}");
        assert_eq!(reading.next(), None, "reading stops at the damage");
    }
}

#[test]
fn a_header_survives_a_round_trip() {
    let cut = Cut { at: 1_000, resume_at: u64::MAX, resume_printed: 77 };
    for header in [Header::default(), Header { cut: Some(cut) }] {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
}

#[test]
fn a_mix_of_an_old_and_a_new_header_is_detected() {
    let old = Header::default().encode();
    let new = Header { cut: Some(Cut { at: 1_000, resume_at: 5_000, resume_printed: 4_900 }) }.encode();
    for mixed_at in 9..HEADER_BYTES {
        let mut mixed = new;
        mixed[..mixed_at].copy_from_slice(&old[..mixed_at]);
        let expected = if mixed == old { Ok(Header::default()) } else { Err(LogError::Damaged) };
        let expected = if mixed == new { Header::decode(&new) } else { expected };
        assert_eq!(Header::decode(&mixed), expected, "{mixed_at}");
    }
}

#[test]
fn files_that_are_not_logs_or_are_newer_are_refused() {
    assert_eq!(Header::decode(&[0; HEADER_BYTES]), Err(LogError::NotALog));
    let mut newer = Header::default().encode();
    newer[7] += 1;
    assert_eq!(Header::decode(&newer), Err(LogError::TooNew));
}

#[test]
fn a_file_name_consists_of_the_job_number_and_the_attempt() {
    assert_eq!(file_name(17, 2), "17-2.log");
}
