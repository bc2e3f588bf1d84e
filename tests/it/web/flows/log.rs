//! The output of an attempt.

use std::time::Instant;

use super::{QUICK_RETRY, enqueue, work};
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;
use crate::web::browser::Site;

/// A line is on the screen after this, on a machine that does nothing else.
const BAR_MS: u128 = 300;
/// Tests share the machine.
const MAX_MS: u128 = 5 * BAR_MS;
/// In a debug build on a machine that does much else; a window for which all lines are read takes ten times as long.
const MAX_WINDOW_MS: f64 = 1_000.0;

#[test]
fn a_log_is_followed_while_it_grows_and_the_next_attempt_after_it() {
    let site = Site::new(Home::with_queue());
    let home = &site.server.home;
    let command = "echo ready; n=0; while [ ! -e stop ]; do [ -e line ] && { rm line; n=$((n+1)); echo \"line $n\"; }; sleep 0.01; done; printf 'no newline'; exit 3";
    enqueue(&site, &["tail"], &QUICK_RETRY, command);
    let worker = Background::start(home.call(["worker", "start"]));
    let tab = site.open("/jobs/tail");
    tab.wait_for_text("ready").wait_for("[data-log=follow][aria-pressed=true]");
    let mut slowest = 0;
    for number in 1..=10 {
        home.file("line", "");
        let began = Instant::now();
        tab.wait_for_text(&format!("line {number}"));
        slowest = slowest.max(began.elapsed().as_millis());
    }
    assert!(slowest <= MAX_MS, "a line was on the screen after {slowest} ms");
    tab.press("f").wait_for("[data-log=follow][aria-pressed=false]");
    tab.press("f").wait_for("[data-log=follow][aria-pressed=true]");
    home.file("stop", "");
    tab.wait_for_text("no newline").wait_for_text("dead");
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(tab.text_of(".attempts [aria-current]"), "2", "the page went to the next attempt by itself");
}

#[test]
fn a_million_lines_are_never_more_than_200_rows() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["long"], &[], "seq 1000000; echo the end");
    work(&site.server);
    let tab = site.open("/jobs/long");
    let rows = || tab.count("#log li");
    tab.wait_for_text("the end");
    assert_eq!(rows(), 200);
    assert!(tab.text_of("#log-place").ends_with("of 1,000,001"), "{}", tab.text_of("#log-place"));
    // Scrolling up loads what is before, and keeps what is seen.
    let first = "Number(document.querySelector('#log li').id.slice(1))";
    let before = tab.eval(first).as_u64().expect("a number");
    tab.eval("document.querySelector('#log .log').scrollTop -= 3200");
    tab.wait("earlier lines are loaded", &format!("{first} < {before}"));
    assert_eq!(rows(), 200);
    tab.eval("document.querySelector('#log .log').scrollTop = 1e9");
    tab.wait("later lines are loaded", &format!("{first} === {before}"));
    // The scroll bar is that of the whole output.
    for (place, seen) in [("0", 1), ("list.scrollHeight / 2", 500_000), ("list.scrollHeight / 4", 250_000)] {
        tab.eval(&format!("(list => {{ list.scrollTop = {place} }})(document.querySelector('#log .log'))"));
        let is_seen = format!(
            "(list => [...list.children].some((row) => Math.abs(row.id.slice(1) - {seen}) < 40 && \
             row.offsetTop >= list.scrollTop && row.offsetTop < list.scrollTop + list.clientHeight))(document.querySelector('#log .log'))"
        );
        tab.wait(&format!("line {seen} is in view"), &is_seen);
        assert_eq!(rows(), 200);
    }
    // Any window is read at once: nothing before it is read again.
    let slowest = "(async () => { let slowest = 0; for (const row of [1, 999802, 500000, 3, 750000]) { \
                   const began = performance.now(); await (await fetch(`/live/rows?job=long&attempt=1&row=${row}`)).text(); \
                   slowest = Math.max(slowest, performance.now() - began); } return slowest; })()";
    let slowest = tab.eval(slowest).as_f64().expect("a number");
    assert!(slowest < MAX_WINDOW_MS, "a window was read in {slowest} ms");
    tab.open("/jobs/long/log#L500000").wait_for("#L500000.current");
    assert_eq!(rows(), 200);
}

#[test]
fn the_rows_of_one_stream_have_a_scroll_bar_of_their_own() {
    let site = Site::new(Home::with_queue());
    let command = "for n in $(seq 1000); do echo out $n; echo err $n >&2; done";
    enqueue(&site, &["both"], &[], command);
    work(&site.server);
    let tab = site.open("/jobs/both?stream=stderr");
    tab.wait_for_text("err 1000");
    tab.eval("document.querySelector('#log .log').scrollTop = 0");
    tab.wait_for_text("err 1\n")
        .wait("no line is of the other", "!document.getElementById('log').innerText.includes('out ')");
    tab.eval("(list => { list.scrollTop = list.scrollHeight / 2 })(document.querySelector('#log .log'))");
    tab.wait_for_text("err 500\n");
    assert_eq!(tab.count("#log li"), 200);
}

#[test]
fn the_server_searches_all_lines_and_each_line_has_a_link() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["long"], &[], "seq 1000000; echo the end");
    work(&site.server);
    let tab = site.open("/jobs/long");
    tab.wait_for_text("the end");
    tab.press("/").type_text("99999").press("Enter").wait_for_text("10 of 19").wait_for("#L999990.current");
    tab.press("n").wait_for_text("11 of 19").press("N").press("N");
    tab.wait_for_text("9 of 19").wait_for("#L899999.current");
    assert!(tab.count("#log li") <= 200 && tab.path().contains("q=99999"), "{}", tab.path());
    tab.press("t").wait_for("#L899999 .t").press("w").wait_for("#log.nowrap");
    tab.click("link", "Line 899999")
        .wait_for_path("/jobs/long/log?attempt=1&line=899999")
        .wait_for("#L899999.current");
}

#[test]
fn a_followed_log_of_a_million_lines_stays_small() {
    let site = Site::new(Home::with_queue());
    enqueue(&site, &["flood"], &[], "until [ -e go ]; do sleep 0.02; done; seq 1000000; echo finis");
    let worker = Background::start(site.server.home.call(["worker", "start"]));
    let tab = site.open("/jobs/flood");
    tab.wait_for("[data-log=follow][aria-pressed=true]");
    tab.eval("(window.most = 0, new MutationObserver(() => { window.most = Math.max(window.most, document.querySelectorAll('#log li').length) }).observe(document.getElementById('log'), { childList: true, subtree: true }))");
    site.server.home.file("go", "");
    tab.wait_for_text("finis").wait_for_text("completed");
    worker.signal(rustix::process::Signal::TERM);
    assert!(tab.count("#log li") <= 200);
    let most = tab.eval("window.most").as_u64().expect("a number");
    assert!(most <= 402, "never more than the rows of two messages: {most}");
}

#[test]
fn streams_colours_and_hostile_output_are_shown_as_they_should() {
    let site = Site::new(Home::with_queue());
    let command = "printf '\\033[31mred\\033[0m <b>&\\n10%%\\r100%%\\n'; echo '<script>alert(1)</script>' >&2; printf '\\033]8;;https://evil.example\\007x\\n'";
    enqueue(&site, &["c"], &[], command);
    work(&site.server);
    let tab = site.open("/jobs/c");
    tab.wait_for_text("<script>alert(1)</script>").wait_for_text("100%");
    assert!(!tab.text_of("#log").contains("10%"), "{}", tab.text_of("#log"));
    let colour = "getComputedStyle(document.querySelector('#log .f1')).color";
    assert_ne!(tab.eval(colour), tab.eval("getComputedStyle(document.body).color"));
    assert_eq!(tab.count("#log a[href^='https:'], #log script, #log b"), 0);
    tab.click("link", "stderr")
        .wait_for_path("/jobs/c?stream=stderr")
        .wait("only that stream is shown", "!document.querySelector('#log').innerText.includes('100%')");
    assert_eq!(tab.count("#log li"), 1);
    let download = tab.attribute("a[download]", "href").expect("a link");
    let text = site.server.call("GET", &download).send().expects(200);
    assert!(text.header("content-disposition").is_some_and(|value| value.starts_with("attachment")));
}
