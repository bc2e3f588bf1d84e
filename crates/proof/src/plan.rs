//! The plan of a trial, derived from its seed: jobs, schedules, client actions, and worker pools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use super::actor::{ACT, Escape};
use super::ledger::CommandEnd;
use domain::queue::rate::Rate;
use domain::schedule::{OnMissed, OnOverlap};
use domain::text::shell::quote_words;
use domain::values::signal::Signal;
use sys::cgroup;

/// The settings of a trial. Leases are short, so that many expire in a trial. The shortest jobs are much shorter, the longest
/// much longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub lease: Duration,
    pub heartbeat: Duration,
    pub kill_grace: Duration,
}

impl Timing {
    pub const ON_A_FILE: Self = Self {
        lease: Duration::from_secs(1),
        heartbeat: Duration::from_millis(300),
        kill_grace: Duration::from_millis(200),
    };
    /// A worker that is cut off needs a part of its lease to notice, and to end its commands.
    pub const ON_A_SERVER: Self = Self {
        lease: Duration::from_secs(3),
        heartbeat: Duration::from_millis(500),
        kill_grace: Duration::from_millis(300),
    };
}

/// How large a plan is.
#[derive(Clone, Copy, Debug)]
struct Scale {
    timing: Timing,
    first_jobs: usize,
    /// The longest pause between the actions of a client, in milliseconds.
    longest_pause: u64,
    /// The shortest and the longest time of the faults, in milliseconds.
    strike_time: (u64, u64),
}

impl Scale {
    const ON_A_FILE: Self =
        Self { timing: Timing::ON_A_FILE, first_jobs: 24, longest_pause: 250, strike_time: (2_500, 3_500) };
    const ON_A_SERVER: Self = Self {
        timing: Timing::ON_A_SERVER,
        first_jobs: 16,
        longest_pause: 1_000,
        strike_time: (10_000, 14_000),
    };
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub timing: Timing,
    /// Stored before the workers start.
    pub jobs: Vec<JobPlan>,
    /// The actions of each client during the faults, in order.
    pub clients: Vec<Vec<Action>>,
    pub pools: Vec<PoolPlan>,
    /// Queues in addition to the default one.
    pub queues: Vec<QueuePlan>,
    /// Added before the workers start, removed after the nemesis has healed.
    pub schedules: Vec<SchedulePlan>,
    /// How long the nemesis injects faults.
    pub strike_time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    pub count: u32,
    pub concurrency: u32,
}

/// A queue with a concurrency or rate limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    pub name: &'static str,
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
}

/// A schedule and its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulePlan {
    pub every: Duration,
    pub on_overlap: OnOverlap,
    pub on_missed: OnMissed,
    /// Its id is the schedule's name.
    pub job: JobPlan,
}

/// A request that a client sends after a pause.
#[derive(Clone, Debug)]
pub struct Action {
    pub pause: Duration,
    pub request: Request,
}

#[derive(Clone, Debug)]
pub enum Request {
    Enqueue(Vec<JobPlan>),
    Cancel(String),
    Retry(String),
}

/// A job and how its command behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    pub id: String,
    /// `None`: the default queue.
    pub queue: Option<&'static str>,
    pub lives: Duration,
    /// How each attempt ends; all later ones end as the last.
    pub ends: Vec<CommandEnd>,
    pub escapes: Vec<Escape>,
    pub ignores_sigterm: bool,
    /// Whether a shell remains between the worker and the command.
    pub in_shell: bool,
    /// In how many of its first attempts the shell kills the worker before it runs the command.
    pub kills_worker: u32,
    /// A program that runs the command with other privileges than the worker's.
    pub runs_through: Option<PathBuf>,
    pub max_retries: u32,
    /// The base of the backoff, which doubles with each failure; the first retry waits twice this time.
    pub retry_delay: Duration,
    pub delay: Option<Duration>,
    pub timeout: Option<Duration>,
    pub depends_on: Vec<String>,
    /// Whether it runs even if a dependency failed.
    pub runs_anyway: bool,
    pub unique_key: Option<String>,
    /// The same for all jobs that are enqueued with one call.
    pub batch: Option<&'static str>,
    pub priority: i32,
}

/// Which escapes are allowed with a nemesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// Every way to escape.
    All,
    /// No process sheds every mark.
    Findable,
}

impl Escapes {
    /// For a nemesis with which worker and supervisor may die together. Where workers cannot make control groups, a process
    /// that has shed every mark is then not found, and no promise says that it is.
    pub fn when_all_die() -> Self {
        if cgroup::can_contain().is_ok() { Self::All } else { Self::Findable }
    }
}

const CLIENTS: usize = 2;
const ACTIONS_PER_CLIENT: usize = 12;
/// Few enough that some jobs with a key find it taken.
const UNIQUE_KEYS: u32 = 3;
/// Queues with limits below the total number of slots.
const QUEUES: [&str; 3] = ["narrow", "wider", RATE_LIMITED];
/// A queue with a rate slow enough that jobs wait, and fast enough that a trial does not take much longer.
pub const RATE_LIMITED: &str = "paced";
const STARTS_PER_SECOND: u32 = 4;
const BATCHES: [&str; 2] = ["red", "green"];
const SCHEDULES: [&str; 2] = ["tick", "tock"];
/// How many consecutive jobs of the first ones share a batch, or have none.
const FIRST_GROUP_SIZE: usize = 4;
const MAX_DEPENDENCIES: usize = 3;

impl Plan {
    /// For one host with a queue in a file, and two pools of workers.
    pub fn new(seed: u64, escapes: Escapes) -> Self {
        let pools = |random: &mut Rng| {
            let concurrency = random.u32(1..=3);
            (0..2).map(|_| PoolPlan { count: random.u32(1..=2), concurrency }).collect()
        };
        Self::of(seed, escapes, Scale::ON_A_FILE, pools)
    }

    /// For several hosts with a queue on a server, and one pool on each.
    pub fn for_hosts(seed: u64, escapes: Escapes, hosts: usize) -> Self {
        let pools = |random: &mut Rng| {
            let concurrency = random.u32(2..=3);
            let count = |at: usize| if at == 0 { 2 } else { 1 };
            (0..hosts).map(|at| PoolPlan { count: count(at), concurrency }).collect()
        };
        Self::of(seed, escapes, Scale::ON_A_SERVER, pools)
    }

    fn of(seed: u64, escapes: Escapes, scale: Scale, pools: impl Fn(&mut Rng) -> Vec<PoolPlan>) -> Self {
        let mut random = Rng::with_seed(seed);
        let timing = scale.timing;
        let mut jobs = Vec::new();
        for at in 0..scale.first_jobs {
            let job = job(&mut random, format!("j{at}"), escapes, timing.lease, &jobs);
            jobs.push(job);
        }
        for together in jobs.chunks_mut(FIRST_GROUP_SIZE) {
            put_into_batch(&mut random, together);
        }
        let clients =
            (0..CLIENTS).map(|client| client_actions(&mut random, client, escapes, scale, &jobs)).collect();
        let pools = pools(&mut random);
        let schedules = schedules(&mut random, escapes, timing.lease);
        let (shortest, longest) = scale.strike_time;
        let strike_time = Duration::from_millis(random.u64(shortest..longest));
        Self { seed, timing, jobs, clients, pools, queues: queues(), schedules, strike_time }
    }

    /// Changes every job that may be requested.
    pub fn each_job(&mut self, mut change: impl FnMut(&mut JobPlan)) {
        let later = self.clients.iter_mut().flatten().flat_map(|action| match &mut action.request {
            Request::Enqueue(jobs) => jobs.as_mut_slice(),
            Request::Cancel(_) | Request::Retry(_) => &mut [],
        });
        let scheduled = self.schedules.iter_mut().map(|schedule| &mut schedule.job);
        self.jobs.iter_mut().chain(later).chain(scheduled).for_each(&mut change);
    }

    /// The slots of every worker.
    pub fn concurrency(&self) -> u32 {
        self.pools.iter().map(|pool| pool.concurrency).max().unwrap_or(1)
    }
}

fn queues() -> Vec<QueuePlan> {
    let limited = (1..).zip(["narrow", "wider"]);
    let limited = limited.map(|(limit, name)| QueuePlan { name, concurrency: Some(limit), rate: None });
    let rate = Rate::new(STARTS_PER_SECOND, Duration::from_secs(1)).ok();
    limited.chain([QueuePlan { name: RATE_LIMITED, concurrency: None, rate }]).collect()
}

/// One or two schedules. Their jobs mostly end before the next run, but not always.
fn schedules(random: &mut Rng, escapes: Escapes, lease: Duration) -> Vec<SchedulePlan> {
    let count = random.usize(1..=SCHEDULES.len());
    let one = |name: &str| {
        let on_overlap = if random.bool() { OnOverlap::Skip } else { OnOverlap::Queue };
        let longest = if on_overlap == OnOverlap::Skip { 1_500 } else { 600 };
        let job = JobPlan {
            queue: None,
            lives: Duration::from_millis(random.u64(5..longest)),
            max_retries: random.u32(0..3),
            delay: None,
            timeout: None,
            depends_on: Vec::new(),
            unique_key: None,
            ..job(random, name.to_owned(), escapes, lease, &[])
        };
        let on_missed = if random.bool() { OnMissed::Skip } else { OnMissed::Once };
        SchedulePlan { every: Duration::from_secs(random.u64(1..=2)), on_overlap, on_missed, job }
    };
    SCHEDULES.into_iter().take(count).map(one).collect()
}

fn put_into_batch(random: &mut Rng, together: &mut [JobPlan]) {
    let batch = random.choice(BATCHES).filter(|_| random.u32(0..3) == 0);
    for job in together {
        job.batch = batch;
    }
}

fn client_actions(
    random: &mut Rng,
    client: usize,
    escapes: Escapes,
    scale: Scale,
    first: &[JobPlan],
) -> Vec<Action> {
    let lease = scale.timing.lease;
    let mut own: Vec<JobPlan> = Vec::new();
    let mut actions = Vec::new();
    for at in 0..ACTIONS_PER_CLIENT {
        let pause = Duration::from_millis(random.u64(20..scale.longest_pause));
        let request = match random.u32(0..10) {
            0 | 1 => Request::Cancel(any_id(random, first)),
            2 | 3 => Request::Retry(any_id(random, first)),
            4 => {
                let mut some = (0..random.usize(2..6))
                    .map(|part| job(random, format!("c{client}.{at}.{part}"), escapes, lease, &own))
                    .collect::<Vec<_>>();
                put_into_batch(random, &mut some);
                own.extend(some.clone());
                Request::Enqueue(some)
            }
            _ => {
                let mut one = vec![job(random, format!("c{client}.{at}"), escapes, lease, &own)];
                put_into_batch(random, &mut one);
                own.extend(one.clone());
                Request::Enqueue(one)
            }
        };
        actions.push(Action { pause, request });
    }
    actions
}

fn any_id(random: &mut Rng, jobs: &[JobPlan]) -> String {
    random.choice(jobs).map_or_else(String::new, |job| job.id.clone())
}

/// Up to [`MAX_DEPENDENCIES`] different ids.
fn some_ids(random: &mut Rng, jobs: &[JobPlan]) -> Vec<String> {
    let count = random.usize(1..=MAX_DEPENDENCIES);
    random.choose_multiple(jobs.iter(), count).into_iter().map(|job| job.id.clone()).collect()
}

fn job(random: &mut Rng, id: String, escapes: Escapes, lease: Duration, earlier: &[JobPlan]) -> JobPlan {
    let millis = |random: &mut Rng, range: std::ops::Range<u64>| Duration::from_millis(random.u64(range));
    let one_in = |random: &mut Rng, n: u32| random.u32(0..n) == 0;
    let lives = match random.u32(0..10) {
        0..=4 => millis(random, 1..50),
        5..=7 => millis(random, 50..500),
        _ => lease * random.u32(150..250) / 100,
    };
    let in_shell = one_in(random, 2);
    let depends_on = if one_in(random, 6) { some_ids(random, earlier) } else { Vec::new() };
    JobPlan {
        id,
        queue: one_in(random, 4).then(|| random.choice(QUEUES)).flatten(),
        lives,
        ends: if lives > lease { vec![CommandEnd::Exit(0)] } else { endings(random, in_shell) },
        escapes: if one_in(random, 3) { some_escapes(random, escapes) } else { Vec::new() },
        ignores_sigterm: one_in(random, 6),
        in_shell,
        kills_worker: 0,
        runs_through: None,
        max_retries: random.u32(0..4),
        retry_delay: millis(random, 20..120),
        delay: one_in(random, 6).then(|| millis(random, 100..1_500)),
        timeout: one_in(random, 8).then(|| millis(random, 100..400)),
        depends_on,
        runs_anyway: one_in(random, 2),
        unique_key: one_in(random, 8).then(|| format!("k{}", random.u32(0..UNIQUE_KEYS))),
        batch: None,
        priority: random.i32(-2..3),
    }
}

/// Most commands succeed, at once or after some failures; some never do. In a shell no signals are used, because the shell
/// would turn them into exit codes.
fn endings(random: &mut Rng, in_shell: bool) -> Vec<CommandEnd> {
    /// Signals that end a process without a core dump and have no meaning for a worker.
    const SIGNALS: [i32; 3] = [1, 10, 15];
    let failure = |random: &mut Rng| {
        let signal = random.choice(SIGNALS).and_then(Signal::from_number).filter(|_| random.bool());
        match signal {
            Some(signal) if !in_shell => CommandEnd::Signal(signal),
            Some(_) | None => CommandEnd::Exit(random.i32(1..=255)),
        }
    };
    let mut ends: Vec<CommandEnd> = (0..random.usize(0..3)).map(|_| failure(random)).collect();
    if ends.is_empty() || random.u32(0..4) > 0 {
        ends.push(CommandEnd::Exit(0));
    }
    ends
}

fn some_escapes(random: &mut Rng, escapes: Escapes) -> Vec<Escape> {
    let allowed = |escape: &Escape| match escapes {
        Escapes::All => true,
        Escapes::Findable => *escape != Escape::Naked,
    };
    Escape::ALL.into_iter().filter(allowed).filter(|_| random.u32(0..3) == 0).collect()
}

impl JobPlan {
    /// The JSON for `enqueue`.
    pub fn to_json(&self, program: &Path, ledger: &Path) -> Value {
        let millis = |span: Duration| format!("{}ms", span.as_millis());
        let mut job = json!({
            "id": self.id,
            "command": self.command(program, ledger),
            "max_retries": self.max_retries,
            "priority": self.priority,
            "backoff": self.backoff(),
        });
        if let Some(queue) = self.queue {
            job["queue"] = queue.into();
        }
        if let Some(delay) = self.delay {
            job["delay"] = millis(delay).into();
        }
        if let Some(timeout) = self.timeout {
            job["timeout"] = millis(timeout).into();
        }
        if !self.depends_on.is_empty() {
            job["depends_on"] = json!(self.depends_on);
            job["on_dependency_failure"] = if self.runs_anyway { "run" } else { "cancel" }.into();
        }
        if let Some(key) = &self.unique_key {
            job["unique_key"] = key.as_str().into();
        }
        job
    }

    fn backoff(&self) -> Value {
        let delay = format!("{}ms", self.retry_delay.as_millis());
        json!({"strategy": "exponential", "delay": delay, "base": 2})
    }

    pub fn command(&self, program: &Path, ledger: &Path) -> String {
        let listed = |words: Vec<String>| words.join(",");
        let mut words: Vec<String> =
            self.runs_through.iter().map(|through| through.display().to_string()).collect();
        words.extend([
            program.display().to_string(),
            ACT.to_owned(),
            ledger.display().to_string(),
            format!("--lives={}ms", self.lives.as_millis()),
            format!("--ends={}", listed(self.ends.iter().map(CommandEnd::to_string).collect())),
        ]);
        if !self.escapes.is_empty() {
            let names = self.escapes.iter().map(|escape| escape.name().to_owned()).collect();
            words.push(format!("--escapes={}", listed(names)));
        }
        if self.ignores_sigterm {
            words.push("--deaf".to_owned());
        }
        let line = quote_words(&words);
        let line = if self.in_shell { format!("{line}; exit $?") } else { line };
        match self.kills_worker {
            0 => line,
            times => format!("[ \"$QUEUECTL_ATTEMPT\" -gt {times} ] || kill -9 \"$PPID\"; {line}"),
        }
    }
}

impl SchedulePlan {
    pub fn name(&self) -> &str {
        &self.job.id
    }

    /// The arguments for `schedule add`.
    pub fn words(&self, program: &Path, ledger: &Path) -> Vec<String> {
        let every = format!("{}s", self.every.as_secs());
        let (retries, backoff) = (self.job.max_retries.to_string(), self.job.backoff().to_string());
        let (missed, overlap) = (self.on_missed.name(), self.on_overlap.name());
        let command = self.job.command(program, ledger);
        [
            "-q",
            "schedule",
            "add",
            self.name(),
            "--every",
            &every,
            "--on-missed",
            missed,
            "--on-overlap",
            overlap,
        ]
        .into_iter()
        .chain(["--max-retries", &retries, "--backoff", &backoff, "--command", &command])
        .map(str::to_owned)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_jobs(mut plan: Plan) -> Vec<JobPlan> {
        let mut jobs = Vec::new();
        plan.each_job(|job| jobs.push(job.clone()));
        jobs
    }

    #[test]
    fn a_seed_determines_the_plan() {
        let shown = |seed| format!("{:?}", Plan::new(seed, Escapes::All));
        assert_eq!(shown(7), shown(7));
        assert_ne!(shown(7), shown(8));
    }

    #[test]
    fn every_plan_has_jobs_that_outlive_a_lease_and_unique_ids() {
        for seed in 0..50 {
            for plan in [Plan::new(seed, Escapes::Findable), Plan::for_hosts(seed, Escapes::Findable, 3)] {
                check_jobs(plan);
            }
        }
    }

    fn check_jobs(plan: Plan) {
        let (seed, lease) = (plan.seed, plan.timing.lease);
        let jobs = all_jobs(plan);
        assert!(jobs.iter().any(|job| job.lives > lease), "seed {seed}");
        let mut ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "seed {seed}");
        assert!(jobs.iter().all(|job| !job.escapes.contains(&Escape::Naked)), "seed {seed}");
    }

    #[test]
    fn enqueue_accepts_the_json_of_every_job() {
        use domain::job::spec::JobSpec;
        for job in all_jobs(Plan::new(3, Escapes::All)) {
            let json = job.to_json(Path::new("/a b/queuectl"), Path::new("/tmp/x/ledger"));
            let read: Result<JobSpec, _> = serde_json::from_str(&json.to_string());
            assert!(read.is_ok(), "{json}: {read:?}");
        }
    }
}
