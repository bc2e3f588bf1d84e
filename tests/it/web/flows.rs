//! The pages in a real browser, used as a person uses them. One file per page.

mod batches;
mod dead;
mod enqueue;
mod events;
mod frame;
mod hooks;
mod job;
mod jobs;
mod keyboard;
mod log;
mod overview;
mod queues;
mod schedules;
mod settings;
mod workers;

use super::browser::{Site, Tab};
use super::client::Server;

/// A failed job runs again at once.
const QUICK_RETRY: [&str; 4] = ["--max-retries", "1", "--backoff", r#"{"strategy":"fixed","delay":"1ms"}"#];

/// Runs all jobs that are due.
fn work(server: &Server) {
    server.home.run(["worker", "run", "-q", "--until-empty", "--concurrency", "1"]).ok();
}

/// The ids of the rows of a list.
fn rows(tab: &Tab<'_>) -> Vec<String> {
    let ids = tab.eval("[...document.querySelectorAll('#jobs tbody a.id')].map((link) => link.innerText)");
    let ids = ids.as_array().expect("a list").clone();
    ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

/// Enqueues jobs that differ in their ids.
fn enqueue(site: &Site, ids: &[&str], flags: &[&str], command: &str) {
    for id in ids {
        let words = ["enqueue", "-q", "--id", id].into_iter().chain(flags.iter().copied());
        site.server.home.run(words.chain(["--", "sh", "-c", command])).ok();
    }
}
