//! Copying a log file into a store that keeps the output of attempts.
//!
//! The file grows while it is read, and the middle of a long one is cut out (`attempt/log_file.rs`). The parts before the
//! cut are final. When the cut grows, the parts behind it are deleted, and a mark in their place says how much is missing.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{MAX_PART_BYTES, OutputPart, Result, ShippedAttempt, Store};
use domain::log::{Cut, Entry, HEADER_BYTES, Header, MAX_ENTRY_BYTES, encode_cut_into, entries};
use sys::fs::owner_only;

/// How much is read and sent at once.
const BATCH_BYTES: usize = 16 * MAX_PART_BYTES;
const _: () = assert!(BATCH_BYTES >= MAX_ENTRY_BYTES, "an entry must fit, or nothing would be shipped");

/// How much of a log file is in the store.
#[derive(Debug)]
pub struct Shipment {
    file: File,
    /// The offset up to which everything was shipped.
    at: u64,
    /// The end of the cut that the store knows of.
    cut_to: Option<u64>,
}

/// Stores parts, after it deleted those that begin in a range.
type Put<'a> = &'a mut dyn FnMut(Option<&Range<u64>>, &[OutputPart]) -> Result<()>;

/// The whole output in a log file that is not written any more.
pub fn parts_of(file: File) -> Result<Vec<OutputPart>> {
    let mut all: Vec<OutputPart> = Vec::new();
    Shipment::of(file).ship_by(&mut |gone, parts| {
        all.retain(|part| !gone.is_some_and(|gone| gone.contains(&part.at)));
        all.extend_from_slice(parts);
        Ok(())
    })?;
    Ok(all)
}

impl Shipment {
    /// `None` if there is no such file.
    pub fn open(path: &Path) -> Option<Self> {
        let file = owner_only::open_regular(path).ok().flatten()?;
        Some(Self::of(file))
    }

    fn of(file: File) -> Self {
        Self { file, at: HEADER_BYTES as u64, cut_to: None }
    }

    /// Ships what was written since the last time. A file that cannot be read is shipped as far as it can be.
    pub fn ship(&mut self, attempt: &ShippedAttempt, store: &dyn Store) -> Result<()> {
        self.ship_by(&mut |gone, parts| store.put_output(attempt, gone, parts))
    }

    fn ship_by(&mut self, put: Put<'_>) -> Result<()> {
        let mut buffer = vec![0; BATCH_BYTES];
        loop {
            let Ok(read) = self.file.read_at(&mut buffer, self.at) else {
                return Ok(());
            };
            // The header is read last: what was read before it is intact unless the header says that it was cut.
            let Some(header) = self.header() else {
                return Ok(());
            };
            let cut = header.cut.filter(|cut| self.cut_to != Some(cut.resume_at));
            if let Some(cut) = cut.filter(|cut| self.at >= cut.at) {
                if !self.ship_cut(put, cut)? {
                    return Ok(());
                }
                continue;
            }
            let before_cut =
                cut.map_or(read, |cut| usize::try_from(cut.at - self.at).unwrap_or(read).min(read));
            let (parts, taken) = parts(&buffer[..before_cut], self.at);
            if parts.is_empty() {
                return Ok(());
            }
            put(None, &parts)?;
            self.at += taken;
        }
    }

    /// Returns whether the store knows of the cut.
    fn ship_cut(&mut self, put: Put<'_>, cut: Cut) -> Result<bool> {
        let Ok(before) = self.printed_before(cut.at) else {
            return Ok(false);
        };
        let mut content = Vec::new();
        encode_cut_into(&mut content, cut.resume_printed.saturating_sub(before));
        let mark = (!content.is_empty()).then_some(OutputPart { at: cut.at, content });
        let gone: Range<u64> = cut.at..cut.resume_at;
        put(Some(&gone), mark.as_slice())?;
        self.at = self.at.max(cut.resume_at);
        self.cut_to = Some(cut.resume_at);
        Ok(true)
    }

    /// How many bytes were printed before this offset, which the start of the file still contains.
    fn printed_before(&self, offset: u64) -> io::Result<u64> {
        let mut start = vec![0; usize::try_from(offset).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut start, 0)?;
        Ok(entries(&start[HEADER_BYTES..]).map_while(Result::ok).map(printed).sum())
    }

    /// `None` if it cannot be read now.
    fn header(&self) -> Option<Header> {
        let mut bytes = [0; HEADER_BYTES];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        Header::decode(&bytes).ok()
    }
}

fn printed(entry: Entry<'_>) -> u64 {
    match entry {
        Entry::Output(frame) => frame.printed(),
        Entry::Cut { bytes } => bytes,
    }
}

/// The whole entries of these bytes, which begin at this offset, in parts; and the length of all of them.
fn parts(bytes: &[u8], offset: u64) -> (Vec<OutputPart>, u64) {
    let mut parts: Vec<OutputPart> = Vec::new();
    let mut reading = entries(bytes);
    let mut from = 0;
    while let Some(Ok(_)) = reading.next() {
        let content = &bytes[from..reading.read()];
        match parts.last_mut() {
            Some(last) if last.content.len() + content.len() <= MAX_PART_BYTES => {
                last.content.extend_from_slice(content);
            }
            Some(_) | None => {
                parts.push(OutputPart { at: offset + from as u64, content: content.to_vec() });
            }
        }
        from = reading.read();
    }
    (parts, from as u64)
}
