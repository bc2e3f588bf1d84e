//! The flags of a worker pool, and the command lines of its supervisor and workers.

use std::ffi::OsString;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::whole_number::whole_number;
use domain::values::name::{JobId, QueueName};
use engine::Pool;
use ops::home::location::{Location, StoreAddress};
use ops::home::ownership::accept_owner;
use store::ServedJobs;
use sys::fs::ownership;

/// More workers than this are a typing error.
const MAX_WORKERS: i128 = 1_000;
/// The maximum of the setting `concurrency`.
const MAX_SLOTS: i128 = 1_024;

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PoolFlags {
    /// Number of workers
    #[arg(short, visible_short_alias = 'n', long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=MAX_WORKERS))]
    pub(crate) count: u32,
    /// Number of jobs that each worker runs at once [default: the setting concurrency]
    #[arg(short = 'j', long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=MAX_SLOTS))]
    pub(crate) concurrency: Option<u32>,
    /// Queues to serve, in strict order: a queue is served only if earlier ones have no ready job [default: all]
    #[arg(short = 'Q', long = "queue", value_name = "QUEUE", value_delimiter = ',')]
    pub(crate) queues: Vec<QueueName>,
    #[command(flatten)]
    pub(crate) foreign_home: ForeignHome,
}

/// Root's consent to work in the home of another user.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ForeignHome {
    /// As root, run jobs in a home that belongs to another user: they run as root, the files stay that user's
    #[arg(long = "foreign-home")]
    is_accepted: bool,
}

impl ForeignHome {
    /// Must be called before the home is opened.
    pub(crate) fn apply(&self, context: &Context) -> Result<(), Failure> {
        if self.is_accepted {
            accept_owner(context.location_flags())?;
        }
        Ok(())
    }

    /// As this process works: for the workers that it starts.
    pub(crate) fn inherited() -> Self {
        Self { is_accepted: ownership::accepted().is_some() }
    }
}

/// A pool as it is passed to its supervisor and workers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PoolArguments {
    #[command(flatten)]
    pub(crate) flags: PoolFlags,
    /// Serve this job and nothing else
    #[arg(long, value_name = "ID", conflicts_with = "queues")]
    pub(crate) job: Option<JobId>,
    /// Exit when there is nothing left to do
    #[arg(long)]
    pub(crate) until_empty: bool,
    /// Write the journal to standard error, too
    #[arg(long)]
    pub(crate) echo: bool,
}

impl PoolArguments {
    pub(crate) fn served(&self) -> ServedJobs {
        match &self.job {
            Some(job) => ServedJobs::Job(job.clone()),
            None if self.flags.queues.is_empty() => ServedJobs::All,
            None => ServedJobs::InOrder(self.flags.queues.clone()),
        }
    }

    pub(crate) fn into_pool(self, location: &Location) -> Pool {
        Pool {
            home: location.home.clone(),
            count: self.flags.count,
            echo: self.echo,
            worker_call: self.call("__worker", location),
        }
    }

    /// The command line of a hidden verb. The paths are absolute.
    pub(crate) fn call(&self, verb: &str, location: &Location) -> Vec<OsString> {
        let StoreAddress::Sqlite(store) = &location.store;
        let mut words: Vec<OsString> = vec!["queuectl".into(), "--home".into(), location.home.clone().into()];
        words.extend(["--store".into(), store.clone().into(), verb.into()]);
        words.extend(["--count".into(), self.flags.count.to_string().into()]);
        if let Some(slots) = self.flags.concurrency {
            words.extend(["--concurrency".into(), slots.to_string().into()]);
        }
        for queue in &self.flags.queues {
            words.extend(["--queue".into(), queue.as_str().into()]);
        }
        if let Some(job) = &self.job {
            words.extend(["--job".into(), job.as_str().into()]);
        }
        let is_foreign = self.flags.foreign_home.is_accepted;
        let switches =
            [(self.until_empty, "--until-empty"), (self.echo, "--echo"), (is_foreign, "--foreign-home")];
        words.extend(switches.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.into()));
        words
    }
}
