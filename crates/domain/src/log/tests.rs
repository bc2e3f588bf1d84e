//! The format: what was written is read back, whatever is torn off or damaged.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::log::*;

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Output(Stream, u64, Vec<u8>),
    Cut(u64),
}

fn encode(all: &[Owned]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in all {
        match entry {
            Owned::Output(stream, millis, bytes) => {
                encode_into(&mut out, Frame { stream: *stream, at: Duration::from_millis(*millis), bytes });
            }
            Owned::Cut(bytes) => encode_cut_into(&mut out, *bytes),
        }
    }
    out
}

fn owned(entry: Entry<'_>) -> Owned {
    match entry {
        Entry::Output(frame) => {
            let millis = u64::try_from(frame.at.as_millis()).expect("it was written as 64 bits");
            Owned::Output(frame.stream, millis, frame.bytes.to_vec())
        }
        Entry::Cut { bytes } => Owned::Cut(bytes),
    }
}

fn read(bytes: &[u8]) -> Vec<Owned> {
    entries(bytes).map(|entry| owned(entry.expect("it is undamaged"))).collect()
}

/// Everything that was printed, without streams and times; a mark counts as that many bytes `~`.
fn text(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in read(bytes) {
        match entry {
            Owned::Output(_, _, bytes) => text.extend(bytes),
            Owned::Cut(bytes) => text.extend(vec![b'~'; usize::try_from(bytes).expect("a small cut")]),
        }
    }
    text
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Out), Just(Stream::Err)]
}

fn any_entry() -> impl Strategy<Value = Owned> {
    prop_oneof![
        4 => (stream(), 0..=MAX_MILLIS, vec(any::<u8>(), 1..300))
            .prop_map(|(stream, millis, bytes)| Owned::Output(stream, millis, bytes)),
        1 => (1..=u64::MAX).prop_map(Owned::Cut),
    ]
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(written in vec(any_entry(), 0..20)) {
        prop_assert_eq!(read(&encode(&written)), written);
    }

    #[test]
    fn a_torn_end_hides_only_the_last_entry(written in vec(any_entry(), 1..8), torn_off in 1_usize..400) {
        let bytes = encode(&written);
        let kept = &bytes[..bytes.len().saturating_sub(torn_off)];
        let mut reading = entries(kept);
        let found: Vec<Owned> = reading.by_ref().map(|entry| owned(entry.expect("torn is not damaged"))).collect();
        prop_assert_eq!(&found[..], &written[..found.len()], "what is whole is right");
        prop_assert_eq!(reading.read(), encode(&found).len());
        if let Some(next) = written.get(found.len()) {
            prop_assert!(kept.len() < encode(&found).len() + encode(std::slice::from_ref(next)).len());
        }
    }

    #[test]
    fn any_bytes_can_be_read_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
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
        let printed: Vec<Owned> =
            printed.into_iter().map(|(stream, bytes)| Owned::Output(stream, 7, bytes)).collect();
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
fn a_short_line_costs_two_bytes_more() {
    let hi = [Owned::Output(Stream::Out, 3, b"hi\n".to_vec())];
    assert_eq!(encode(&hi), [6, 3, b'h', b'i', b'\n']);
    let later = [Owned::Output(Stream::Err, 8_000, b"hi\n".to_vec())];
    assert_eq!(encode(&later).len(), 3 + 3);
}

#[test]
fn no_entry_is_longer_than_the_longest() {
    let mut out = Vec::new();
    encode_into(&mut out, Frame { stream: Stream::Err, at: Duration::MAX, bytes: &vec![1; MAX_FRAME_BYTES] });
    assert_eq!(out.len(), MAX_ENTRY_BYTES);
    assert_eq!(read(&out), [Owned::Output(Stream::Err, MAX_MILLIS, vec![1; MAX_FRAME_BYTES])]);
}

#[test]
fn long_output_takes_several_frames_and_none_takes_none() {
    let mut out = Vec::new();
    let bytes = vec![7; MAX_FRAME_BYTES * 2 + 1];
    encode_into(&mut out, Frame { stream: Stream::Out, at: Duration::ZERO, bytes: &bytes });
    assert_eq!(read(&out).len(), 3);
    assert_eq!(text(&out), bytes);
    assert!(encode(&[Owned::Output(Stream::Out, 5, Vec::new()), Owned::Cut(0)]).is_empty());
}

#[test]
fn what_nobody_wrote_is_damage() {
    let too_long = [0, 0x81, 0x80, 0x04];
    let endless_number = [0xFF; 11];
    let too_late = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1, b'x'];
    let mark_with_a_time = [2, 0, 5];
    for bytes in [&[0; 64][..], &too_long, &endless_number, &too_late, &mark_with_a_time] {
        let mut reading = entries(bytes);
        assert_eq!(reading.next(), Some(Err(LogError::Damaged)), "{bytes:?}");
        assert_eq!(reading.next(), None, "nothing is read behind the damage");
    }
}

#[test]
fn a_header_is_read_back() {
    let cut = Cut { at: 1_000, resume_at: u64::MAX, resume_printed: 77 };
    for header in [Header::default(), Header { cut: Some(cut) }] {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
}

#[test]
fn a_header_that_is_half_old_and_half_new_is_noticed() {
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
fn other_files_are_no_logs() {
    assert_eq!(Header::decode(&[0; HEADER_BYTES]), Err(LogError::NotALog));
    let mut newer = Header::default().encode();
    newer[7] += 1;
    assert_eq!(Header::decode(&newer), Err(LogError::TooNew));
}

#[test]
fn file_names_are_numbers() {
    assert_eq!(file_name(17, 2), "17-2.log");
}
