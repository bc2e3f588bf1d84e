//! `queuectl worker forget`

use std::io::Write;

use serde::Serialize;

use super::parse_id;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::jobs;
use domain::text::nearest::nearest;
use domain::values::name::WorkerId;
use engine::{EngineError, forget};
use ops::error::did_you_mean;
use store::{LeaseRef, Store, StoreError};
use sys::process::user;

/// Release the jobs of a worker whose machine is gone for good
///
/// The jobs run again; their lost attempts use up no retry. A live worker is refused (exit code 4). This is not needed for
/// a worker that died on a machine where other workers run or will be started: they clean up after it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl worker forget w-1m7hv6eca1xcxeceqx")]
pub(super) struct Args {
    /// The worker's id; `queuectl show JOB` shows which worker holds a job
    #[arg(value_name = "WORKER")]
    worker: String,
}

#[derive(Serialize)]
struct ForgetJson<'a> {
    worker: &'a str,
    jobs: &'a [&'a str],
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let worker = parse_id(&args.worker)?;
    let store = context.store()?;
    match forget(store, &worker) {
        Ok(leases) => {
            store.note("worker_forget", &user::name(), worker.as_str())?;
            print_result(&worker, &leases, context)
        }
        Err(error @ EngineError::Store(StoreError::NoSuchWorker(_))) => {
            Err(Failure::from(error).with_hint(which(store, &worker)?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Suggests the nearest worker id.
fn which(store: &dyn Store, worker: &WorkerId) -> Result<String, Failure> {
    let workers = store.workers()?;
    let known = workers.iter().map(|worker| worker.id.as_str());
    let otherwise = "`queuectl show JOB` shows which worker holds a job";
    Ok(did_you_mean(nearest(worker.as_str(), known), otherwise))
}

fn print_result(worker: &WorkerId, leases: &[LeaseRef], context: &Context) -> Result<(), Failure> {
    let ids: Vec<&str> = leases.iter().map(|lease| lease.job.as_str()).collect();
    context.print(&ForgetJson { worker: worker.as_str(), jobs: &ids }, |out| {
        ids.iter().try_for_each(|id| writeln!(out, "{id}"))?;
        out.flush()?;
        writeln!(context.notes(), "Worker {worker} removed, {} released", jobs(ids.len() as u64))
    })
}
