//! kill -9 of `enqueue`, at any moment from its start to its end.

use std::time::Duration;

use fastrand::Rng;

use super::Nemesis;
use crate::ProofError;
use crate::calls::Answer;
use crate::plan::{Escapes, JobPlan, Plan, RATE_LIMITED, Request};
use crate::sandbox::Sandbox;
use sys::clock::since_boot;

#[derive(Debug, Default)]
pub struct KillEnqueue {
    killed: u64,
    /// The duration of a call that is not killed.
    whole: Option<Duration>,
}

impl Nemesis for KillEnqueue {
    fn name(&self) -> &'static str {
        "kill-enqueue"
    }

    fn description(&self) -> &'static str {
        "kill -9 of `enqueue` during the call"
    }

    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(0..20))
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        /// Several per strike, because one call is short.
        const AT_ONCE: usize = 4;
        let mut struck = false;
        for _ in 0..AT_ONCE {
            struck |= self.kill_one(sandbox, random)?;
        }
        Ok(struck)
    }
}

impl KillEnqueue {
    fn kill_one(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let jobs = self.jobs(random);
        let Some(whole) = self.whole else {
            let began = since_boot();
            sandbox.send(Request::Enqueue(jobs), None)?;
            self.whole = Some(since_boot().saturating_sub(began));
            return Ok(false);
        };
        let after = whole.mul_f64(random.f64() * 1.2);
        let answer = sandbox.send(Request::Enqueue(jobs.clone()), Some(after))?;
        // After an unknown outcome, a client enqueues again with the same id.
        if answer == Answer::Unknown && jobs.len() == 1 && random.bool() {
            sandbox.send(Request::Enqueue(jobs), None)?;
        }
        Ok(answer == Answer::Unknown)
    }

    /// One job, or a few in one call.
    fn jobs(&mut self, random: &mut Rng) -> Vec<JobPlan> {
        self.killed += 1;
        let number = self.killed;
        let count = if random.u32(0..4) == 0 { random.usize(2..6) } else { 1 };
        let plan = Plan::new(random.u64(..), Escapes::All);
        let mut jobs: Vec<_> = plan.jobs.into_iter().take(count).collect();
        let batch = jobs[0].batch;
        for (at, job) in jobs.iter_mut().enumerate() {
            job.id = format!("k{number}.{at}");
            job.lives = job.lives.min(Duration::from_millis(20));
            job.depends_on.clear();
            job.escapes.clear();
            // A rate limit would make so many jobs take too long.
            job.queue = job.queue.filter(|queue| *queue != RATE_LIMITED);
            job.batch = batch;
        }
        jobs
    }
}
