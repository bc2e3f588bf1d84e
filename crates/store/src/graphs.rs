//! Who depends on whom.

use super::StoreError;
use domain::job::graph::Graph;
use domain::values::name::JobId;

pub trait Graphs {
    /// What a job depends on and what depends on it, as far as so many jobs go. `None` if there is no such job.
    fn graph(&self, id: &JobId, limit: usize) -> Result<Option<Graph>, StoreError>;
}
