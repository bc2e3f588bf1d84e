//! Finding an entry near the end of a log, although entries can only be read forwards.
//!
//! A window onto the end of a log begins anywhere in an entry, so any of its first bytes may be the start of one. Each
//! such start leads to a chain of entries, and one of the chains is the true one. Chains that meet continue as one, and
//! a chain that no log contains ends. Where only one chain is left, it is the true one. Whatever a job printed, even if
//! it looks like entries, can at most delay that.

use super::{DecodeError, MAX_ENTRY_BYTES, decode};

/// The first offset in the window that certainly is the start of an entry. `None` if the window is too short to tell.
pub fn first_certain_entry(window: &[u8]) -> Option<usize> {
    let starts = MAX_ENTRY_BYTES.min(window.len());
    // The end of the window stands for an entry that is not complete yet.
    let mut is_open = vec![false; window.len() + 1];
    is_open[..starts].fill(true);
    let mut open = starts;
    for at in 0..window.len() {
        if !is_open[at] {
            continue;
        }
        open -= 1;
        if open == 0 && at + 1 >= starts {
            return Some(at);
        }
        let next = match decode(&window[at..]) {
            Ok((_, length)) => at + length,
            Err(DecodeError::Incomplete) => window.len(),
            Err(DecodeError::Damaged) => continue,
        };
        if !std::mem::replace(&mut is_open[next], true) {
            open += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

    use super::*;
    use crate::log::{Frame, MAX_FRAME_BYTES, Stream, encode_cut_into, encode_into};

    /// The entries of these outputs, and the offset of each.
    fn log_of<'a>(outputs: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<usize>) {
        let (mut log, mut offsets) = (Vec::new(), Vec::new());
        for (at, bytes) in outputs.into_iter().enumerate() {
            offsets.push(log.len());
            let stream = if at % 2 == 0 { Stream::Out } else { Stream::Err };
            encode_into(&mut log, Frame { stream, at: Duration::from_millis(at as u64 * 7), bytes });
        }
        (log, offsets)
    }

    #[test]
    fn an_entry_is_found_in_a_log_of_lines() {
        let lines: Vec<String> = (0..20_000).map(|line| format!("line {line} of the log\n")).collect();
        let (log, offsets) = log_of(lines.iter().map(String::as_bytes));
        for from in [1, 7, 40, 1_000] {
            let found = from + first_certain_entry(&log[from..]).expect("it is found");
            assert!(offsets.contains(&found), "{from}");
            assert!(found < log.len() / 2, "{found}");
        }
    }

    #[test]
    fn output_that_looks_like_entries_does_not_deceive() {
        let (fake, _) = log_of(vec![&b"x"[..]; 20_000]);
        let chunks: Vec<&[u8]> = fake.chunks(MAX_FRAME_BYTES).collect();
        let (mut log, mut offsets) = log_of(chunks.iter().copied().chain(vec![&b"last line\n"[..]; 2_000]));
        offsets.push(log.len());
        encode_cut_into(&mut log, 5);
        if let Some(found) = first_certain_entry(&log[3..]) {
            assert!(offsets.contains(&(found + 3)));
        }
    }

    #[test]
    fn a_short_window_and_one_without_any_entry_say_nothing() {
        assert_eq!(first_certain_entry(b""), None);
        assert_eq!(first_certain_entry(&[0; 200]), None);
        let (log, _) = log_of([vec![b'x'; MAX_FRAME_BYTES].as_slice(); 2]);
        assert_eq!(first_certain_entry(&log[1..]).filter(|found| *found < MAX_FRAME_BYTES), None);
    }

    proptest! {
        // Each case decodes from tens of thousands of starts.
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn whatever_is_found_is_an_entry(
            outputs in vec(vec(any::<u8>(), 1..3_000), 1..80), from in 0_usize..5_000, torn in 0_usize..50,
        ) {
            let (log, offsets) = log_of(outputs.iter().map(Vec::as_slice));
            let from = from.min(log.len());
            let window = &log[from..log.len().saturating_sub(torn).max(from)];
            if let Some(found) = first_certain_entry(window) {
                prop_assert!(offsets.contains(&(from + found)), "{found}");
            }
        }
    }
}
