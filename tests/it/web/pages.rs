//! The pages: what they say, to whom, and that nothing in them is markup but ours.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::{Response, Server};
use crate::cli::harness::Home;

const PAGES: [&str; 11] = [
    "/",
    "/jobs",
    "/dead",
    "/queues",
    "/workers",
    "/schedules",
    "/batches",
    "/hooks",
    "/events",
    "/settings",
    "/enqueue",
];

/// Text that would be a script, or deceive a reader, if a page did not escape it.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}\u{2028}";

/// The page; its command lines are without the home that the test has named.
#[track_caller]
fn page(server: &Server, path: &str) -> Response {
    let mut page = server.call("GET", path).with("Accept", "text/html").send().expects(200);
    page.body = page.body.replace(&format!("queuectl --home {}", server.home.path().display()), "queuectl");
    page
}

/// Runs all jobs that are due.
fn work(server: &Server) {
    server.home.run(["worker", "run", "-q", "--until-empty", "--concurrency", "1"]).ok();
}

#[test]
fn every_page_is_there_says_its_name_and_loads_only_our_own_files() {
    let server = Server::new();
    for path in PAGES {
        let answer = page(&server, path);
        assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.contains("script-src 'self'") && policy.contains("trusted-types fragments"),
            "{policy}"
        );
        assert!(
            answer.body.contains("<main id=\"main\"") && answer.body.contains("aria-current=\"page\""),
            "{path}"
        );
        assert!(!answer.body.contains(" style=") && !answer.body.contains(" onclick="), "{path}");
        for part in answer.body.split(" src=\"").skip(1).chain(answer.body.split(" href=\"").skip(1)) {
            assert!(
                part.starts_with('/') || part.starts_with('#'),
                "{path}: {}",
                &part[..part.len().min(60)]
            );
        }
        for part in answer.body.split("=\"/a/").skip(1) {
            let file = format!("/a/{}", part.split('"').next().expect("a path"));
            let asset = server.request("GET", &file).send().expects(200);
            assert!(asset.header("cache-control").is_some_and(|value| value.contains("immutable")), "{file}");
        }
    }
}

#[test]
fn a_browser_without_a_session_learns_how_to_log_in() {
    let server = Server::new();
    for path in PAGES {
        let answer = server.request("GET", path).with("Accept", "text/html").send().expects(401);
        assert!(answer.body.contains("queuectl dashboard link"), "{path}: {}", answer.body);
    }
    let lost = server.request("GET", "/nowhere").with("Accept", "text/html").send().expects(404);
    assert!(lost.body.contains("<a href=\"/jobs\">"), "{}", lost.body);
    server.request("GET", "/a/0000/page.js").send().expects(404);
}

#[test]
fn an_empty_queue_teaches_its_first_commands() {
    let server = Server::new();
    let overview = page(&server, "/").body;
    assert!(
        overview.contains("queuectl enqueue -- echo hello") && overview.contains("queuectl worker start")
    );
    assert!(page(&server, "/jobs").body.contains("No jobs yet"));
    assert!(page(&server, "/dead").body.contains("No job is dead"));
    assert!(page(&server, "/workers").body.contains("queuectl worker start"));
}

#[test]
fn a_failed_job_is_found_on_the_overview_the_list_its_own_page_and_among_the_dead() {
    let server = Server::new();
    server
        .home
        .run([
            "enqueue",
            "--id",
            "bad",
            "--queue",
            "mail",
            "--max-retries",
            "0",
            "--",
            "sh",
            "-c",
            "echo smtp refused >&2; exit 75",
        ])
        .ok();
    work(&server);
    let overview = page(&server, "/").body;
    assert!(overview.contains("href=\"/jobs?state=dead\"><span class=\"value\">1</span>"), "{overview}");
    assert!(overview.contains("exit code 75: smtp refused"), "{overview}");
    let list = page(&server, "/jobs?state=dead&queue=mail").body;
    assert!(list.contains("<code>queuectl list --state dead --queue mail</code>"), "{list}");
    assert!(
        list.contains("href=\"/jobs?queue=mail\" title=\"Remove this filter\"") && list.contains("1 job<"),
        "{list}"
    );
    let job = page(&server, "/jobs/bad").body;
    assert!(job.contains("retries exhausted") && job.contains("<code>smtp refused</code>"), "{job}");
    assert!(job.contains("data-path=\"/api/v1/jobs/bad/retry\""), "{job}");
    let dead = page(&server, "/dead").body;
    assert!(!dead.contains("retry one first") && dead.contains("1 job of 1 cause"), "{dead}");
}

#[test]
fn a_list_has_pages_and_every_filter_is_in_the_url() {
    let server = Server::start(Home::with_jobs(&["a", "b", "c"]), &[]);
    let first = page(&server, "/jobs?limit=2").body;
    assert!(first.contains("href=\"/jobs/c\"") && !first.contains("href=\"/jobs/a\""), "{first}");
    let (_, next) = first.split_once("rel=\"next\" href=\"").expect("a next page");
    let next = next.split('"').next().expect("a URL").replace("&amp;", "&");
    let second = page(&server, &next).body;
    assert!(second.contains("href=\"/jobs/a\"") && second.contains("first page"), "{second}");
    assert!(page(&server, "/jobs?queue=nowhere").body.contains("No job matches"));
    let wrong = server.call("GET", "/jobs?state=deaf").with("Accept", "text/html").send().expects(422);
    assert!(wrong.body.contains("dead"), "{}", wrong.body);
}

#[test]
fn hostile_text_is_text_on_every_page() {
    let server = Server::new();
    let job = json!({ "id": "h", "command": format!("printf '%s\\n' '{}' >&2; exit 3", HOSTILE.replace('\'', "")), "name": HOSTILE.replace('\u{2028}', ""), "tags": [HOSTILE], "max_retries": 0 });
    server.post("/api/v1/jobs", &job).expects(201);
    server.post("/api/v1/queues/mail/pause", &json!({ "reason": HOSTILE })).expects(200);
    work(&server);
    let query = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let more = [
        "/jobs/h".to_owned(),
        format!("/jobs/h?q={query}"),
        format!("/jobs?like={query}"),
        format!("/jobs?tag={query}"),
    ];
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain(more) {
        let body = page(&server, &path).body;
        assert!(!body.contains("<script>") && !body.contains("<img"), "{path}: {body}");
        assert!(!body.contains('\u{202e}') && !body.contains('\u{2028}'), "{path}");
    }
    let shown = page(&server, "/jobs/h").body;
    assert!(
        shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && shown.contains("\\u{202e}"),
        "{shown}"
    );
}

#[test]
fn output_keeps_its_colours_as_classes_and_every_other_escape_visible() {
    let server = Server::new();
    let command = r"printf '\033[31mred\033[0m\n\033]8;;https://evil.example\007link\033]8;;\007\n\377\n'";
    server.home.run(["enqueue", "--id", "c", "--", "sh", "-c", command]).ok();
    work(&server);
    let body = page(&server, "/jobs/c").body;
    assert!(body.contains("<span class=\"f1\">red</span>"), "{body}");
    assert!(body.contains("␛]8;;https://evil.example") && !body.contains("<a href=\"https:"), "{body}");
    assert!(body.contains('\u{fffd}'), "{body}");
}

#[test]
fn what_is_gone_says_so_and_leads_on() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    let ask = |path: &str| server.call("GET", path).with("Accept", "text/html").send();
    let job = ask("/jobs/gone").expects(404);
    assert!(
        job.body.contains("there is no job `gone`") && job.body.contains("href=\"/jobs\""),
        "{}",
        job.body
    );
    assert!(job.body.contains("id=\"rail\"") && job.body.contains(" list</code>"), "{}", job.body);
    let queue = ask("/?queue=gone").expects(404);
    assert!(queue.body.contains("gone") && queue.body.contains("href=\"/\""), "{}", queue.body);
    ask("/jobs/a?attempt=7").expects(404);
    assert!(page(&server, "/jobs/a").body.contains("has not run yet"));
}

#[test]
fn a_command_names_the_home_that_the_server_was_started_with() {
    let server = Server::new();
    let body = server.call("GET", "/queues").with("Accept", "text/html").send().expects(200).body;
    let home = server.home.path();
    assert!(body.contains(&format!("<code>queuectl --home {} queue list</code>", home.display())), "{body}");
    assert!(body.contains(&format!("data-program=\"queuectl --home {}\"", home.display())), "{body}");
    assert!(body.contains(" · SQLite</span>"), "{body}");
    let login = server.request("GET", "/").with("Accept", "text/html").send().expects(401).body;
    assert!(!login.contains("--home"), "a stranger does not learn where it is: {login}");
}

#[test]
fn the_tabs_of_the_list_count_what_the_other_filters_leave() {
    let server = Server::new();
    for (id, queue, tag) in [("a", "mail", "x"), ("b", "mail", "y"), ("c", "web", "x")] {
        server.home.run(["enqueue", "-q", "--id", id, "--queue", queue, "--tag", tag, "--", "true"]).ok();
    }
    let number = |query: &str| {
        let body = page(&server, &format!("/jobs{query}")).body;
        let tab = body.split("<nav class=\"states\"").nth(1).expect("the tabs").to_owned();
        let count = tab.split("<span class=\"count\">").nth(1).expect("pending comes first").to_owned();
        count.split('<').next().expect("a number").to_owned()
    };
    let queries =
        [("", "3"), ("?queue=mail", "2"), ("?queue=mail&state=dead", "2"), ("?tag=x&state=dead", "2")];
    for (query, pending) in queries {
        assert_eq!(number(query), pending, "{query}");
    }
    server.home.run(["enqueue", "-q", "--id", "later", "--delay", "1h", "--", "true"]).ok();
    let list = page(&server, "/jobs").body;
    assert!(list.contains("href=\"/jobs?state=scheduled\"") && list.contains("href=\"/jobs?state=blocked\""));
    let scheduled = page(&server, "/jobs?state=scheduled").body;
    assert!(scheduled.contains("href=\"/jobs/later\"") && !scheduled.contains("href=\"/jobs/a\""));
}

#[test]
fn a_reader_sees_everything_and_no_button() {
    let server = Server::start(Home::with_jobs(&["a"]), &["--read-only"]);
    for path in ["/jobs/a", "/jobs", "/queues", "/settings", "/enqueue", "/dead"] {
        let body = page(&server, path).body;
        assert!(!body.contains("data-act=") && !body.contains("data-choose="), "{path}");
    }
}

/// The sections that the stream of a page sends.
struct Sections(BufReader<TcpStream>);

impl Sections {
    fn of(server: &Server, page: &str) -> Self {
        Self(BufReader::new(server.call("GET", &format!("/live?page={page}")).open()))
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("a line") > 0, "the stream ended");
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                let message: Value = serde_json::from_str(data).expect("JSON");
                // Others only say that nothing has changed.
                if message["sections"].is_object() {
                    return message["sections"].clone();
                }
            }
        }
    }

    /// The next message in which a section has this text.
    fn until(&mut self, section: &str, text: &str) -> Value {
        loop {
            let sections = self.next();
            if sections[section].as_str().is_some_and(|html| html.contains(text)) {
                return sections;
            }
        }
    }
}

#[test]
fn the_stream_of_a_page_sends_the_sections_that_differ() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    let mut sections = Sections::of(&server, "%2Fjobs");
    let first = sections.next();
    let html = first["jobs"].as_str().expect("the list");
    assert!(page(&server, "/jobs").body.contains(html), "the page has the same fragment: {html}");
    assert!(first["rail"].is_string() && first["problems"].is_string());
    server.home.run(["enqueue", "--id", "b", "--", "true"]).ok();
    sections.until("jobs", "href=\"/jobs/b\"");
    let mut job = Sections::of(&server, "%2Fjobs%2Fa");
    job.next();
    server.home.run(["remove", "a"]).ok();
    job.until("notice", "there is no job");
}

#[test]
fn the_stream_of_a_page_that_is_not_there_is_refused() {
    let server = Server::new();
    for (page, status) in [("%2Fnowhere", 404), ("%2Fjobs%3Fcolour%3Dred", 422)] {
        server.call("GET", &format!("/live?page={page}")).send().expects(status);
    }
}
