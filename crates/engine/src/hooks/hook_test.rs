//! `hook test`: delivers a test event at once and returns the result.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, getpid, set_child_subreaper};

use super::deliver::{Lane, deliver};
use crate::EngineError;
use crate::attempt::command::Context;
use crate::orphans::reparented::Orphans;
use crate::worker::dispatcher::{Interrupt, SlotBell};
use domain::job::environment::Environment;
use store::{Delivery, DeliveryResult};
use sys::signal::interrupts::Interrupts;

/// How often to check for the end of the delivery and for signals.
const INTERRUPT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Delivers a test event; returns the result, or the signal that ended it.
pub fn test_hook(
    delivery: &Delivery,
    home: &Path,
    store: Option<OsString>,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Result<DeliveryResult, Signal>, EngineError> {
    set_child_subreaper(Some(getpid()))
        .map_err(|error| EngineError::system("failed to become a subreaper")(error.into()))?;
    let system = EngineError::system("failed to prepare for running a command");
    let (orphans, bell) = (Orphans::new().map_err(system)?, SlotBell::new().map_err(system)?);
    let context = Context {
        worker_id: format!("hook-test-{}", std::process::id()).parse().expect("letters, digits and a dash"),
        home: home.to_owned(),
        store,
        own_environment: environment,
    };
    // No group: if this process were killed, none would remove it.
    let lane = Lane { context: &context, orphans: &orphans, record_lock: None, group: None, bell: &bell };
    let mut ended_by = None;
    // Not in this thread: the children of the main thread are taken for orphans.
    let sent = std::thread::scope(|scope| {
        let thread = scope.spawn(|| deliver(delivery, lane));
        while !thread.is_finished() {
            ended_by = interrupts.sleep(INTERRUPT_POLL_INTERVAL).or(ended_by);
            if ended_by.is_some() {
                bell.ring(Interrupt::ReleaseAtOnce);
            }
        }
        thread.join().expect("delivering does not panic")
    });
    Ok(ended_by.map_or(Ok(sent), Err))
}
