//! FAULTS 28: a power cut at any moment breaks no promise and corrupts nothing.
//!
//! No machine is switched off. The tests *record* programs while they use a queue. A *simulated disk* then replays the
//! record up to a random position and discards all or some of the unsynced changes, and the real program must work with
//! the result. One recording is cut hundreds of times.
//!
//! ```text
//!   queuectl enqueue, worker run, wait, cancel …      the workload: many processes at once
//!        │ write, rename, fsync, mkdir …
//!   recorder.c      preloaded library                 ──▶ the disk that they really use
//!        │ one record for each change and each sync
//!        ▼
//!   CREATE WRITE WRITE SYNC( WRITE SYNC) SAY WRITE WRITE SYNC( …      the record: positions are time
//!                                         ▲    ╳ cut
//!                            `job1` was printed: a promise
//!        │
//!        ▼
//!   disk     the synced state, and of the later changes: none, all, those before some position,
//!            or each sector (page, length, name) up to its own position
//!        │ restored into a folder
//!        ▼
//!   checker  every promise before the cut holds, `integrity_check` passes, no job exists that was not requested,
//!            the queue accepts jobs, and after some of the cuts a worker finishes all of them
//! ```
//!
//! **When a change is durable.** The rules are those of POSIX, without additional guarantees of good filesystems. The
//! content and length of a file are durable after an `fsync` or `fdatasync` of the file. A name is durable after an `fsync`
//! of its folder; syncing a file does not make its name durable. Everything else may be in any state since the last sync,
//! independently for every sector and every name; only a rename is atomic. The home itself is a name too. Two assumptions
//! are made: a sector is written completely or not at all, and unwritten data reads as zeros, not as the contents of a
//! deleted file.
//!
//! **Why the order can be trusted.** Many processes write to one record. A change is recorded after it was made and before
//! its process continues, so its consequences are recorded later. A sync has two records: it covers only the changes before
//! the first one and takes effect at the second. A promise is recorded *before* it is printed. Each of these rules errs
//! towards losing more.
//!
//! **The promises.** A job whose id `enqueue` prints exists. A job whose id `wait` prints is completed. After `cancel`,
//! `retry` and `config set` have succeeded, their changes are stored.
//!
//! **Why the result means anything.** All records together reproduce the real files byte for byte, so no write bypasses the
//! recorder. With durability switched off the check fails (`controls`). The simulated disk has its own tests
//! (`simulation`).
//!
//! `QUEUECTL_POWER_SEED` and `QUEUECTL_POWER_CUTS` change the cuts. After a harmful cut the test keeps its record and prints
//! how to repeat it: `QUEUECTL_POWER_RECORD` uses the same record and so gives the same result.

mod checker;
mod controls;
mod cut;
mod disk;
mod durability;
mod file;
mod folder;
#[cfg(debug_assertions)] // Released builds take no migrations from tests.
mod migration;
mod promise;
mod record;
mod recording;
mod simulation;
mod trial;
mod workload;
