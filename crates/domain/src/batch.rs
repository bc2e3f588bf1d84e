//! Detects dependency cycles among jobs that are enqueued together.

pub mod eta;

use std::collections::HashMap;

use super::job::NewJob;
use super::values::name::JobId;

/// A job that depends on itself, directly or through other jobs of the same enqueue. `None` if there is no cycle.
pub fn find_cycle(jobs: &[NewJob]) -> Option<JobId> {
    if jobs.iter().all(|job| job.depends_on.is_empty()) {
        return None;
    }
    // Of several jobs with the same id only the first is stored, so a dependency on that id refers to the first.
    let by_id: HashMap<&JobId, usize> =
        jobs.iter().enumerate().rev().map(|(at, job)| (&job.id, at)).collect();
    let parents = |job: &NewJob| job.depends_on.iter().filter_map(|id| by_id.get(id).copied()).collect();
    let parents: Vec<Vec<usize>> = jobs.iter().map(parents).collect();
    find_cycle_in(&parents).map(|at| jobs[at].id.clone())
}

/// A job that depends on itself, directly or through other jobs. Each has the jobs that it depends on, by index.
pub fn find_cycle_in(parents: &[Vec<usize>]) -> Option<usize> {
    // Kahn's algorithm: repeatedly remove the jobs without an open dependency. The remaining jobs are part of a cycle or
    // depend on one.
    let mut open: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); parents.len()];
    for (at, parents) in parents.iter().enumerate() {
        for parent in parents {
            dependents[*parent].push(at);
        }
    }
    let mut free: Vec<usize> = (0..open.len()).filter(|at| open[*at] == 0).collect();
    while let Some(at) = free.pop() {
        for &dependent in &dependents[at] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                free.push(dependent);
            }
        }
    }
    let in_or_after_cycle = open.iter().position(|count| *count > 0)?;
    // Following open dependencies for as many steps as there are jobs ends inside a cycle.
    let step = |at: usize| parents[at].iter().copied().find(|parent| open[*parent] > 0).unwrap_or(at);
    Some((0..open.len()).fold(in_or_after_cycle, |at, _| step(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    use proptest::collection::vec;
    use proptest::prelude::{Just, any, prop_assert_eq, proptest};
    use proptest::strategy::Strategy as Generator;

    use crate::job::Start;
    use crate::job::options::JobOptions;
    use crate::values::name::QueueName;

    fn id(name: &str) -> JobId {
        name.parse().expect("valid job id")
    }

    fn job(name: &str, depends_on: Vec<JobId>) -> NewJob {
        NewJob {
            id: id(name),
            command: "true".to_owned(),
            queue: QueueName::default_queue(),
            priority: 0,
            max_retries: 0,
            timeout: None,
            start: Start::Now,
            depends_on,
            unique_key: None,
            cwd: None,
            environment: None,
            tags: Vec::new(),
            options: JobOptions::default(),
            stdin: None,
            if_absent: false,
            batch: None,
        }
    }

    /// Jobs from lines such as `a: b c`: a depends on b and c.
    fn batch(lines: &[&str]) -> Vec<NewJob> {
        let read = |line: &&str| {
            let (name, parents) = line.split_once(':').expect("a colon after the id");
            job(name, parents.split_whitespace().map(id).collect())
        };
        lines.iter().map(read).collect()
    }

    #[test]
    fn a_cycle_at_the_end_of_a_long_chain_is_found() {
        let mut chain: Vec<Vec<usize>> = (1..=100_000).map(|parent| vec![parent]).collect();
        chain.push(Vec::new());
        assert_eq!(find_cycle_in(&chain), None);
        *chain.last_mut().expect("the last") = vec![99_999];
        assert!(find_cycle_in(&chain) >= Some(99_999));
    }

    #[test]
    fn no_cycle_is_reported_where_there_is_none() {
        for lines in [
            &[][..],
            &["a:"],
            &["a:", "b:", "c:"],
            &["a:", "b: a", "c: b"],
            // A diamond.
            &["a:", "b: a", "c: a", "d: b c"],
            // Dependencies on later jobs.
            &["a: b c", "b: c", "c: d", "d:"],
            // Dependencies on jobs that are already stored.
            &["a: elsewhere", "b: a elsewhere"],
            // The same dependency twice.
            &["a:", "b: a a"],
        ] {
            assert_eq!(find_cycle(&batch(lines)), None, "{lines:?}");
        }
    }

    #[test]
    fn the_reported_job_is_part_of_the_cycle() {
        for (lines, cycle) in [
            (&["a: a"][..], "a"),
            (&["a: b", "b: a"], "a b"),
            (&["x: a", "a: b", "b: a"], "a b"),
            // Two jobs lead into the cycle, one depends on it, others are unrelated.
            (&["t: s", "s: c", "o:", "a: o e", "b: a", "c: b o", "d: c", "e: d", "u: c o"], "a b c d e"),
            // The path into the cycle first passes a job with a dependency outside it.
            (&["t: o s", "o:", "s: o p", "p: q", "q: p"], "p q"),
            (&["a: elsewhere b", "b: elsewhere a"], "a b"),
        ] {
            let found = find_cycle(&batch(lines)).expect("a cycle");
            let named = cycle.split(' ').any(|name| name == found.as_str());
            assert!(named, "{found} is not in the cycle {cycle} of {lines:?}");
        }
    }

    #[test]
    fn a_long_cycle_after_a_long_tail_is_found() {
        const LENGTH: usize = 20_000;
        // Each job depends on the next; the last depends on the middle one.
        let next = |at: usize| if at + 1 < LENGTH { at + 1 } else { LENGTH / 2 };
        let name = |at: usize| format!("j{at}");
        let jobs: Vec<NewJob> = (0..LENGTH).map(|at| job(&name(at), vec![id(&name(next(at)))])).collect();
        let cycle: HashSet<JobId> = (LENGTH / 2..LENGTH).map(|at| id(&name(at))).collect();
        let found = find_cycle(&jobs).expect("a cycle");
        assert!(cycle.contains(&found), "{found} is in the tail");
        assert_eq!(find_cycle(&jobs[..LENGTH - 1]), None, "a chain");
    }

    /// Jobs that depend only on earlier ones, in random order.
    fn shuffled_dags() -> impl Generator<Value = Vec<NewJob>> {
        vec(vec(any::<usize>(), 0..4), 1..40)
            .prop_map(|dice| {
                let parents = |at: usize, dice: Vec<usize>| {
                    let lower = dice.into_iter().filter(move |_| at > 0);
                    lower.map(|die| id(&format!("j{}", die % at))).collect()
                };
                dice.into_iter()
                    .enumerate()
                    .map(|(at, dice)| job(&format!("j{at}"), parents(at, dice)))
                    .collect::<Vec<_>>()
            })
            .prop_flat_map(|jobs| Just(jobs).prop_shuffle())
    }

    proptest! {
        #[test]
        fn jobs_that_depend_only_on_earlier_jobs_have_no_cycle(jobs in shuffled_dags()) {
            prop_assert_eq!(find_cycle(&jobs), None);
        }

        #[test]
        fn a_cycle_closed_by_one_dependency_is_found(mut jobs in shuffled_dags(), child: usize, place: usize) {
            // A new job that every other job depends on, and that depends on one of them.
            let child = jobs[child % jobs.len()].id.clone();
            for job in &mut jobs {
                job.depends_on.push(id("root"));
            }
            let root = job("root", vec![child]);
            jobs.insert(place % (jobs.len() + 1), root);
            let found = find_cycle(&jobs).expect("a cycle");
            prop_assert_eq!(reaches_itself(&jobs, &found), true, "{} is not part of a cycle", found);
        }
    }

    fn reaches_itself(jobs: &[NewJob], start: &JobId) -> bool {
        let parents = |wanted: &JobId| {
            let found = jobs.iter().find(|job| job.id == *wanted);
            found.map_or_else(Vec::new, |job| job.depends_on.clone())
        };
        let mut open = parents(start);
        let mut seen = HashSet::new();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(parents(&next));
            }
        }
        seen.contains(start)
    }
}
