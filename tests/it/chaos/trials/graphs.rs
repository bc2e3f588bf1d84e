//! Deep and wide graphs of jobs that are cancelled and retried while other clients enqueue.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::ledger::CommandEnd;
use proof::nemesis::Nemesis;
use proof::plan::{JobPlan, Request};
use proof::sandbox::Sandbox;

use super::harness::Trials;

#[derive(Default)]
struct Graphs {
    made: usize,
}

/// A job that ends at once.
fn quick(id: String, depends_on: Vec<String>) -> JobPlan {
    JobPlan {
        id,
        queue: None,
        lives: Duration::from_millis(1),
        ends: vec![CommandEnd::Exit(0)],
        escapes: Vec::new(),
        ignores_sigterm: false,
        kills_worker: 0,
        runs_through: None,
        in_shell: false,
        max_retries: 0,
        retry_delay: Duration::from_millis(20),
        delay: None,
        timeout: None,
        depends_on,
        runs_anyway: false,
        unique_key: None,
        batch: None,
        priority: 0,
    }
}

/// Layers of jobs, each of which depends on all jobs of the previous layer.
fn layers(name: &str, depth: usize, width: usize) -> Vec<JobPlan> {
    let id = |layer: usize, at: usize| format!("{name}.{layer}.{at}");
    let parents = |layer: usize| match layer.checked_sub(1) {
        Some(before) => (0..width).map(|at| id(before, at)).collect(),
        None => Vec::new(),
    };
    (0..depth).flat_map(|layer| (0..width).map(move |at| quick(id(layer, at), parents(layer)))).collect()
}

impl Nemesis for Graphs {
    fn name(&self) -> &'static str {
        "graphs"
    }

    fn description(&self) -> &'static str {
        "graphs of jobs are cancelled and retried"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        self.made += 1;
        let (depth, width) = if random.bool() { (24, 1) } else { (4, 6) };
        let jobs = layers(&format!("g{}", self.made), depth, width);
        sandbox.send(Request::Enqueue(jobs.clone()), None)?;
        sandbox.send(Request::Cancel(jobs[0].id.clone()), None)?;
        // Retry from the last to the first, so that each job waits again for its dependencies.
        for job in jobs.iter().rev() {
            sandbox.send(Request::Retry(job.id.clone()), None)?;
        }
        Ok(true)
    }
}

#[test]
fn fault_40_chaos_graphs() {
    Trials::of("fault_40_chaos_graphs", |_| Box::new(Graphs::default())).assert_all_hold();
}
