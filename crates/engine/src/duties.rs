//! Background duties of a worker, one per file: `reaper` recovers the jobs of dead workers (`silence` finds those on other
//! machines, `beats` judges them), `scheduler` fires schedules, `pruner` deletes old history, `sampler` counts the jobs
//! once a minute; `forget` gives the jobs of a worker back on a person's word.
//!
//! Every worker can do every duty. The store makes sure that doing it twice changes nothing: a job is given back once, a
//! schedule fires once for each of its times.

pub(crate) mod beats;
pub(crate) mod forget;
pub(crate) mod pruner;
pub(crate) mod reaper;
pub(crate) mod sampler;
pub(crate) mod scheduler;
pub(crate) mod silence;
