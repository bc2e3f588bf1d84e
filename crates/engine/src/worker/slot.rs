//! A slot: a thread that runs one attempt after another.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use super::dispatcher::{Dispatcher, SlotBell};
use crate::attempt;
use crate::attempt::{AttemptContext, SlotContext};
use crate::journal::Journal;
use crate::orphans::containment::SlotGroup;

/// Enough for an attempt, which keeps its buffers elsewhere; there may be hundreds of slots.
const STACK_BYTES: usize = 256 << 10;

/// Starts a slot; it ends when the dispatcher is closed and empty, or after an attempt that could not be killed,
/// because the worker has replaced it by then.
pub(crate) fn start(
    dispatcher: &Arc<Dispatcher>,
    context: &Arc<AttemptContext>,
    journal: &Arc<Journal>,
) -> io::Result<JoinHandle<()>> {
    let (at, context, journal) = (Arc::clone(dispatcher), Arc::clone(context), Arc::clone(journal));
    spawn(dispatcher, STACK_BYTES, move |number, bell| {
        let group = SlotGroup::of(&context.containment, format!("slot-{number}"));
        let mut slot = SlotContext { bell: &bell, journal: &journal, dispatcher: &at, number, group };
        while let Some((claim, rules)) = at.take(number) {
            let finished = attempt::run(&claim, rules, &context, &mut slot);
            if let Some(group) = slot.group.as_mut().filter(|_| context.was_short.load(Ordering::Relaxed)) {
                // Another slot may need its descriptors.
                group.release();
            }
            at.submit(number, finished);
        }
    })
}

/// Runs `run` in a thread that has a slot. The slot is added only when its thread exists: a slot without a thread would
/// count as able to take a claim.
fn spawn(
    dispatcher: &Dispatcher,
    stack_bytes: usize,
    run: impl FnOnce(usize, Arc<SlotBell>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = Builder::new().name("slot".to_owned()).stack_size(stack_bytes).spawn(move || {
        if let Ok((number, bell)) = receiver.recv() {
            run(number, bell);
        }
    })?;
    // If this fails, the sender is dropped and the thread ends.
    let slot = dispatcher.add_slot()?;
    // The thread is waiting, so this cannot fail.
    let _ = sender.send(slot);
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Rules;
    use domain::settings::Traces;
    use std::time::Duration;
    use store::ServedJobs;

    /// More than a process can address.
    const TOO_LARGE: usize = usize::MAX / 8;

    #[test]
    fn a_slot_whose_thread_cannot_be_started_is_not_added() {
        let rules = Rules { kill_grace: Duration::ZERO, log_max_bytes: 0, traces: Traces::Off };
        let dispatcher = Dispatcher::new(rules, ServedJobs::All).expect("a dispatcher");
        spawn(&dispatcher, TOO_LARGE, |_, _| {}).expect_err("the stack is too large");
        let (sender, receiver) = mpsc::channel();
        let thread = spawn(&dispatcher, STACK_BYTES, move |number, _| {
            sender.send(number).expect("the test receives it");
        });
        assert_eq!(receiver.recv().expect("it runs"), 0, "the first slot");
        thread.expect("started").join().expect("it ends");
    }
}
