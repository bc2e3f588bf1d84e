//! A server with a queue in which everything occurs once, and the paths of everything in it.

use serde_json::{Value, json};

use super::client::Server;
use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

/// Jobs in every state, a batch, a graph, a limited queue, a schedule with a run, a hook with a delivery.
pub(super) fn home() -> Home {
    let home = Home::new();
    for words in [
        &["enqueue", "-q", "--id", "ok", "--tag", "x", "--batch", "b", "-c", "echo hi"][..],
        &["hook", "add", "notify", "--on", "dead", "--", "true"],
        &["enqueue", "-q", "--id", "bad", "--max-retries", "0", "-c", "echo oops >&2; exit 3"],
        &["enqueue", "-q", "--id", "again", "--max-retries", "1", "--command", "exit 4"],
        &["worker", "run", "-q", "--until-empty"],
        &["enqueue", "-q", "--id", "later", "--delay", "1h", "--depends-on", "ok", "--", "true"],
        &["queue", "set", "mail", "--concurrency", "2", "--rate", "10/m"],
        &["queue", "pause", "mail", "--reason", "down"],
        &["schedule", "add", "nightly", "--cron", "0 3 * * *", "--tz", "UTC", "--", "true"],
        &["schedule", "run", "nightly"],
    ] {
        home.run(words).ok();
    }
    home
}

/// What is in the queue of a server.
pub(super) struct Rich {
    cause: String,
    action: String,
    /// It lives, and runs nothing.
    _worker: TestWorker,
}

impl Rich {
    /// A server on a [`home`], and what is in it.
    pub(super) fn start() -> (Server, Self) {
        let server = Server::start(home(), &[]);
        let rich = Self::of_running(&server);
        (server, rich)
    }

    pub(super) fn of_running(server: &Server) -> Self {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let cause = text(&server.get("/api/v1/causes")[0]["cause"]);
        let cancel = json!({ "verb": "cancel", "ids": ["later"] });
        let action = text(&server.post("/api/v1/actions", &cancel).expects(202).json()["id"]);
        server.until(&format!("/api/v1/actions/{action}"), |action| action["state"] == "finished");
        let worker = TestWorker::new(&server.home, "w1");
        Self { cause, action, _worker: worker }
    }

    /// A path of the table of routes with the name of something that exists in place of each parameter.
    pub(super) fn filled(&self, path: &str) -> String {
        let name = |part: &str| match part {
            "{id}" => "bad".to_owned(),
            "{attempt}" | "{a}" => "1".to_owned(),
            "{queue}" => "mail".to_owned(),
            "{worker}" => "w1".to_owned(),
            "{schedule}" => "nightly".to_owned(),
            "{batch}" => "b".to_owned(),
            "{hook}" => "notify".to_owned(),
            "{key}" => "lease".to_owned(),
            "{cause}" => self.cause.clone(),
            "{action}" => self.action.clone(),
            "{hash}" | "{file}" => "nope".to_owned(),
            part if part.starts_with('{') => panic!("{path}: name something for {part} here"),
            part => part.to_owned(),
        };
        let path = path.split('/').map(name).collect::<Vec<_>>().join("/");
        if path.ends_with("/find") {
            return path + "?text=oops";
        }
        if path.ends_with("/suggest") { path + "?field=queue" } else { path }
    }

    /// The pages, each with something to show.
    pub(super) fn pages(&self) -> Vec<String> {
        let pages = web::listed_routes().filter(|route| route.is_page && route.scope.is_some());
        pages.map(|page| self.filled(page.path)).collect()
    }
}

/// A path with a name that nothing has in place of each parameter.
pub(super) fn unknown(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "nope" } else { part });
    parts.collect::<Vec<_>>().join("/")
}
