//! Copying a log file into a store that keeps the output of attempts.
//!
//! The file grows while it is read, and the middle of a long one is cut out (`attempt/log_file.rs`). The parts before the
//! cut are final. When the cut grows, the parts in it are deleted, and a mark in their place says how much is missing. Of a
//! part that is only half in it, the other half is stored again.

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
    /// Where the shipped parts begin, in order.
    starts: Vec<u64>,
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
        Self { file, at: HEADER_BYTES as u64, starts: Vec::new(), cut_to: None }
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
            self.starts.extend(parts.iter().map(|part| part.at));
            self.at += taken;
        }
    }

    /// Returns `false` if the file cannot be read now. If there is another cut already, it does nothing.
    fn ship_cut(&mut self, put: Put<'_>, cut: Cut) -> Result<bool> {
        let Ok(shipped) = self.parts_around(cut) else {
            return Ok(false);
        };
        let Some(header) = self.header() else {
            return Ok(false);
        };
        if header.cut != Some(cut) {
            return Ok(true);
        }
        let gone: Range<u64> = cut.at..cut.resume_at;
        put(Some(&gone), &shipped)?;
        let is_kept = |start: u64| start < cut.at || start >= cut.resume_at;
        self.starts.extend(shipped.iter().map(|part| part.at));
        self.starts.retain(|start| is_kept(*start));
        self.starts.sort_unstable();
        self.starts.dedup();
        self.at = self.at.max(cut.resume_at);
        self.cut_to = Some(cut.resume_at);
        Ok(true)
    }

    /// The mark of a cut, and what remains of the parts that are only half in it.
    fn parts_around(&self, cut: Cut) -> io::Result<Vec<OutputPart>> {
        let mut found = Vec::new();
        let is_before = |start: &u64| *start < cut.at;
        if let Some(start) = self.starts.iter().copied().take_while(is_before).last()
            && self.start_after(cut.at) > cut.at
        {
            found.extend(parts(&self.bytes(start..cut.at)?, start).0);
        }
        let mut content = Vec::new();
        encode_cut_into(&mut content, cut.resume_printed.saturating_sub(self.printed_before(cut.at)?));
        found.extend((!content.is_empty()).then_some(OutputPart { at: cut.at, content }));
        if self.at > cut.resume_at {
            let rest = cut.resume_at..self.start_after(cut.resume_at);
            found.extend(parts(&self.bytes(rest)?, cut.resume_at).0);
        }
        Ok(found)
    }

    /// Where the first part begins at this offset or later, or the next one would.
    fn start_after(&self, offset: u64) -> u64 {
        self.starts.iter().copied().find(|start| *start >= offset).unwrap_or(self.at)
    }

    fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start);
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }

    /// How many bytes were printed before this offset, which the start of the file still contains.
    fn printed_before(&self, offset: u64) -> io::Result<u64> {
        let start = self.bytes(0..offset)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use domain::log::{Frame, Stream, encode_into};
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// A log file whose worker writes and cuts it, and what was shipped of it.
    struct Fixture {
        file: File,
        shipment: Shipment,
        stored: BTreeMap<u64, Vec<u8>>,
        /// The ends of the entries, and how many bytes were printed before each.
        ends: Vec<(u64, u64)>,
    }

    impl Fixture {
        fn new() -> Self {
            let file = tempfile::tempfile().expect("a file");
            file.write_all_at(&Header { cut: None }.encode(), 0).expect("the header is written");
            let shipment = Shipment::of(file.try_clone().expect("another descriptor"));
            Self { file, shipment, stored: BTreeMap::new(), ends: vec![(HEADER_BYTES as u64, 0)] }
        }

        fn print(&mut self, lines: usize) {
            for _ in 0..lines {
                let (offset, printed) = *self.ends.last().expect("the header's end");
                let line = format!("line {}\n", self.ends.len());
                let mut entry = Vec::new();
                encode_into(
                    &mut entry,
                    Frame { stream: Stream::Out, at: Duration::ZERO, bytes: line.as_bytes() },
                );
                self.file.write_all_at(&entry, offset).expect("the entry is written");
                self.ends.push((offset + entry.len() as u64, printed + line.len() as u64));
            }
        }

        /// Cuts everything between these two entries.
        fn cut(&mut self, from: usize, to: usize) {
            let (at, (resume_at, resume_printed)) = (self.ends[from].0, self.ends[to]);
            let header = Header { cut: Some(Cut { at, resume_at, resume_printed }) };
            self.file.write_all_at(&header.encode(), 0).expect("the header is written");
            let hole = vec![0; usize::try_from(resume_at - at).expect("a short hole")];
            self.file.write_all_at(&hole, at).expect("the hole is written");
        }

        fn ship(&mut self) {
            let stored = &mut self.stored;
            self.shipment
                .ship_by(&mut |gone, parts| {
                    stored.retain(|at, _| !gone.is_some_and(|gone| gone.contains(at)));
                    for OutputPart { at, content } in parts {
                        let inside = *at..at + content.len() as u64;
                        stored.retain(|at, _| !inside.contains(at));
                        stored.insert(*at, content.clone());
                    }
                    Ok(())
                })
                .expect("it is shipped");
        }

        #[track_caller]
        fn assert_shipped(&self) {
            let whole = parts_of(self.file.try_clone().expect("another descriptor")).expect("the parts");
            let whole: Vec<u8> = whole.into_iter().flat_map(|part| part.content).collect();
            let stored: Vec<u8> = self.stored.values().flatten().copied().collect();
            assert!(stored == whole, "{} bytes are stored, {} in the file", stored.len(), whole.len());
        }
    }

    #[test]
    fn a_cut_between_two_entries_of_a_part_loses_neither_side() {
        let mut fixture = Fixture::new();
        fixture.print(100);
        fixture.ship();
        fixture.cut(20, 60);
        fixture.ship();
        fixture.assert_shipped();
        fixture.print(20_000);
        fixture.ship();
        fixture.cut(20, 9_000);
        fixture.ship();
        fixture.assert_shipped();
        fixture.cut(20, 20_100);
        fixture.print(3);
        fixture.ship();
        fixture.assert_shipped();
    }

    #[test]
    fn any_cuts_leave_what_the_file_has() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..8 {
            let (mut fixture, head) = (Fixture::new(), random.usize(1..4_000));
            fixture.print(head);
            let mut resume = head;
            for _ in 0..10 {
                fixture.print(random.usize(0..9_000));
                if random.bool() {
                    fixture.ship();
                }
                if random.bool() {
                    resume = random.usize(resume..fixture.ends.len());
                    fixture.cut(head, resume);
                }
            }
            fixture.ship();
            fixture.assert_shipped();
        }
    }
}
