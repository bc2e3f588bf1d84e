//! Random histories, and the expected answers of a store to each step.
//!
//! A history has three workers that settle, die and are replaced, late settlements, and a clock that only it advances.
//! A step refers to leases and jobs by an index modulo their number, so every history is valid.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::values::signal::Signal;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;
use store::{LeaseRef, LeaseStatus};

use super::lane::MemoryRate;
use super::memory::{Answer, Memory, MemoryWorker, Request};
use crate::store::fixture::START_MILLIS;
use crate::store::fixture::new_job::job_id;

/// The id of a job that never exists.
const UNKNOWN_JOB: &str = "unknown";
const OUTCOMES: [Outcome; 8] = [
    Outcome::Success,
    Outcome::Failure { exit_code: 1 },
    Outcome::Signal { signal: Signal::KILL },
    Outcome::Timeout,
    Outcome::SpawnError,
    Outcome::Lost,
    Outcome::Cancelled,
    Outcome::Released,
];

/// Starts per period in milliseconds.
const RATES: [MemoryRate; 3] = [(1, 60_000), (2, 40_000), (3, 1_000)];

#[derive(Clone, Debug)]
pub enum Step {
    Pass {
        millis: u64,
    },
    Enqueue(Vec<Draft>),
    Exchange {
        seat: usize,
        settled: Vec<(LeaseChoice, Outcome)>,
        want: usize,
        want_limited: usize,
    },
    /// A dead worker settles late.
    LateSettle {
        dead: usize,
        settled: Vec<(LeaseChoice, Outcome)>,
    },
    Extend {
        seat: usize,
        leases: Vec<LeaseChoice>,
    },
    /// A worker dies; the reaper may know which of its leases it had started.
    Reap {
        seat: usize,
        started: Option<Vec<bool>>,
    },
    Cancel(JobIndex),
    Retry(JobIndex),
    Remove(JobIndex),
    PauseJob(JobIndex),
    ResumeJob(JobIndex),
    Pause(usize),
    Resume(usize),
    Limit {
        queue: usize,
        concurrency: Option<usize>,
        rate: Option<MemoryRate>,
    },
}

/// An existing job, counted back from the latest; `None` for an unknown job.
pub type JobIndex = Option<usize>;

/// A job to enqueue, without its names.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The job whose id it reuses; `None` for a new id.
    pub namesake: Option<usize>,
    pub parents: Vec<Parent>,
    /// All other fields.
    pub request: Request,
}

/// A dependency of a job, by index.
#[derive(Clone, Copy, Debug)]
pub enum Parent {
    Earlier(usize),
    /// A job of the same enqueue: possibly a later one, or the job itself.
    SameEnqueue(usize),
    Unknown,
}

/// A lease: one that the worker holds, or any that was ever granted, counted back from the latest.
#[derive(Clone, Copy, Debug)]
pub enum LeaseChoice {
    Own(usize),
    Any(usize),
}

/// The expected answer of the store to a step.
#[derive(Clone, Debug)]
pub enum ExpectedAnswer {
    Nothing,
    Enqueued {
        batch: Vec<Request>,
        answers: Option<Vec<(String, bool)>>,
    },
    Exchanged {
        worker: usize,
        settled: Vec<(LeaseRef, Outcome)>,
        /// The resulting state of each; `None` if the settlement is stale.
        states: Vec<Option<StateName>>,
        want: usize,
        want_limited: usize,
        claimed: Vec<LeaseRef>,
        /// Whether claimable jobs remain in limited queues; `None` where the store need not check.
        has_left_some: Option<bool>,
        next_due: NextDue,
    },
    Extended {
        worker: usize,
        leases: Vec<LeaseRef>,
        statuses: Vec<LeaseStatus>,
    },
    Reaped {
        worker: usize,
        started: Option<Vec<LeaseRef>>,
        reaped: Vec<LeaseRef>,
        successor: usize,
    },
    Changed {
        name: String,
        answer: Answer,
    },
}

/// When a worker must wake up.
#[derive(Clone, Debug)]
pub struct NextDue {
    /// The latest time.
    pub needed: Option<i64>,
    /// Earlier times at which it may wake up in vain: a rate allows a start, but no job is ready.
    pub allowed: Vec<i64>,
}

#[derive(Clone, Debug)]
pub struct Model {
    pub memory: Memory,
    /// The current worker of each seat, by its index among all workers.
    pub seats: [usize; 3],
    /// Every lease that was ever granted, with its worker.
    leases: Vec<(usize, LeaseRef)>,
    pub expected: ExpectedAnswer,
}

impl Model {
    fn new() -> Self {
        let worker = |boot, queues| MemoryWorker { boot, queues };
        let workers =
            vec![worker("boot-1", None), worker("boot-1", Some(vec![1, 0])), worker("boot-2", None)];
        Self {
            memory: Memory { now: START_MILLIS, workers, ..Memory::default() },
            seats: [0, 1, 2],
            leases: Vec::new(),
            expected: ExpectedAnswer::Nothing,
        }
    }

    fn choose_lease(&self, worker: usize, choice: LeaseChoice) -> Option<LeaseRef> {
        let (back, leases): (usize, Vec<&LeaseRef>) = match choice {
            LeaseChoice::Own(back) => {
                let own = self.leases.iter().filter(|(holder, lease)| {
                    let held = self.memory.held(*holder, lease.job.as_str(), lease.attempt);
                    *holder == worker && held.is_some()
                });
                (back, own.map(|(_, lease)| lease).collect())
            }
            LeaseChoice::Any(back) => (back, self.leases.iter().map(|(_, lease)| lease).collect()),
        };
        let at = leases.len().checked_sub(1)? - back % leases.len();
        Some(leases[at].clone())
    }

    /// The existing jobs, the latest first.
    fn existing_jobs(&self) -> Vec<String> {
        let jobs = self.memory.jobs.iter().rev().filter(|job| !job.removed);
        jobs.map(|job| job.request.name.clone()).collect()
    }

    fn resolve(&self, drafts: &[Draft]) -> Vec<Request> {
        let existing = self.existing_jobs();
        let name = |(at, draft): (usize, &Draft)| match draft.namesake {
            Some(back) if !existing.is_empty() => existing[back % existing.len()].clone(),
            _ => format!("j{}", self.memory.jobs.len() + at),
        };
        let names: Vec<String> = drafts.iter().enumerate().map(name).collect();
        let request = |(at, draft): (usize, &Draft)| {
            let before = [&names[..at], &existing].concat();
            let parent = |parent: &Parent| match parent {
                Parent::Earlier(back) => before.get(back % before.len().max(1)).cloned(),
                Parent::SameEnqueue(back) => Some(names[back % names.len()].clone()),
                Parent::Unknown => Some(UNKNOWN_JOB.to_owned()),
            };
            let mut parents: Vec<String> = draft.parents.iter().filter_map(parent).collect();
            parents.sort();
            parents.dedup();
            Request { name: names[at].clone(), parents, ..draft.request.clone() }
        };
        drafts.iter().enumerate().map(request).collect()
    }

    fn change(&mut self, index: JobIndex, change: fn(&mut Memory, &str) -> Answer) -> ExpectedAnswer {
        let name = job_name(index, &self.existing_jobs());
        let answer = change(&mut self.memory, &name);
        ExpectedAnswer::Changed { name, answer }
    }

    fn exchange(
        &mut self,
        worker: usize,
        choices: &[(LeaseChoice, Outcome)],
        want: usize,
        want_limited: usize,
    ) -> ExpectedAnswer {
        let settled: Vec<(LeaseRef, Outcome)> = choices
            .iter()
            .filter_map(|(choice, outcome)| Some((self.choose_lease(worker, *choice)?, *outcome)))
            .collect();
        let mut states = Vec::new();
        for (lease, outcome) in &settled {
            let recorded = self.memory.settle(worker, lease.job.as_str(), lease.attempt, *outcome);
            let state = self.memory.find(lease.job.as_str()).map(|at| self.memory.jobs[at].state);
            states.push(state.filter(|_| recorded));
        }
        let claimed = self.memory.claim(worker, want, want_limited);
        let claimed: Vec<LeaseRef> = claimed.iter().map(|(name, attempt)| lease(name, *attempt)).collect();
        self.leases.extend(claimed.iter().map(|lease| (worker, lease.clone())));
        // If fewer jobs were claimed than wanted, any remaining claimable job was left because of `want_limited`.
        let has_left_some = (claimed.len() < want).then(|| self.waiting_in(worker, Memory::has_room));
        let next_due = self.next_due(worker, want);
        ExpectedAnswer::Exchanged {
            worker,
            settled,
            states,
            want,
            want_limited,
            claimed,
            has_left_some,
            next_due,
        }
    }

    /// Whether a job is ready for this worker in a queue that fulfils the condition.
    fn waiting_in(&self, worker: usize, condition: impl Fn(&Memory, usize) -> bool) -> bool {
        let memory = &self.memory;
        memory.claim_order(worker).into_iter().any(|at| condition(memory, memory.jobs[at].request.queue))
    }

    fn next_due(&self, worker: usize, want: usize) -> NextDue {
        let memory = &self.memory;
        let waiting = memory.jobs.iter().filter(|job| {
            let waits = [StateName::Pending, StateName::Failed].contains(&job.state);
            !job.removed && waits && job.blockers.is_empty()
        });
        let due = waiting.map(|job| job.due_at).filter(|due| *due > memory.now).min();
        let tokens = |queue: &usize| memory.lanes[*queue].next_token_at(memory.now);
        // A worker that wants no jobs need not wake up for a token.
        let needs = |queue: &usize| {
            let has_capacity = memory.lanes[*queue].has_capacity(memory.running(*queue));
            want > 0 && has_capacity && self.waiting_in(worker, |_, found| found == *queue)
        };
        let needed =
            (0..memory.lanes.len()).filter(needs).filter_map(|queue| tokens(&queue)).chain(due).min();
        NextDue { needed, allowed: (0..memory.lanes.len()).filter_map(|queue| tokens(&queue)).collect() }
    }

    fn extend(&mut self, worker: usize, choices: &[LeaseChoice]) -> ExpectedAnswer {
        let leases: Vec<LeaseRef> =
            choices.iter().filter_map(|choice| self.choose_lease(worker, *choice)).collect();
        let status = |lease: &LeaseRef| match self.memory.extend(worker, lease.job.as_str(), lease.attempt) {
            None => LeaseStatus::Lost,
            Some(true) => LeaseStatus::CancelRequested(Signal::TERM),
            Some(false) => LeaseStatus::Held,
        };
        let statuses = leases.iter().map(status).collect();
        for lease in self.held_by(worker).iter().filter(|lease| !leases.contains(lease)) {
            self.memory.settle(worker, lease.job.as_str(), lease.attempt, Outcome::Released);
        }
        ExpectedAnswer::Extended { worker, leases, statuses }
    }

    fn held_by(&self, worker: usize) -> Vec<LeaseRef> {
        self.memory.held_by(worker).map(|(job, _)| lease(&job.request.name, job.attempts)).collect()
    }

    fn reap(&mut self, seat: usize, known_started: Option<&[bool]>) -> ExpectedAnswer {
        let worker = self.seats[seat];
        let reaped = self.held_by(worker);
        let was_started = |at: usize| known_started.is_none_or(|started| started[at % started.len()]);
        let has_other_lost_attempts = (0..reaped.len()).filter(|at| was_started(*at)).count() > 1;
        let mut started = Vec::new();
        for (at, lease) in reaped.iter().enumerate() {
            let outcome = if was_started(at) {
                started.push(lease.clone());
                Outcome::Lost
            } else {
                Outcome::Released
            };
            let (job, attempt) = (lease.job.as_str(), lease.attempt);
            self.memory.record_outcome(worker, job, attempt, outcome, has_other_lost_attempts);
        }
        let successor = self.memory.workers.len();
        let same = self.memory.workers[worker].clone();
        self.memory.workers.push(same);
        self.seats[seat] = successor;
        ExpectedAnswer::Reaped { worker, started: known_started.map(|_| started), reaped, successor }
    }

    /// A dead worker, if there is one.
    fn dead_worker(&self, back: usize) -> Option<usize> {
        let dead_workers: Vec<usize> =
            (0..self.memory.workers.len()).filter(|worker| !self.seats.contains(worker)).collect();
        (!dead_workers.is_empty()).then(|| dead_workers[back % dead_workers.len()])
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::new()).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        // One worker is more active than the others.
        let seat = prop_oneof![3 => Just(0), 1 => 1..3_usize];
        let outcome = prop_oneof![1 => Just(Outcome::Success), 3 => select(&OUTCOMES[..])];
        let settled = vec((lease_choice(), outcome), 0..4);
        let concurrency = option::weighted(0.7, 1..4_usize);
        let rate = option::weighted(0.7, select(&RATES[..]));
        prop_oneof![
            10 => vec(draft(), 1..5).prop_map(Step::Enqueue),
            16 => (seat.clone(), settled.clone(), 0..4_usize, 0..4_usize).prop_map(
                |(seat, settled, want, want_limited)| Step::Exchange { seat, settled, want, want_limited }
            ),
            1 => (0..4_usize, settled).prop_map(|(dead, settled)| Step::LateSettle { dead, settled }),
            4 => select(&[1, 999, 1_000, 2_000, 5_000, 31_000][..]).prop_map(|millis| Step::Pass { millis }),
            2 => (seat.clone(), vec(lease_choice(), 0..4)).prop_map(|(seat, leases)| Step::Extend { seat, leases }),
            2 => (seat, option::of(vec(any::<bool>(), 3))).prop_map(|(seat, started)| Step::Reap { seat, started }),
            2 => index().prop_map(Step::Cancel),
            4 => index().prop_map(Step::Retry),
            2 => index().prop_map(Step::Remove),
            2 => index().prop_map(Step::PauseJob),
            1 => index().prop_map(Step::ResumeJob),
            1 => (0..3_usize).prop_map(Step::Pause),
            3 => (0..3_usize).prop_map(Step::Resume),
            3 => (0..3_usize, concurrency, rate)
                .prop_map(|(queue, concurrency, rate)| Step::Limit { queue, concurrency, rate }),
        ]
        .boxed()
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        state.expected = match step {
            Step::Pass { millis } => {
                state.memory.now += i64::try_from(*millis).expect("the duration fits into milliseconds");
                ExpectedAnswer::Nothing
            }
            Step::Enqueue(drafts) => {
                let batch = state.resolve(drafts);
                let answers = state.memory.enqueue(&batch);
                ExpectedAnswer::Enqueued { batch, answers }
            }
            Step::Exchange { seat, settled, want, want_limited } => {
                state.exchange(state.seats[*seat], settled, *want, *want_limited)
            }
            Step::LateSettle { dead, settled } => match state.dead_worker(*dead) {
                Some(worker) => state.exchange(worker, settled, 0, 0),
                None => ExpectedAnswer::Nothing,
            },
            Step::Extend { seat, leases } => state.extend(state.seats[*seat], leases),
            Step::Reap { seat, started } => state.reap(*seat, started.as_deref()),
            Step::Cancel(index) => state.change(*index, Memory::cancel),
            Step::Retry(index) => state.change(*index, Memory::retry),
            Step::Remove(index) => state.change(*index, Memory::remove),
            Step::PauseJob(index) => state.change(*index, Memory::pause),
            Step::ResumeJob(index) => state.change(*index, Memory::resume),
            Step::Pause(queue) => {
                state.memory.lanes[*queue].is_paused = true;
                ExpectedAnswer::Nothing
            }
            Step::Resume(queue) => {
                state.memory.lanes[*queue].is_paused = false;
                ExpectedAnswer::Nothing
            }
            Step::Limit { queue, concurrency, rate } => {
                let now = state.memory.now;
                state.memory.lanes[*queue].concurrency = *concurrency;
                state.memory.lanes[*queue].set_rate(*rate, now);
                ExpectedAnswer::Nothing
            }
        };
        state
    }
}

fn lease_choice() -> impl Strategy<Value = LeaseChoice> + Clone {
    prop_oneof![
        3 => (0..3_usize).prop_map(LeaseChoice::Own),
        1 => (0..20_usize).prop_map(LeaseChoice::Any),
    ]
}

fn index() -> impl Strategy<Value = JobIndex> {
    option::weighted(0.95, 0..12_usize)
}

fn draft() -> impl Strategy<Value = Draft> {
    let parent = prop_oneof![
        20 => (0..6_usize).prop_map(Parent::Earlier),
        3 => (0..4_usize).prop_map(Parent::SameEnqueue),
        1 => Just(Parent::Unknown),
    ];
    let parents = prop_oneof![2 => Just(Vec::new()), 1 => vec(parent, 1..3)];
    let names = (option::weighted(0.1, 0..20_usize), parents);
    let numbers = (0..3_usize, -1..2_i32, 0..3_u32);
    let delay = option::weighted(0.2, select(&[0, 1, 1_000, 2_000][..]));
    let key = option::weighted(0.2, select(&["k", "l"][..]));
    (names, numbers, delay, key, any::<[bool; 2]>()).prop_map(
        |(
            (namesake, parents),
            (queue, priority, max_retries),
            delay_millis,
            key,
            [runs_anyway, if_absent],
        )| {
            let request = Request {
                name: String::new(),
                queue,
                priority,
                max_retries,
                delay_millis,
                parents: Vec::new(),
                runs_anyway,
                key: key.map(str::to_owned),
                if_absent,
            };
            Draft { namesake, parents, request }
        },
    )
}

fn job_name(index: JobIndex, names: &[String]) -> String {
    match index {
        Some(back) if !names.is_empty() => names[back % names.len()].clone(),
        _ => UNKNOWN_JOB.to_owned(),
    }
}

fn lease(name: &str, attempt: u32) -> LeaseRef {
    LeaseRef { job: job_id(name), attempt }
}
