//! The output of attempts in a store that spans machines: a reader cannot open a log file on another one.

use std::ops::Range;

use crate::rows::jobs::{output_parts, row};
use crate::rows::keys::JobSeq;
use crate::{LeaseRef, Result, Store};
use domain::values::name::JobId;

/// Whole entries of output (see [`domain::log`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPart {
    /// The offset of the part in the log file of its attempt.
    pub at: u64,
    pub content: Vec<u8>,
}

/// How many parts there are, and how many bytes they have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsSize {
    pub parts: u64,
    pub bytes: u64,
}

/// An attempt whose output is shipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShippedAttempt {
    pub lease: LeaseRef,
    /// The number of the job. After a failover to a standby that lagged behind, it may be that of another job.
    pub number: u64,
}

/// The longest part, unless a single entry is longer.
pub const MAX_PART_BYTES: usize = 64 << 10;

impl dyn Store + '_ {
    /// Adds parts to the output of an attempt, after it deleted those that begin in `gone`. Doing it twice changes nothing.
    /// The output of a job that was removed is not kept.
    pub fn put_output(
        &self,
        attempt: &ShippedAttempt,
        gone: Option<&Range<u64>>,
        parts: &[OutputPart],
    ) -> Result<()> {
        let (seq, number) = (JobSeq::of_number(attempt.number), attempt.lease.attempt);
        self.transact("put_output", |tx| {
            if row::id(tx, seq)?.as_ref() != Some(&attempt.lease.job) {
                return Ok(());
            }
            if let Some(gone) = gone {
                output_parts::delete_range(tx, seq, number, gone.start, gone.end)?;
            }
            output_parts::put(tx, seq, number, parts)
        })
    }

    /// The parts of an attempt's output that begin at this offset or later, in order, until they have `max_bytes`.
    pub fn output_after(
        &self,
        job: &JobId,
        attempt: u32,
        offset: u64,
        max_bytes: usize,
    ) -> Result<Vec<OutputPart>> {
        self.view(|tx| match row::by_id(tx, job)? {
            Some(job) => output_parts::after(tx, job.seq, attempt, offset, max_bytes),
            None => Ok(Vec::new()),
        })
    }

    /// The size of the parts of an attempt's output that begin before this offset. A reader that has read another size knows
    /// that some were deleted since.
    pub fn output_size_before(&self, job: &JobId, attempt: u32, offset: u64) -> Result<PartsSize> {
        self.view(|tx| match row::by_id(tx, job)? {
            Some(job) => output_parts::size_before(tx, job.seq, attempt, offset),
            None => Ok(PartsSize::default()),
        })
    }

    /// Deletes the parts of an attempt, because its output is stored with it.
    pub fn delete_output_parts(&self, attempt: &ShippedAttempt) -> Result<()> {
        let seq = JobSeq::of_number(attempt.number);
        self.transact("delete_output_parts", |tx| {
            if row::id(tx, seq)?.as_ref() != Some(&attempt.lease.job) {
                return Ok(());
            }
            output_parts::delete_of_attempt(tx, seq, attempt.lease.attempt)
        })
    }
}
