//! What holds the jobs of a queue back, in memory.
//!
//! Tokens are counted in parts of one, so that all of it is whole numbers: the rates here fill a bucket by whole parts.

/// The parts of a token.
const TOKEN: i64 = 60_000;

/// So many jobs may start in so many milliseconds.
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

    /// Whether one more may start where so many run.
    pub fn has_room(&self, running: usize, now: i64) -> bool {
        self.has_place(running) && self.bucket.is_none_or(|bucket| bucket.filled(now).parts >= TOKEN)
    }

    /// The same, whatever its rate says.
    pub fn has_place(&self, running: usize) -> bool {
        !self.is_paused && self.concurrency.is_none_or(|limit| running < limit)
    }

    /// What started under an earlier rate counts.
    pub fn set_rate(&mut self, rate: Option<MemoryRate>, now: i64) {
        let earlier = self.bucket.map(|bucket| bucket.filled(now).parts);
        self.bucket = rate.map(|rate| {
            let full = rate.0 * TOKEN;
            MemoryBucket { rate, parts: earlier.unwrap_or(full).min(full), filled_at: now }
        });
    }

    /// One starts.
    pub fn take_token(&mut self, now: i64) {
        self.bucket = self.bucket.map(|bucket| bucket.filled(now).plus(-TOKEN));
    }

    /// One that was about to start did not.
    pub fn give_token_back(&mut self, now: i64) {
        self.bucket = self.bucket.map(|bucket| bucket.filled(now).plus(TOKEN));
    }

    /// When the next may start that waits for nothing but the rate.
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

    /// No more than the bucket holds.
    fn plus(self, parts: i64) -> Self {
        Self { parts: (self.parts + parts).min(self.rate.0 * TOKEN), ..self }
    }
}
