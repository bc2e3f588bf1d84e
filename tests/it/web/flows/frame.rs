//! What surrounds every page: the stream, the age of the numbers, the zone, the palette, keys and small windows.

use serde_json::json;

use super::{enqueue, work};
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;
use crate::web::browser::Site;

/// A first visit loads no more than this.
const MAX_BYTES: u64 = 120 << 10;
const MAX_REQUESTS: usize = 6;

#[test]
fn eight_tabs_share_one_stream_and_another_takes_over() {
    let site = Site::new(Home::with_jobs(&["a"]));
    let paths = ["/", "/jobs", "/jobs/a", "/dead", "/queues", "/workers", "/events", "/jobs?state=pending"];
    let mut tabs: Vec<_> = paths.iter().map(|path| site.open(path)).collect();
    for tab in &tabs {
        tab.wait_for("#age.live");
    }
    let connections = || {
        let metrics = site.server.call("GET", "/metrics").send().expects(200).body;
        let line = metrics.lines().find(|line| line.starts_with("queuectl_http_streams ")).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).expect("a number")
    };
    tabs[0].until("one stream is open", || connections() < 1.5);
    enqueue(&site, &["b"], &[], "true");
    for at in [0, 1, 7] {
        tabs[at].wait("the tab has the new job", "document.body.innerText.includes('2')");
    }
    tabs[1].wait_for_role("link", "b");
    tabs[7].wait_for_role("link", "b");
    // The tab that leads is closed; another tab continues.
    drop(tabs.remove(0));
    enqueue(&site, &["c"], &[], "true");
    tabs[0].wait_for_role("link", "c");
    tabs[6].wait_for_role("link", "c");
    assert!(connections() < 1.5);
}

#[test]
fn a_killed_server_is_stale_at_once_and_live_again_by_itself() {
    let mut site = Site::new(Home::with_jobs(&["a"]));
    site.expect_fault("ERR_CONNECTION_REFUSED");
    // The kernel ends a connection in either way, depending on what the killed process had not read.
    site.expect_fault("ERR_INCOMPLETE_CHUNKED_ENCODING");
    site.expect_fault("ERR_CONNECTION_RESET");
    site.expect_fault("401");
    let process = site.server.process.take().expect("a process");
    let tab = site.open("/jobs");
    tab.wait_for("#age.live");
    process.signal(rustix::process::Signal::KILL);
    tab.wait_for("#age.stale").wait_for_text("the server cannot be reached");
    assert!(tab.has("link", "a"), "the last numbers stay");
    let address = site.server.address.to_string();
    let again = Background::start(site.server.home.call(["dashboard", "--listen", &address, "--json"]));
    let ready: serde_json::Value = serde_json::from_str(&again.prints()).expect("JSON");
    // Sessions live in the process: the page says how to log in again, and a login in any tab is enough.
    tab.wait_for_text("queuectl dashboard link");
    let other = site.tab();
    other.navigate(ready["link"].as_str().expect("a link"));
    other.wait_for("#age.live");
    tab.wait_for("#age.live");
    again.signal(rustix::process::Signal::TERM);
}

#[test]
fn a_first_visit_is_small() {
    let site = Site::new(Home::with_jobs(&["a"]));
    let before = site.requests().len();
    let tab = site.open("/");
    tab.wait_for("#age.live");
    let requests = site.requests()[before..].to_vec();
    let first: Vec<&String> = requests.iter().filter(|url| !url.contains("/live")).collect();
    assert!(first.len() <= MAX_REQUESTS, "{requests:#?}");
    let bytes_of = |url: &&String| {
        let path = url.strip_prefix(&site.origin()).expect("ours").to_owned();
        site.server.call("GET", &path).with("Accept", "*/*").send().expects(200).body.len() as u64
    };
    let bytes: u64 = first.iter().map(bytes_of).sum();
    assert!(bytes <= MAX_BYTES, "{bytes}");
}

#[test]
fn times_are_in_the_zone_that_the_reader_chooses() {
    let site = Site::new(Home::with_jobs(&["a"]));
    let tab = site.open("/jobs/a");
    tab.wait_for("#age.live");
    let choose = |zone: &str| {
        tab.eval(&format!("(document.getElementById('zone').value = {}, document.getElementById('zone').dispatchEvent(new Event('change')))", json!(zone)));
    };
    let title = || tab.attribute("#job time", "title").expect("a title");
    choose("UTC");
    tab.wait("times are in UTC", "document.querySelector('#job time').title.endsWith('UTC')");
    choose("Asia/Kathmandu");
    tab.wait("times are in Nepal", "document.querySelector('#job time').title.includes('5:45')");
    tab.reload().wait("the choice stays", "document.querySelector('#job time').title.includes('5:45')");
    assert!(title().contains("GMT+5:45"), "{}", title());
    tab.open("/jobs?tz=America%2FNew_York")
        .wait("a link has its zone", "document.querySelector('#jobs time').title.match(/GMT-[45]|E[SD]T/)");
}

#[test]
fn times_in_sentences_are_in_the_zone_of_the_reader_too() {
    let site = Site::new(Home::with_queue());
    let flags = ["--run-at", "2035-01-01T12:00:00Z"];
    enqueue(&site, &["later"], &flags, "true");
    let tab = site.open("/jobs/later");
    tab.eval("localStorage.setItem('queuectl-zone', 'Asia/Kathmandu')");
    tab.reload().wait_for("#why time").wait_for_text("17:45");
    assert!(!tab.text_of("#why").contains("12:00:00"), "{}", tab.text_of("#why"));
    // The week is that of the reader.
    site.server.home.run(["schedule", "add", "s", "--every", "15m", "--", "true"]).ok();
    tab.open("/schedules").wait_for("#age.live").click("link", "week");
    tab.wait("the week has the zone", "location.search.includes('tz=Asia%2FKathmandu')");
}

#[test]
fn everything_is_reached_by_keys() {
    let site = Site::new(Home::with_jobs(&["alpha", "beta"]));
    let tab = site.open("/");
    tab.wait_for("#age.live").press("Tab");
    assert_eq!(tab.focus(), "link \"Skip to the content\"");
    tab.press("?").wait_for("dialog[open]").wait_for_text("follow the output").press("Escape");
    tab.press("g").press("j").wait_for_path("/jobs");
    tab.wait_for("#age.live").press("j").press("j").press("Enter").wait_for_path("/jobs/alpha");
    tab.press("Ctrl+k").wait_for("dialog[open] input").type_text("bet").wait_for_role("option", "Job beta");
    tab.press("Enter").wait_for_path("/jobs/beta");
    tab.open("/jobs")
        .press("Ctrl+k")
        .wait_for("dialog[open] input")
        .type_text("light or dark")
        .press("Enter");
    tab.wait("the theme is another", "document.documentElement.dataset.theme === 'dark'");
    let page = site.server.request("GET", "/login").with("Cookie", "queuectl-theme=dark").send().expects(200);
    assert!(!page.body.contains("data-theme"), "only pages with data remember it");
    tab.reload();
    assert_eq!(tab.attribute("html", "data-theme").as_deref(), Some("dark"), "nothing flashes");
}

#[test]
fn no_page_is_wider_than_a_small_window_or_a_large_zoom() {
    let site = Site::new(Home::with_queue());
    let long = "x".repeat(300);
    enqueue(
        &site,
        &["bad"],
        &["--max-retries", "0", "--queue", "a-queue-with-a-rather-long-name", "--tag", "tag"],
        &format!("echo {long}; echo {long} >&2; exit 1"),
    );
    work(&site.server);
    site.server.home.run(["queue", "pause", "a-queue-with-a-rather-long-name", "--reason", &long]).ok();
    enqueue(&site, &["next"], &["--depends-on", "bad", "--on-dependency-failure", "run"], "true");
    let tab = site.tab();
    for path in [
        "/",
        "/jobs",
        "/jobs?state=dead&like=*x*",
        "/jobs/bad",
        "/jobs/bad/log",
        "/jobs/next/graph",
        "/jobs/bad/diff",
    ] {
        for (width, factor) in [(320, 1), (640, 2), (1280, 2), (3840, 1)] {
            tab.zoomed_viewport(width, 800, factor).open(path);
            assert_eq!(tab.sideways_overflow(), 0, "{path} at {width} px, zoomed {factor} times");
        }
    }
    tab.viewport(390, 800).open("/jobs");
    let heights = "Math.min(...[...document.querySelectorAll('#rail a, #more')]
        .filter((one) => one.checkVisibility()).map((one) => one.offsetHeight))";
    assert!(tab.eval(heights).as_u64().is_some_and(|height| height >= 44), "fingers need room");
    tab.click("button", "more").wait_for_role("option", "Settings").press("Escape");
    tab.reduced_motion();
    let motion = tab.eval("getComputedStyle(document.querySelector('#rail a')).transitionDuration");
    assert_eq!(motion, "0s");
    tab.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    assert_eq!(tab.eval("getComputedStyle(document.getElementById('rail')).display"), "none");
}
