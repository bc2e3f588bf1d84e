//! Pages of a list while jobs come and leave: no job twice, and none lost that was there all the time.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use store::{JobFilter, Page, Store};

use super::client::Server;
use crate::store::fixture::new_job::job;

/// Between two pages.
#[derive(Clone, Debug)]
enum Event {
    Enqueue {
        priority: i32,
    },
    /// By its place among those that are left.
    Remove {
        place: usize,
    },
    Cancel {
        place: usize,
    },
}

fn events() -> impl Strategy<Value = Vec<Vec<Event>>> {
    let event = prop_oneof![
        (-3..=3_i32).prop_map(|priority| Event::Enqueue { priority }),
        (0..40_usize).prop_map(|place| Event::Remove { place }),
        (0..40_usize).prop_map(|place| Event::Cancel { place }),
    ];
    proptest::collection::vec(proptest::collection::vec(event, 0..4), 0..12)
}

/// The ids of a queue's jobs, the newest first.
fn present(store: &dyn Store, queue: &str) -> Vec<String> {
    let filter = JobFilter { queue: Some(queue.parse().expect("a name")), ..JobFilter::default() };
    let page = Page { limit: usize::MAX, after: None };
    store.list(&filter, &page).expect("a list").into_iter().map(|job| job.id.as_str().to_owned()).collect()
}

struct Walk<'a> {
    server: &'a Server,
    store: Box<dyn Store>,
    queue: String,
    enqueued: usize,
    /// Jobs that were removed or changed on the way.
    touched: BTreeSet<String>,
}

impl Walk<'_> {
    fn enqueue(&mut self, priority: i32) {
        self.enqueued += 1;
        let new = job(&format!("{}-{}", self.queue, self.enqueued)).queue(&self.queue).priority(priority);
        self.store.enqueue(&[new.into()]).expect("stored");
    }

    fn apply(&mut self, event: &Event) {
        let ids = present(self.store.as_ref(), &self.queue);
        match event {
            Event::Enqueue { priority } => self.enqueue(*priority),
            Event::Remove { place } | Event::Cancel { place } if !ids.is_empty() => {
                let id = &ids[place % ids.len()];
                self.touched.insert(id.clone());
                let path = format!("/api/v1/jobs/{id}");
                // A job that was cancelled before cannot be cancelled again.
                match event {
                    Event::Remove { .. } => self.server.call("DELETE", &path).send().status,
                    Event::Enqueue { .. } | Event::Cancel { .. } => {
                        self.server.call("POST", &format!("{path}/cancel")).send().status
                    }
                };
            }
            Event::Remove { .. } | Event::Cancel { .. } => {}
        }
    }

    /// The ids of all pages, in their order.
    fn pages(&mut self, order: &str, limit: usize, events: &[Vec<Event>]) -> Vec<String> {
        let mut path = format!("/api/v1/jobs?queue={}&order={order}&limit={limit}", self.queue);
        let (mut found, mut events) = (Vec::new(), events.iter());
        loop {
            let page = self.server.call("GET", &path).send().expects(200);
            let jobs = page.json();
            found.extend(
                jobs.as_array()
                    .expect("a list")
                    .iter()
                    .map(|job| job["id"].as_str().expect("an id").to_owned()),
            );
            let next = page.header("Link").and_then(|link| link.strip_prefix('<')?.split_once('>'));
            let Some((next, _)) = next else { return found };
            next.clone_into(&mut path);
            for event in events.next().into_iter().flatten() {
                self.apply(event);
            }
        }
    }
}

#[test]
fn no_job_is_listed_twice_and_none_is_lost() {
    let server = Server::new();
    let mut runner = TestRunner::new(Config { cases: 16, failure_persistence: None, ..Config::default() });
    let case = std::cell::Cell::new(0);
    let input =
        (1..25_usize, 1..6_usize, prop_oneof![Just("newest"), Just("oldest"), Just("claim")], events());
    let walk = |(jobs, limit, order, events): (usize, usize, &str, Vec<Vec<Event>>)| {
        case.set(case.get() + 1);
        let queue = format!("q{}", case.get());
        let store = server.home.store();
        let mut walk = Walk { server: &server, store, queue, enqueued: 0, touched: BTreeSet::new() };
        (0..jobs).for_each(|at| walk.enqueue(i32::try_from(at % 3).expect("a small number")));
        let before: BTreeSet<String> = present(walk.store.as_ref(), &walk.queue).into_iter().collect();
        let found = walk.pages(order, limit, &events);
        let distinct: BTreeSet<String> = found.iter().cloned().collect();
        prop_assert_eq!(distinct.len(), found.len(), "{:?}", found);
        let lost: Vec<&String> =
            before.iter().filter(|id| !distinct.contains(*id) && !walk.touched.contains(*id)).collect();
        prop_assert!(lost.is_empty(), "{:?} of {:?}", lost, found);
        Ok(())
    };
    runner.run(&input, walk).expect("every walk finds every job once");
}
