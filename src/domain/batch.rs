//! Checks of several jobs that are enqueued together.

use std::collections::HashMap;

use super::job::NewJob;
use super::name::JobId;

/// A job of the batch that waits, through others of the batch, for itself.
pub fn find_cycle(jobs: &[NewJob]) -> Option<JobId> {
    if jobs.iter().all(|job| job.depends_on.is_empty()) {
        return None;
    }
    let by_id: HashMap<&JobId, usize> = jobs.iter().enumerate().map(|(at, job)| (&job.id, at)).collect();
    let inside = |at: usize| jobs[at].depends_on.iter().filter_map(|id| by_id.get(id).copied());

    // Take away, again and again, the jobs that wait for no other of the batch; what stays is in a cycle or behind one.
    let mut open: Vec<usize> = (0..jobs.len()).map(|at| inside(at).count()).collect();
    let mut dependents = vec![Vec::new(); jobs.len()];
    for at in 0..jobs.len() {
        for parent in inside(at) {
            dependents[parent].push(at);
        }
    }
    let mut free: Vec<usize> = (0..jobs.len()).filter(|at| open[*at] == 0).collect();
    while let Some(at) = free.pop() {
        for &dependent in &dependents[at] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                free.push(dependent);
            }
        }
    }
    let stuck = open.iter().position(|count| *count > 0)?;
    Some(jobs[walk_into_cycle(stuck, &open, inside)].id.clone())
}

/// Follows dependencies from a stuck job for as many steps as there are jobs: that ends inside a cycle.
fn walk_into_cycle<I: Iterator<Item = usize>>(
    from: usize,
    open: &[usize],
    inside: impl Fn(usize) -> I,
) -> usize {
    (0..open.len()).fold(from, |at, _| {
        inside(at).find(|parent| open[*parent] > 0).unwrap_or(at)
    })
}
