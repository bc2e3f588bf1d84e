//! A slot: a thread that runs one attempt after the other.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use super::dispatcher::{Desk, SlotBell};
use crate::attempt;
use crate::attempt::{Place, Surroundings};
use crate::journal::Journal;
use sys::process::brand::Brand;

/// Enough for an attempt, which keeps its buffers elsewhere; there may be hundreds of slots.
const STACK_BYTES: usize = 256 << 10;

/// Starts a slot; it ends when the desk is closed and empty, or after an attempt that could not be killed, because another
/// has taken its place by then.
pub(crate) fn start(
    desk: &Arc<Desk>,
    around: &Arc<Surroundings>,
    journal: &Arc<Journal>,
) -> io::Result<JoinHandle<()>> {
    let (at, around, journal) = (Arc::clone(desk), Arc::clone(around), Arc::clone(journal));
    spawn(desk, STACK_BYTES, move |number, bell| {
        let (bell, brand) = (&bell, brand(number));
        let place = Place { bell, brand, journal: &journal, desk: &at, number };
        while let Some((claim, rules)) = at.take(number) {
            at.hand_in(number, attempt::run(&claim, rules, &around, place));
        }
    })
}

/// Runs this in a thread that has a slot at the desk. The desk gets the slot only when there is a thread for it: another
/// one would count as able to take a claim.
fn spawn(
    desk: &Desk,
    stack_bytes: usize,
    run: impl FnOnce(usize, Arc<SlotBell>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = Builder::new().name("slot".to_owned()).stack_size(stack_bytes).spawn(move || {
        if let Ok((number, bell)) = receiver.recv() {
            run(number, bell);
        }
    })?;
    // Where the desk has no slot for it, the thread ends: there is no sender any more.
    let slot = desk.add_slot()?;
    // The thread waits for this, so it is there to receive it.
    let _ = sender.send(slot);
    Ok(thread)
}

/// Brands this thread with a number of its own: so what it starts can be told from what others start. A worker inside a
/// job leaves the brand that it came with, or what it leaves behind could not be told by the worker that runs that job.
fn brand(slot: usize) -> Option<Brand> {
    Brand::new(u32::try_from(slot).ok()?.checked_add(1)?)?.apply()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Rules;
    use crate::worker::dispatcher::Order;
    use std::time::Duration;

    /// More than a process can address.
    const TOO_LARGE: usize = usize::MAX / 8;

    #[test]
    fn a_slot_whose_thread_cannot_be_started_is_not_at_the_desk() {
        let rules = Rules { kill_grace: Duration::ZERO, log_max_bytes: 0 };
        let desk = Desk::new(rules, Order::Turn).expect("a desk");
        spawn(&desk, TOO_LARGE, |_, _| {}).expect_err("there is no room for its stack");
        let (sender, receiver) = mpsc::channel();
        let thread = spawn(&desk, STACK_BYTES, move |number, _| sender.send(number).expect("it is heard"));
        assert_eq!(receiver.recv().expect("it runs"), 0, "the first slot");
        thread.expect("started").join().expect("it ends");
    }
}
