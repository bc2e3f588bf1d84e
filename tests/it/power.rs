//! FAULTS 28: the power is cut at any moment. What was promised holds, and nothing is corrupt.
//!
//! No machine is switched off. Programs are *recorded* while they use a queue; then a *simulated disk* takes the record up
//! to a random position, forgets what no sync had made safe, or some of it, and the real program has to make do with what
//! is left. One recording is cut hundreds of times.
//!
//! ```text
//!   queuectl enqueue, worker run, wait, cancel …      the workload: many processes at once
//!        │ write, rename, fsync, mkdir …
//!   recorder.c      loaded before the C library       ──▶ the disk that they really use
//!        │ one record for each change and each sync
//!        ▼
//!   CREATE WRITE WRITE SYNC( WRITE SYNC) SAY WRITE WRITE SYNC( …      the record: positions are time
//!                                         ▲    ╳ cut
//!                            `job1` was printed: promised
//!        │
//!        ▼
//!   disk     what was synced, and of the rest: nothing, everything, what came before some position,
//!            or each sector (page, length, name) as it was at a moment of its own
//!        │ restored into a folder
//!        ▼
//!   checker  every promise before the cut holds, `integrity_check` is content, nobody finds a job that was not asked
//!            for, the queue takes jobs, and now and then a worker finishes all of them
//! ```
//!
//! **When something is safe.** The rules are those of POSIX, and nothing that a good filesystem adds to them. The content
//! and length of a file are safe after an `fsync` or `fdatasync` of it. A name is safe after an `fsync` of its folder: that
//! a file was synced does not save its name. Everything else may be found at any earlier state since the last sync, every
//! sector and every name by itself; a rename alone is never found half done. The home itself is a name too. Two things are taken for granted: a sector is
//! written whole or not at all, and what was never written reads as zeros, not as what a deleted file left there.
//!
//! **Why the order can be trusted.** Many processes write one record. A change is recorded after it was made, before its
//! process goes on, so whatever follows from it is recorded later. A sync has two records: it covers only the changes
//! before the first, and counts only from the second. A promise is recorded *before* it is said. Each of these errs on the
//! side that loses more.
//!
//! **What is a promise.** An id that `enqueue` prints exists. An id that `wait` prints is completed. After `cancel`, `retry`
//! and `config set` have ended well, so it is.
//!
//! **What shows that this shows anything.** All records together give the real files again, byte by byte, so nothing is
//! written past the recorder. With durability taken away the check turns red (`controls`). The disk has tests of its own
//! (`simulation`).
//!
//! `QUEUECTL_POWER_SEED` and `QUEUECTL_POWER_CUTS` change the cuts. A cut that does harm leaves its record behind and says
//! how to cut it again: with `QUEUECTL_POWER_RECORD` the same record, and so the same outcome.

mod checker;
mod controls;
mod cut;
mod disk;
mod durability;
mod file;
mod folder;
mod migration;
mod promise;
mod record;
mod recording;
mod simulation;
mod trial;
mod workload;
