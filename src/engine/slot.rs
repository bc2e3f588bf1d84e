//! A slot: a thread that runs one attempt after the other.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::attempt::{self, Place, Surroundings};
use super::desk::Desk;
use super::journal::Journal;
use crate::sys::brand::Brand;

/// Enough for an attempt, which keeps its buffers elsewhere; there may be hundreds of slots.
const STACK_BYTES: usize = 256 << 10;

/// Starts a slot; it ends when the desk is closed and empty, or after an attempt that could not be killed, because another
/// has taken its place by then.
pub(super) fn start(
    desk: &Arc<Desk>,
    around: &Arc<Surroundings>,
    journal: &Arc<Journal>,
) -> io::Result<JoinHandle<()>> {
    let (number, bell) = desk.add_slot()?;
    let (desk, around, journal) = (Arc::clone(desk), Arc::clone(around), Arc::clone(journal));
    Builder::new().name(format!("slot-{number}")).stack_size(STACK_BYTES).spawn(move || {
        let (bell, brand) = (&bell, brand(number));
        let place = Place { bell, brand, journal: &journal, desk: &desk, number };
        while let Some((claim, rules)) = desk.take(number) {
            desk.hand_in(number, attempt::run(&claim, rules, &around, place));
        }
    })
}

/// Brands this thread with a number of its own: so what it starts can be told from what others start. A worker inside a
/// job leaves the brand that it came with, or what it leaves behind could not be told by the worker that runs that job.
fn brand(slot: usize) -> Option<Brand> {
    Brand::new(u32::try_from(slot).ok()?.checked_add(1)?)?.apply()
}
