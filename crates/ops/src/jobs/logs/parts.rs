//! Reading the output of an attempt from a store that keeps it: the worker may run on another machine.

use std::time::{Duration, Instant};

use super::{Piece, whole_pieces};
use crate::OpError;
use domain::job::Attempt;
use domain::log::HEADER_BYTES;
use domain::values::name::JobId;
use store::{OutputPart, PartsSize, Store};

/// How many bytes one read requests.
const READ_BYTES: usize = 256 << 10;
/// How long to wait for the end of the output: its worker ships it after it has recorded the outcome.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const END_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub(super) struct PartReader {
    /// The offset of the next part.
    at: u64,
    /// How many bytes of output were read.
    kept: u64,
    /// The parts that were read, and the last one with a mark for missing output, which is replaced when more is cut out.
    size: PartsSize,
    mark: Option<OutputPart>,
    /// The last piece was a mark for missing output: the next part begins after a gap.
    is_after_cut: bool,
    /// Nothing is left to wait for.
    is_over: bool,
}

impl Default for PartReader {
    fn default() -> Self {
        Self {
            at: HEADER_BYTES as u64,
            kept: 0,
            size: PartsSize::default(),
            mark: None,
            is_after_cut: false,
            is_over: false,
        }
    }
}

impl PartReader {
    /// The next pieces; empty if there is nothing more for now, or at the end.
    pub(super) fn read(
        &mut self,
        store: &dyn Store,
        job: &JobId,
        attempt: u32,
        has_ended: bool,
    ) -> Result<Vec<Piece>, OpError> {
        let began = Instant::now();
        loop {
            let pieces = self.next(store, job, attempt)?;
            if !pieces.is_empty() || !has_ended || self.is_over {
                return Ok(pieces);
            }
            if let Some(stored) = store.output(job, attempt)? {
                self.is_over = true;
                return self.rest_of(&stored, job, attempt);
            }
            let Some(missing) = self.missing(store, job, attempt)? else {
                self.is_over = true;
                return Ok(Vec::new());
            };
            if began.elapsed() >= END_TIMEOUT {
                self.is_over = true;
                return Err(missing);
            }
            std::thread::sleep(END_POLL_INTERVAL);
        }
    }

    /// The offset of the next part.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Whether the store still has every part that was read.
    pub(super) fn is_whole(&self, store: &dyn Store, job: &JobId, attempt: u32) -> Result<bool, OpError> {
        if self.is_over || store.output_size_before(job, attempt, self.at)? != self.size {
            return Ok(false);
        }
        let Some(mark) = &self.mark else {
            return Ok(true);
        };
        Ok(store.output_after(job, attempt, mark.at, 1)?.first() == Some(mark))
    }

    fn next(&mut self, store: &dyn Store, job: &JobId, attempt: u32) -> Result<Vec<Piece>, OpError> {
        let mut pieces = Vec::new();
        for part in store.output_after(job, attempt, self.at, READ_BYTES)? {
            // The tail of long output is a moving window: this reader was too slow for it.
            let is_gap = part.at > self.at && !self.is_after_cut;
            pieces.extend(is_gap.then(|| Piece::Cut { bytes: part.at - self.at }));
            let damaged = |source| OpError::DamagedOutput { job: job.clone(), attempt, source };
            pieces.extend(whole_pieces(&part.content).map_err(damaged)?.0);
            self.is_after_cut = matches!(pieces.last(), Some(Piece::Cut { .. }));
            self.at = part.at + part.content.len() as u64;
            self.size.parts += 1;
            self.size.bytes += part.content.len() as u64;
            if self.is_after_cut {
                self.mark = Some(part);
            }
        }
        self.kept += pieces.iter().map(kept).sum::<u64>();
        Ok(pieces)
    }

    /// The output that is stored with the attempt, without what was read from parts before.
    fn rest_of(&self, stored: &[u8], job: &JobId, attempt: u32) -> Result<Vec<Piece>, OpError> {
        let damaged = |source| OpError::DamagedOutput { job: job.clone(), attempt, source };
        let mut skip = self.kept;
        let (mut pieces, _) = whole_pieces(stored).map_err(damaged)?;
        pieces.retain_mut(|piece| match piece {
            Piece::Output(chunk) => {
                let skipped = usize::try_from(skip).unwrap_or(usize::MAX).min(chunk.bytes.len());
                skip -= skipped as u64;
                chunk.bytes.drain(..skipped);
                !chunk.bytes.is_empty()
            }
            Piece::Cut { .. } => true,
        });
        Ok(pieces)
    }

    /// The error for output that was kept but has not arrived; `None` if all of it was read.
    fn missing(&self, store: &dyn Store, job: &JobId, attempt: u32) -> Result<Option<OpError>, OpError> {
        let history = store.record(job)?.map(|record| record.history).unwrap_or_default();
        let is_short = |known: &&Attempt| {
            known.number == attempt
                && known.ending.as_ref().is_some_and(|ending| ending.log_bytes > self.kept)
        };
        Ok(history.iter().find(is_short).map(|known| OpError::OutputElsewhere {
            job: job.clone(),
            attempt,
            host: known.host.clone(),
        }))
    }
}

/// How many bytes of output a piece has.
fn kept(piece: &Piece) -> u64 {
    match piece {
        Piece::Output(chunk) => chunk.bytes.len() as u64,
        Piece::Cut { .. } => 0,
    }
}
