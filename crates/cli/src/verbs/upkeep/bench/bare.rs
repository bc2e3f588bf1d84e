//! The limits of the machine: the same work without a queue.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a call was made, and how long that took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) count: u64,
    pub(super) took: Duration,
}

impl Rate {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn per_second(self) -> f64 {
        self.count as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}

/// Starts and reaps `true` for a while, in this many threads.
pub(super) fn processes(lasts: Duration, threads: u32) -> io::Result<Rate> {
    let (count, began) = (AtomicU64::new(0), Instant::now());
    let work = || -> io::Result<()> {
        // At least one: a limit of zero would be no limit.
        loop {
            run_true()?;
            count.fetch_add(1, Ordering::Relaxed);
            if began.elapsed() >= lasts {
                return Ok(());
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        })
    })?;
    Ok(Rate { count: count.into_inner(), took: began.elapsed() })
}

pub(super) fn run_true() -> io::Result<()> {
    quiet("true").status().map(|_| ())
}

/// A command without input and output.
pub(super) fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Appends a page to a file and syncs it.
pub(super) fn sync_page(file: &mut File) -> io::Result<()> {
    const PAGE: [u8; 4096] = [0; 4096];
    file.write_all(&PAGE)?;
    file.sync_data()
}

/// Writes these bytes to a new file and syncs it.
pub(super) fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<Duration> {
    let began = Instant::now();
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    Ok(began.elapsed())
}
