//! The dependencies between jobs.

use super::StoreError;
use domain::job::graph::Graph;
use domain::values::name::JobId;

pub trait Graphs {
    /// The dependencies and dependents of a job, up to `limit` jobs. `None` if the job does not exist.
    fn graph(&self, id: &JobId, limit: usize) -> Result<Option<Graph>, StoreError>;
}
