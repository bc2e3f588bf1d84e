//! Random histories, and what a store must answer to each of their steps.
//!
//! A history has three workers that settle, die and come back, words that come too late, and a clock that only it
//! moves. Whatever lease a step names is counted around what there is, so every history makes sense.

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
use crate::store::new_job::job_id;

/// The name of a job that is never there.
const NOBODY: &str = "nobody";
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

/// So many jobs in so many milliseconds.
const RATES: [MemoryRate; 3] = [(1, 60_000), (2, 40_000), (3, 1_000)];

#[derive(Clone, Debug)]
pub enum Step {
    Pass {
        millis: u64,
    },
    Enqueue(Vec<Draft>),
    Exchange {
        seat: usize,
        settled: Vec<(Pick, Outcome)>,
        want: usize,
        want_limited: usize,
    },
    /// A worker that died speaks.
    Haunt {
        ghost: usize,
        settled: Vec<(Pick, Outcome)>,
    },
    Extend {
        seat: usize,
        leases: Vec<Pick>,
    },
    /// A worker dies; perhaps somebody knows which of its leases it had started.
    Reap {
        seat: usize,
        started: Option<Vec<bool>>,
    },
    Cancel(Whom),
    Retry(Whom),
    Remove(Whom),
    Pause(usize),
    Resume(usize),
    Limit {
        queue: usize,
        concurrency: Option<usize>,
        rate: Option<MemoryRate>,
    },
}

/// A job that is there, counted back from the latest; `None` means nobody.
pub type Whom = Option<usize>;

/// A job to enqueue, but for the names.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Whose name it takes; `None` means a new one.
    pub namesake: Option<usize>,
    pub parents: Vec<Parent>,
    /// Everything else.
    pub request: Request,
}

/// What a job waits for, counted around what there is.
#[derive(Clone, Copy, Debug)]
pub enum Parent {
    Earlier(usize),
    /// Perhaps a later one, perhaps itself.
    OfBatch(usize),
    Nobody,
}

/// A lease: the one of the worker's own that was given so many ago, or any that was ever given.
#[derive(Clone, Copy, Debug)]
pub enum Pick {
    Own(usize),
    Any(usize),
}

/// What the store must answer to a step.
#[derive(Clone, Debug)]
pub enum Expected {
    Nothing,
    Enqueued {
        batch: Vec<Request>,
        answers: Option<Vec<(String, bool)>>,
    },
    Exchanged {
        worker: usize,
        settled: Vec<(LeaseRef, Outcome)>,
        /// The state that each led to; `None` if it came too late.
        states: Vec<Option<StateName>>,
        want: usize,
        want_limited: usize,
        claimed: Vec<LeaseRef>,
        /// Whether others could take more of queues with a limit; `None` where the worker may not have looked.
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

/// When a worker is to look again.
#[derive(Clone, Debug)]
pub struct NextDue {
    /// Not later than this.
    pub needed: Option<i64>,
    /// Moments at which it may look in vain: a rate lets a job start, and there is none.
    pub allowed: Vec<i64>,
}

#[derive(Clone, Debug)]
pub struct Model {
    pub memory: Memory,
    /// The worker that sits in each seat now, by its number among all that ever were.
    pub seats: [usize; 3],
    /// Every lease that was ever given, with its worker.
    leases: Vec<(usize, LeaseRef)>,
    pub expected: Expected,
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
            expected: Expected::Nothing,
        }
    }

    fn pick(&self, worker: usize, pick: Pick) -> Option<LeaseRef> {
        let (back, leases): (usize, Vec<&LeaseRef>) = match pick {
            Pick::Own(back) => {
                let own = self.leases.iter().filter(|(holder, lease)| {
                    let held = self.memory.held(*holder, lease.job.as_str(), lease.attempt);
                    *holder == worker && held.is_some()
                });
                (back, own.map(|(_, lease)| lease).collect())
            }
            Pick::Any(back) => (back, self.leases.iter().map(|(_, lease)| lease).collect()),
        };
        let at = leases.len().checked_sub(1)? - back % leases.len();
        Some(leases[at].clone())
    }

    /// The jobs that are there, the latest first.
    fn known(&self) -> Vec<String> {
        let jobs = self.memory.jobs.iter().rev().filter(|job| !job.removed);
        jobs.map(|job| job.request.name.clone()).collect()
    }

    fn resolve(&self, drafts: &[Draft]) -> Vec<Request> {
        let known = self.known();
        let name = |(at, draft): (usize, &Draft)| match draft.namesake {
            Some(back) if !known.is_empty() => known[back % known.len()].clone(),
            _ => format!("j{}", self.memory.jobs.len() + at),
        };
        let names: Vec<String> = drafts.iter().enumerate().map(name).collect();
        let request = |(at, draft): (usize, &Draft)| {
            let before = [&names[..at], &known].concat();
            let parent = |parent: &Parent| match parent {
                Parent::Earlier(back) => before.get(back % before.len().max(1)).cloned(),
                Parent::OfBatch(back) => Some(names[back % names.len()].clone()),
                Parent::Nobody => Some(NOBODY.to_owned()),
            };
            let mut parents: Vec<String> = draft.parents.iter().filter_map(parent).collect();
            parents.sort();
            parents.dedup();
            Request { name: names[at].clone(), parents, ..draft.request.clone() }
        };
        drafts.iter().enumerate().map(request).collect()
    }

    fn change(&mut self, whom: Whom, change: fn(&mut Memory, &str) -> Answer) -> Expected {
        let name = called(whom, &self.known());
        let answer = change(&mut self.memory, &name);
        Expected::Changed { name, answer }
    }

    fn exchange(
        &mut self,
        worker: usize,
        picks: &[(Pick, Outcome)],
        want: usize,
        want_limited: usize,
    ) -> Expected {
        let settled: Vec<(LeaseRef, Outcome)> =
            picks.iter().filter_map(|(pick, outcome)| Some((self.pick(worker, *pick)?, *outcome))).collect();
        let mut states = Vec::new();
        for (lease, outcome) in &settled {
            let recorded = self.memory.settle(worker, lease.job.as_str(), lease.attempt, *outcome);
            let state = self.memory.find(lease.job.as_str()).map(|at| self.memory.jobs[at].state);
            states.push(state.filter(|_| recorded));
        }
        let claimed = self.memory.claim(worker, want, want_limited);
        let claimed: Vec<LeaseRef> = claimed.iter().map(|(name, attempt)| lease(name, *attempt)).collect();
        self.leases.extend(claimed.iter().map(|lease| (worker, lease.clone())));
        // What has room and was not taken was left for want of use.
        let has_left_some = (claimed.len() < want).then(|| self.waiting_in(worker, Memory::has_room));
        let next_due = self.next_due(worker, want);
        Expected::Exchanged { worker, settled, states, want, want_limited, claimed, has_left_some, next_due }
    }

    /// Whether a job that a worker serves is ready in a queue of which this is true.
    fn waiting_in(&self, worker: usize, is_so: impl Fn(&Memory, usize) -> bool) -> bool {
        let memory = &self.memory;
        memory.line_of(worker).into_iter().any(|at| is_so(memory, memory.jobs[at].request.queue))
    }

    fn next_due(&self, worker: usize, want: usize) -> NextDue {
        let memory = &self.memory;
        let waiting = memory.jobs.iter().filter(|job| {
            let waits = [StateName::Pending, StateName::Failed].contains(&job.state);
            !job.removed && waits && job.blockers.is_empty()
        });
        let due = waiting.map(|job| job.due_at).filter(|due| *due > memory.now).min();
        let tokens = |queue: &usize| memory.lanes[*queue].next_token_at(memory.now);
        // One that wants nothing comes again when it does.
        let needs = |queue: &usize| {
            let has_place = memory.lanes[*queue].has_place(memory.running(*queue));
            want > 0 && has_place && self.waiting_in(worker, |_, found| found == *queue)
        };
        let needed =
            (0..memory.lanes.len()).filter(needs).filter_map(|queue| tokens(&queue)).chain(due).min();
        NextDue { needed, allowed: (0..memory.lanes.len()).filter_map(|queue| tokens(&queue)).collect() }
    }

    fn extend(&mut self, worker: usize, picks: &[Pick]) -> Expected {
        let leases: Vec<LeaseRef> = picks.iter().filter_map(|pick| self.pick(worker, *pick)).collect();
        let status = |lease: &LeaseRef| match self.memory.extend(worker, lease.job.as_str(), lease.attempt) {
            None => LeaseStatus::Lost,
            Some(true) => LeaseStatus::CancelRequested,
            Some(false) => LeaseStatus::Held,
        };
        let statuses = leases.iter().map(status).collect();
        for lease in self.held_by(worker).iter().filter(|lease| !leases.contains(lease)) {
            self.memory.settle(worker, lease.job.as_str(), lease.attempt, Outcome::Released);
        }
        Expected::Extended { worker, leases, statuses }
    }

    fn held_by(&self, worker: usize) -> Vec<LeaseRef> {
        self.memory.held_by(worker).map(|(job, _)| lease(&job.request.name, job.attempts)).collect()
    }

    fn reap(&mut self, seat: usize, known: Option<&[bool]>) -> Expected {
        let worker = self.seats[seat];
        let reaped = self.held_by(worker);
        let was_started = |at: usize| known.is_none_or(|started| started[at % started.len()]);
        let is_beside_others = (0..reaped.len()).filter(|at| was_started(*at)).count() > 1;
        let mut started = Vec::new();
        for (at, lease) in reaped.iter().enumerate() {
            let outcome = if was_started(at) {
                started.push(lease.clone());
                Outcome::Lost
            } else {
                Outcome::Released
            };
            let (job, attempt) = (lease.job.as_str(), lease.attempt);
            self.memory.settle_beside(worker, job, attempt, outcome, is_beside_others);
        }
        let successor = self.memory.workers.len();
        let same = self.memory.workers[worker].clone();
        self.memory.workers.push(same);
        self.seats[seat] = successor;
        Expected::Reaped { worker, started: known.map(|_| started), reaped, successor }
    }

    /// A worker that died, if one did.
    fn ghost(&self, back: usize) -> Option<usize> {
        let ghosts: Vec<usize> =
            (0..self.memory.workers.len()).filter(|worker| !self.seats.contains(worker)).collect();
        (!ghosts.is_empty()).then(|| ghosts[back % ghosts.len()])
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::new()).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        // One worker is busier than the others.
        let seat = prop_oneof![3 => Just(0), 1 => 1..3_usize];
        let outcome = prop_oneof![1 => Just(Outcome::Success), 3 => select(&OUTCOMES[..])];
        let settled = vec((pick(), outcome), 0..4);
        let concurrency = option::weighted(0.7, 1..4_usize);
        let rate = option::weighted(0.7, select(&RATES[..]));
        prop_oneof![
            10 => vec(draft(), 1..5).prop_map(Step::Enqueue),
            16 => (seat.clone(), settled.clone(), 0..4_usize, 0..4_usize).prop_map(
                |(seat, settled, want, want_limited)| Step::Exchange { seat, settled, want, want_limited }
            ),
            1 => (0..4_usize, settled).prop_map(|(ghost, settled)| Step::Haunt { ghost, settled }),
            4 => select(&[1, 999, 1_000, 2_000, 5_000, 31_000][..]).prop_map(|millis| Step::Pass { millis }),
            2 => (seat.clone(), vec(pick(), 0..4)).prop_map(|(seat, leases)| Step::Extend { seat, leases }),
            2 => (seat, option::of(vec(any::<bool>(), 3))).prop_map(|(seat, started)| Step::Reap { seat, started }),
            2 => whom().prop_map(Step::Cancel),
            4 => whom().prop_map(Step::Retry),
            2 => whom().prop_map(Step::Remove),
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
                state.memory.now += i64::try_from(*millis).expect("a short time");
                Expected::Nothing
            }
            Step::Enqueue(drafts) => {
                let batch = state.resolve(drafts);
                let answers = state.memory.enqueue(&batch);
                Expected::Enqueued { batch, answers }
            }
            Step::Exchange { seat, settled, want, want_limited } => {
                state.exchange(state.seats[*seat], settled, *want, *want_limited)
            }
            Step::Haunt { ghost, settled } => match state.ghost(*ghost) {
                Some(worker) => state.exchange(worker, settled, 0, 0),
                None => Expected::Nothing,
            },
            Step::Extend { seat, leases } => state.extend(state.seats[*seat], leases),
            Step::Reap { seat, started } => state.reap(*seat, started.as_deref()),
            Step::Cancel(whom) => state.change(*whom, Memory::cancel),
            Step::Retry(whom) => state.change(*whom, Memory::retry),
            Step::Remove(whom) => state.change(*whom, Memory::remove),
            Step::Pause(queue) => {
                state.memory.lanes[*queue].is_paused = true;
                Expected::Nothing
            }
            Step::Resume(queue) => {
                state.memory.lanes[*queue].is_paused = false;
                Expected::Nothing
            }
            Step::Limit { queue, concurrency, rate } => {
                let now = state.memory.now;
                state.memory.lanes[*queue].concurrency = *concurrency;
                state.memory.lanes[*queue].set_rate(*rate, now);
                Expected::Nothing
            }
        };
        state
    }
}

fn pick() -> impl Strategy<Value = Pick> + Clone {
    prop_oneof![
        3 => (0..3_usize).prop_map(Pick::Own),
        1 => (0..20_usize).prop_map(Pick::Any),
    ]
}

fn whom() -> impl Strategy<Value = Whom> {
    option::weighted(0.95, 0..12_usize)
}

fn draft() -> impl Strategy<Value = Draft> {
    let parent = prop_oneof![
        20 => (0..6_usize).prop_map(Parent::Earlier),
        3 => (0..4_usize).prop_map(Parent::OfBatch),
        1 => Just(Parent::Nobody),
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

fn called(whom: Whom, names: &[String]) -> String {
    match whom {
        Some(back) if !names.is_empty() => names[back % names.len()].clone(),
        _ => NOBODY.to_owned(),
    }
}

fn lease(name: &str, attempt: u32) -> LeaseRef {
    LeaseRef { job: job_id(name), attempt }
}
