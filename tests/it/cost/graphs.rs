//! Every operation on a graph of jobs takes time linear in its size, in transactions whose length does not depend on
//! the size. Other writers are served between two transactions.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use ops::OpError;
use ops::jobs::bulk;
use ops::jobs::change;
use ops::jobs::change::{Tally, change_ids};
use ops::upkeep::prune;
use ops::upkeep::prune::PruneScope;
use rusqlite::{Connection, params};
use store::{Change, JobFilter, JobRef, JobVerb, Phase};
use tempfile::TempDir;

use super::tape;
use super::tape::Run;
use crate::store::fixture::new_job::{JobBuilder, job, job_id};
use crate::store::fixture::{ACTOR, Fixture};

/// In percent: which B-tree pages are split varies between runs, and larger trees are deeper.
const TOLERANCE_PERCENT: u64 = 15;

/// The most steps of a transaction: slightly more than was counted, about 50 ms.
const MAX_TRANSACTION_STEPS: u64 = 400_000;

/// The cost of an operation, in steps of SQLite's virtual machine.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// The sum over all transactions.
    sum: u64,
    /// The longest write transaction.
    longest: u64,
}

impl Cost {
    fn of(runs: &[Run]) -> Self {
        let steps = |runs: &[Run]| runs.iter().map(|run| u64::from(run.steps)).sum();
        let is_begin = |run: &Run| run.sql == "begin immediate";
        let writes = runs.split(is_begin).skip(1).map(|rest| {
            let end = rest.iter().position(|run| run.sql == "commit").unwrap_or(rest.len());
            steps(&rest[..end])
        });
        Self { sum: steps(runs), longest: writes.max().unwrap_or(0) }
    }
}

/// A queue that contains a graph of jobs.
struct Graph {
    fixture: Fixture,
    folder: TempDir,
    /// The number of its jobs and of the dependencies between them.
    size: u64,
}

impl Graph {
    fn of(jobs: Vec<JobBuilder>, size: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        tape::start();
        let fixture = Fixture::sqlite_in(folder.path());
        tape::stop();
        fixture.set(SettingKey::Durability, "normal");
        fixture.enqueue_all(jobs);
        Self { fixture, folder, size: size as u64 }
    }

    /// Each job depends on the previous one.
    fn chain(length: usize) -> Self {
        let first = std::iter::once(job("j0"));
        let others = (1..length).map(|at| job(&format!("j{at}")).after(&[format!("j{}", at - 1).as_str()]));
        Self::of(first.chain(others).collect(), 2 * length)
    }

    /// Each job of a layer depends on all jobs of the previous layer.
    fn layers(count: usize, width: usize) -> Self {
        let names =
            |layer: usize| (0..width).map(|at| format!("j{}", layer * width + at)).collect::<Vec<_>>();
        let mut jobs: Vec<JobBuilder> = names(0).iter().map(|name| job(name)).collect();
        for layer in 1..count {
            let parents = names(layer - 1);
            let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
            jobs.extend(names(layer).iter().map(|name| job(name).after(&parents)));
        }
        Self::of(jobs, count * width + (count - 1) * width * width)
    }

    /// One job depends on every job of a chain.
    fn fan(parents: usize) -> Self {
        let name = |at: usize| format!("j{at}");
        let mut jobs = vec![job("j0")];
        jobs.extend((1..parents).map(|at| job(&name(at)).after(&[name(at - 1).as_str()])));
        let all: Vec<String> = (0..parents).map(name).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        jobs.push(job(&name(parents)).after(&all));
        Self::of(jobs, 3 * parents)
    }

    fn select(&self, state: StateName) -> Vec<JobRef> {
        let filter = JobFilter::in_phase(Phase::State(state));
        change::select(self.fixture.store.as_ref(), &filter).expect("a selection")
    }

    fn cost(&self, work: impl FnOnce(&Self)) -> Cost {
        tape::start();
        work(self);
        let cost = Cost::of(&tape::take());
        tape::stop();
        cost
    }

    /// Changes all jobs in a state.
    fn change(&self, verb: JobVerb, state: StateName) -> Tally {
        let jobs = self.select(state);
        let count = jobs.len() as u64;
        let mut processed = 0;
        let tally =
            bulk::change_selected(self.fixture.store.as_ref(), verb, jobs, ACTOR, |more| processed += more)
                .expect("the jobs are changed");
        assert_eq!(processed, count, "each job is processed once");
        assert_eq!((tally.done, tally.skipped), (count, 0), "{verb:?} changes all jobs");
        tally
    }

    /// The cost of each verb that processes the whole graph.
    fn costs(&self) -> Vec<(&'static str, Cost)> {
        let cancelled = StateName::Cancelled;
        let costs = vec![
            ("cancel the root and all its dependents", self.cost(|graph| drop(graph.fixture.cancel("j0")))),
            ("retry all", self.cost(|graph| drop(graph.change(JobVerb::Retry, cancelled)))),
            ("cancel all", self.cost(|graph| drop(graph.change(JobVerb::CANCEL, StateName::Pending)))),
            ("remove a part", self.cost(Self::remove_newest)),
            ("prune the rest", self.cost(Self::prune)),
        ];
        assert_eq!(self.select(cancelled).len(), 0, "all jobs are deleted");
        self.fixture.recount();
        costs
    }

    fn remove_newest(&self) {
        let all = self.select(StateName::Cancelled);
        let some = all[..all.len() / 2].to_vec();
        let tally =
            bulk::change_selected(self.fixture.store.as_ref(), JobVerb::Remove, some.clone(), ACTOR, |_| {})
                .expect("the jobs are removed");
        assert_eq!(tally.done, some.len() as u64);
    }

    fn prune(&self) {
        let rest = PruneScope::Chosen(self.select(StateName::Cancelled));
        prune::prune(self.fixture.store.as_ref(), self.folder.path(), &rest, ACTOR, |_| {}).expect("prune");
    }
}

/// The cost of every verb grows with the size and no faster, and no transaction becomes longer.
#[track_caller]
fn assert_linear_in_short_transactions(small: &Graph, large: &Graph) {
    let more = |value: u64| value + value * TOLERANCE_PERCENT / 100;
    for ((verb, few), (_, many)) in small.costs().into_iter().zip(large.costs()) {
        let expected = more(few.sum * large.size / small.size);
        assert!(many.sum <= expected, "{verb}: {few:?} became {many:?}, more than {expected} in all");
        assert!(many.longest <= MAX_TRANSACTION_STEPS, "{verb}: {many:?}: a transaction is too long");
    }
}

#[test]
fn fault_40_a_chain_is_changed_in_linear_time_and_short_transactions() {
    assert_linear_in_short_transactions(&Graph::chain(600), &Graph::chain(2_400));
}

#[test]
fn fault_40_ten_full_layers_are_changed_in_linear_time_and_short_transactions() {
    assert_linear_in_short_transactions(&Graph::layers(10, 15), &Graph::layers(10, 40));
}

#[test]
fn fault_40_a_job_with_two_thousand_parents_is_changed_in_linear_time() {
    let (small, large) = (Graph::fan(500), Graph::fan(2_000));
    assert_linear_in_short_transactions(&small, &large);
}

/// Removes a job with very many finished dependents. Returns the number of transactions and their cost.
fn remove_parent_of(dependents: usize) -> (usize, Cost) {
    let graph = Graph::of(vec![job("parent")], 1);
    let database = Connection::open(graph.folder.path().join("queue.db")).expect("the database opens");
    let links = "insert into dependencies (parent_seq, child_seq, blocks)
                 with recursive numbers (n) as (select 2 union all select n + 1 from numbers where n <= ?1)
                 select 1, n, 0 from numbers";
    assert_eq!(database.execute(links, params![dependents]), Ok(dependents));
    tape::start();
    graph.fixture.remove("parent");
    let runs = tape::take();
    tape::stop();
    (runs.iter().filter(|run| run.sql == "commit").count(), Cost::of(&runs))
}

#[test]
fn fault_40_a_job_with_very_many_finished_dependents_is_removed_in_short_transactions() {
    let ((_, few), (transactions, many)) = (remove_parent_of(20_001), remove_parent_of(100_000));
    assert!(transactions >= 5, "{transactions} transactions");
    assert!(many.longest <= 4 * few.longest, "{few:?} became {many:?}");
}

#[test]
fn fault_40_another_writer_is_served_between_two_transactions() {
    let graph = Graph::layers(10, 30);
    let other = Fixture::sqlite_in(graph.folder.path());
    graph.fixture.cancel("j0");
    let jobs = graph.select(StateName::Cancelled);
    let mut served = 0;
    let enqueue = |_| {
        other.enqueue(job(&format!("served-{served}")));
        served += 1;
    };
    bulk::change_selected(graph.fixture.store.as_ref(), JobVerb::Retry, jobs, ACTOR, enqueue)
        .expect("a retry");
    assert!(served >= 3, "{served} portions");
}

/// The cost of retrying a job whose parent was removed and enqueued again after this many full layers.
fn retry_across_layers(count: usize) -> Cost {
    const WIDTH: usize = 60;
    let graph = Graph::layers(count, WIDTH);
    let fixture = &graph.fixture;
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("y").priority(9), job("x").priority(9).after(&["y"])]);
    for id in ["y", "x"] {
        assert_eq!(fixture.run(&worker, Outcome::Success), id);
    }
    fixture.remove("y");
    let last: Vec<String> = ((count - 1) * WIDTH..count * WIDTH).map(|at| format!("j{at}")).collect();
    let last: Vec<&str> = last.iter().map(String::as_str).collect();
    fixture.enqueue(job("y").after(&last));
    graph.cost(|graph| assert_eq!(graph.fixture.retry("x"), Change::Done(StateName::Pending)))
}

#[test]
fn fault_40_a_search_for_dependency_cycles_is_bounded() {
    let (few, many) = (retry_across_layers(3), retry_across_layers(6));
    assert!(many.longest <= few.longest * (100 + TOLERANCE_PERCENT) / 100, "{few:?} became {many:?}");
}

#[test]
fn cancelling_every_job_of_a_graph_by_id_reports_each_as_cancelled() {
    let graph = Graph::layers(5, 40);
    let ids: Vec<_> = (0..200).map(|at| job_id(&format!("j{at}"))).collect();
    let answers = change_ids(graph.fixture.store.as_ref(), JobVerb::CANCEL, &ids, ACTOR).jobs;
    assert_eq!(answers.len(), ids.len());
    for (id, answer) in ids.iter().zip(answers) {
        assert!(answer.is_ok_and(|changed| changed.state == StateName::Cancelled), "{id}");
    }
    let again = change_ids(graph.fixture.store.as_ref(), JobVerb::CANCEL, &ids, ACTOR).jobs;
    assert!(again.iter().all(Result::is_err), "cancelled jobs are not changed again");
}

#[test]
fn changes_before_an_error_are_reported() {
    let jobs: Vec<JobBuilder> = (0..1_100).map(|at| job(&format!("j{at}"))).collect();
    let graph = Graph::of(jobs, 1_100);
    let database = Connection::open(graph.folder.path().join("queue.db")).expect("the database opens");
    database
        .execute_batch(
            "create trigger refuse before delete on jobs when old.id = 'j1099'
             begin select raise(abort, 'refused by the test'); end",
        )
        .expect("a trigger");
    let ids: Vec<_> = (0..1_100).map(|at| job_id(&format!("j{at}"))).collect();
    let answers = change_ids(graph.fixture.store.as_ref(), JobVerb::Remove, &ids, ACTOR);
    let done = answers.jobs.iter().filter(|answer| answer.is_ok()).count();
    assert!((1..1_100).contains(&done), "{done} jobs were removed");
    assert_eq!(graph.select(StateName::Pending).len(), 1_100 - done, "only the reported jobs are removed");
    let stopped = answers.stopped.expect("an error");
    assert!(
        matches!(stopped, OpError::PartlyDone { done: reported, .. } if reported == done as u64),
        "{stopped:?}"
    );
}
