//! One file on the simulated disk: what was synced, and what was done to it since.

use std::ops::Range;

use super::cut::Limits;
use super::record::{Change, Record};

/// The content of a file, through all that a power cut can make of it.
#[derive(Clone, Debug, Default)]
pub struct File {
    synced: Vec<u8>,
    /// The positions of changes that no sync has covered yet, in their order.
    pending: Vec<usize>,
}

impl File {
    /// One that was there before the recording, synced.
    pub fn with_content(content: Vec<u8>) -> Self {
        Self { synced: content, pending: Vec::new() }
    }

    pub fn change(&mut self, at: usize) {
        self.pending.push(at);
    }

    /// Everything before this position is safe from now on.
    pub fn sync(&mut self, records: &[Record], until: usize) {
        let covered = self.pending.partition_point(|&at| at < until);
        let done = self.pending.drain(..covered).collect();
        let whole = Self { synced: std::mem::take(&mut self.synced), pending: done };
        self.synced = whole.content(records, &mut Limits::everything());
    }

    /// What is found after a cut. Each block shows a moment of its own, and so does the length.
    pub fn content(&self, records: &[Record], limits: &mut Limits) -> Vec<u8> {
        let changes = || self.pending.iter().map(|&at| (at, change_at(records, at)));
        let longest = changes().map(|(_, change)| end(change)).max().unwrap_or(0).max(self.synced.len());
        let (size_limit, blocks) = (limits.moment(), limits.blocks(longest));
        let mut content = self.synced.clone();
        content.resize(longest, 0);
        let mut size = self.synced.len();
        for (at, change) in changes() {
            if at < size_limit {
                size = size_after(change, size);
            }
            for block in blocks.touched(&range(change, longest)).filter(|block| at < block.limit) {
                apply(change, &mut content, block.range);
            }
        }
        content.truncate(size);
        content
    }
}

fn change_at(records: &[Record], at: usize) -> &Change {
    let Record::Change { change, .. } = &records[at] else { unreachable!("only changes are pending") };
    change
}

/// The length that a change needs or makes.
fn end(change: &Change) -> usize {
    size_after(change, 0)
}

fn size_after(change: &Change, size: usize) -> usize {
    match change {
        Change::Write { offset, data } => size.max(offset + data.len()),
        Change::Resize { size } => *size,
        Change::Zero { .. } => size,
    }
}

/// The bytes that a change touches. What is cut off reads as zeros if the file grows again.
fn range(change: &Change, longest: usize) -> Range<usize> {
    match change {
        Change::Write { offset, data } => *offset..offset + data.len(),
        Change::Resize { size } => *size..longest,
        Change::Zero { offset, length } => (*offset).min(longest)..(offset + length).min(longest),
    }
}

fn apply(change: &Change, content: &mut [u8], part: Range<usize>) {
    match change {
        Change::Write { offset, data } => {
            let from = part.start - offset;
            content[part.clone()].copy_from_slice(&data[from..from + part.len()]);
        }
        Change::Resize { .. } | Change::Zero { .. } => content[part].fill(0),
    }
}
