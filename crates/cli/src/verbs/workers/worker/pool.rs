//! The flags of a worker pool, and the command lines of its supervisor and workers.

use std::ffi::OsString;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::whole_number::whole_number;
use domain::values::concurrency::Concurrency;
use domain::values::name::{BatchName, JobId, QueueName};
use engine::{Pool, SecretAddress};
use ops::home::location::{Location, StoreAddress};
use ops::home::ownership::accept_owner;
use store::ServedJobs;
use sys::fs::ownership;

/// More workers than this are a typing error.
const MAX_WORKERS: i128 = 1_000;

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PoolFlags {
    /// Number of workers
    #[arg(short, visible_short_alias = 'n', long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=MAX_WORKERS))]
    pub(crate) count: u32,
    /// Jobs that each worker runs at once; auto is the number of cores [default: the setting concurrency]
    #[arg(short = 'j', long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) concurrency: Option<Concurrency>,
    /// Queues to serve, in strict order: a queue is served only if earlier ones have no ready job [default: all]
    #[arg(short = 'Q', long = "queue", value_name = "QUEUE", value_delimiter = ',')]
    pub(crate) queues: Vec<QueueName>,
    #[command(flatten)]
    pub(crate) foreign_home: ForeignHome,
}

impl PoolFlags {
    /// The same flags as they are typed.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["--count".to_owned(), self.count.to_string()];
        if let Some(slots) = self.concurrency {
            words.extend(["--concurrency".to_owned(), slots.to_string()]);
        }
        for queue in &self.queues {
            words.extend(["--queue".to_owned(), queue.to_string()]);
        }
        words.extend(self.foreign_home.is_accepted.then(|| "--foreign-home".to_owned()));
        words
    }
}

/// Root's consent to work in the home of another user.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ForeignHome {
    /// As root, use a home that belongs to another user: its jobs run as root, its files stay that user's
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

/// The address of a server, for the environment of a supervisor and its workers.
pub(crate) fn secret_address(location: &Location) -> Option<SecretAddress> {
    match &location.store {
        StoreAddress::Sqlite(_) => None,
        StoreAddress::Postgres(address) => Some(SecretAddress(address.with_password().into())),
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
    /// Serve the jobs of this batch until they are finished
    #[arg(long, value_name = "NAME", conflicts_with_all = ["queues", "job"])]
    pub(crate) batch: Option<BatchName>,
    /// Exit when there is nothing left to do
    #[arg(long)]
    pub(crate) until_empty: bool,
    /// Exit after the time without work that the setting autostart_idle says
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// Write the journal to standard error, too
    #[arg(long)]
    pub(crate) echo: bool,
}

impl PoolArguments {
    /// A pool that serves its queues until it is stopped.
    pub(crate) fn new(flags: PoolFlags) -> Self {
        Self { flags, job: None, batch: None, until_empty: false, until_idle: false, echo: false }
    }

    pub(crate) fn served(&self) -> ServedJobs {
        match (&self.job, &self.batch) {
            (Some(job), _) => ServedJobs::Job(job.clone()),
            (None, Some(batch)) => ServedJobs::Batch(batch.clone()),
            (None, None) if self.flags.queues.is_empty() => ServedJobs::All,
            (None, None) => ServedJobs::InOrder(self.flags.queues.clone()),
        }
    }

    pub(crate) fn into_pool(self, location: &Location) -> Pool {
        Pool {
            home: location.home.clone(),
            count: self.flags.count,
            echo: self.echo,
            worker_call: self.call("__worker", location),
            store: secret_address(location),
            service_manager: None,
        }
    }

    /// The command line of a hidden verb. The paths are absolute. The address of a server is not in it.
    pub(crate) fn call(&self, verb: &str, location: &Location) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["queuectl".into(), "--home".into(), location.home.clone().into()];
        match &location.store {
            StoreAddress::Sqlite(store) => words.extend(["--store".into(), store.clone().into()]),
            StoreAddress::Postgres(_) => {}
        }
        words.push(verb.into());
        words.extend(self.flags.words().into_iter().map(OsString::from));
        if let Some(job) = &self.job {
            words.extend(["--job".into(), job.as_str().into()]);
        }
        if let Some(batch) = &self.batch {
            words.extend(["--batch".into(), batch.as_str().into()]);
        }
        let switches =
            [(self.until_empty, "--until-empty"), (self.until_idle, "--until-idle"), (self.echo, "--echo")];
        words.extend(switches.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.into()));
        words
    }
}
