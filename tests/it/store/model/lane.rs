//! The limits of a queue, in memory.
//!
//! Tokens are counted in parts, so that all arithmetic uses integers: the rates here refill a bucket by a whole number
//! of parts per millisecond.

/// The number of parts of a token.
const TOKEN: i64 = 60_000;

/// The number of starts per period, and the period in milliseconds.
pub type MemoryRate = (i64, i64);

#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub is_paused: bool,
    pub concurrency: Option<usize>,
    bucket: Option<MemoryBucket>,
}

#[derive(Clone, Copy, Debug)]
struct MemoryBucket {
    rate: MemoryRate,
    parts: i64,
    filled_at: i64,
}

impl Lane {
    pub fn is_limited(&self) -> bool {
        self.concurrency.is_some() || self.bucket.is_some()
    }

    /// Whether another job may start while `running` jobs run.
    pub fn has_room(&self, running: usize, now: i64) -> bool {
        self.has_capacity(running) && self.bucket.is_none_or(|bucket| bucket.filled(now).parts >= TOKEN)
    }

    /// As `has_room`, without considering the rate.
    pub fn has_capacity(&self, running: usize) -> bool {
        !self.is_paused && self.concurrency.is_none_or(|limit| running < limit)
    }

    /// Starts under an earlier rate count.
    pub fn set_rate(&mut self, rate: Option<MemoryRate>, now: i64) {
        let earlier = self.bucket.map(|bucket| bucket.filled(now).parts);
        self.bucket = rate.map(|rate| {
            let full = rate.0 * TOKEN;
            MemoryBucket { rate, parts: earlier.unwrap_or(full).min(full), filled_at: now }
        });
    }

    /// A job starts.
    pub fn take_token(&mut self, now: i64) {
        self.bucket = self.bucket.map(|bucket| bucket.filled(now).plus(-TOKEN));
    }

    /// A claimed job did not start.
    pub fn return_token(&mut self, now: i64) {
        self.bucket = self.bucket.map(|bucket| bucket.filled(now).plus(TOKEN));
    }

    /// When the rate allows the next start.
    pub fn next_token_at(&self, now: i64) -> Option<i64> {
        let bucket = self.bucket?.filled(now);
        let missing = TOKEN - bucket.parts;
        let per_millisecond = bucket.parts_per_millisecond();
        (missing > 0).then(|| now + (missing + per_millisecond - 1) / per_millisecond)
    }
}

impl MemoryBucket {
    fn parts_per_millisecond(self) -> i64 {
        self.rate.0 * TOKEN / self.rate.1
    }

    fn filled(self, now: i64) -> Self {
        let gained = (now - self.filled_at) * self.parts_per_millisecond();
        Self { filled_at: now, ..self }.plus(gained)
    }

    /// Capped at a full bucket.
    fn plus(self, parts: i64) -> Self {
        Self { parts: (self.parts + parts).min(self.rate.0 * TOKEN), ..self }
    }
}
