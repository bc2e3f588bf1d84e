//! A file on the simulated disk: its synced content and the later changes.

use std::ops::Range;

use super::cut::Cutoffs;
use super::record::{Change, Record};

/// The content of a file, in every state that a power cut can leave.
#[derive(Clone, Debug, Default)]
pub struct File {
    synced: Vec<u8>,
    /// The positions of the unsynced changes, in order.
    pending: Vec<usize>,
}

impl File {
    /// A synced file that existed before the recording.
    pub fn with_content(content: Vec<u8>) -> Self {
        Self { synced: content, pending: Vec::new() }
    }

    pub fn change(&mut self, at: usize) {
        self.pending.push(at);
    }

    /// Makes all changes before this position durable.
    pub fn sync(&mut self, records: &[Record], until: usize) {
        let covered = self.pending.partition_point(|&at| at < until);
        let done = self.pending.drain(..covered).collect();
        let whole = Self { synced: std::mem::take(&mut self.synced), pending: done };
        self.synced = whole.content(records, &mut Cutoffs::everything());
    }

    /// The content after a cut. Each block and the length have their own cutoffs.
    pub fn content(&self, records: &[Record], cutoffs: &mut Cutoffs) -> Vec<u8> {
        let changes = || self.pending.iter().map(|&at| (at, change_at(records, at)));
        let longest = changes().map(|(_, change)| end(change)).max().unwrap_or(0).max(self.synced.len());
        let (size_cutoff, blocks) = (cutoffs.draw(), cutoffs.blocks(longest));
        let mut content = self.synced.clone();
        content.resize(longest, 0);
        let mut size = self.synced.len();
        for (at, change) in changes() {
            if at < size_cutoff {
                size = size_after(change, size);
            }
            for block in blocks.touched(&range(change, longest)).filter(|block| at < block.cutoff) {
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

/// The file length that a change requires or sets.
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

/// The bytes that a change affects. Truncated bytes read as zeros if the file grows again.
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
