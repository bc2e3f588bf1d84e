//! Telling a hook something at once, for whoever wants to see what comes of it.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, getpid, set_child_subreaper};

use super::deliver::deliver;
use super::process::Watch;
use crate::EngineError;
use crate::attempt::command::Context;
use crate::orphans::reparented::Adopted;
use crate::worker::dispatcher::EventBell;
use domain::job::environment::Environment;
use store::{Delivery, DeliveryResult};
use sys::process::user;
use sys::signal::interrupts::Interrupts;

/// How often it is asked whether it is over, or somebody wants it to be.
const LOOK: Duration = Duration::from_millis(5);

/// What came of it, or the signal that ended it.
pub fn rehearse(
    delivery: &Delivery,
    home: &Path,
    store: Option<&Path>,
    interrupts: &Interrupts,
) -> Result<Result<DeliveryResult, Signal>, EngineError> {
    set_child_subreaper(Some(getpid()))
        .map_err(|error| EngineError::system("failed to become a subreaper")(error.into()))?;
    let system = EngineError::system("failed to watch over a command");
    let (adopted, stop) = (Adopted::new().map_err(system)?, EventBell::new().map_err(system)?);
    let context = Context {
        worker_id: format!("rehearsal-{}", std::process::id()).parse().expect("letters, digits and a dash"),
        home: home.to_owned(),
        store: store.map(Path::to_owned),
        own_environment: Environment::capture(user::variables()),
    };
    let watch = Watch { adopted: &adopted, mark: None, brand: None, stop: &stop };
    let mut ended_by = None;
    // Not by this thread: its children are those that lost their parent.
    let sent = std::thread::scope(|scope| {
        let thread = scope.spawn(|| deliver(delivery, &context, watch));
        while !thread.is_finished() {
            ended_by = interrupts.sleep(LOOK).or(ended_by);
            if ended_by.is_some() {
                stop.ring();
            }
        }
        thread.join().expect("delivering does not panic")
    });
    Ok(ended_by.map_or(Ok(sent), Err))
}
