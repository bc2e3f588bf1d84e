//! The harness itself: it sees each kind of fault, it reads and acts as a person does, and a browser ends with its test.

use std::fs;

use serde_json::json;

use super::Site;
use crate::cli::harness::Home;

#[test]
fn every_kind_of_fault_is_seen() {
    let site = Site::new(Home::with_jobs(&["a"]));
    let tab = site.open("/jobs");
    assert_eq!(site.faults(), Vec::<String>::new(), "the page itself has none");
    let provoke = |script: &str, fault: &str| {
        let _ = tab.try_eval(script);
        tab.until(fault, || site.faults().iter().any(|known| known.contains(fault)));
    };
    provoke("console.error('broken')", "console error");
    provoke("setTimeout(() => { throw new Error('thrown') }), 0", "Error: thrown");
    provoke("void Promise.reject(new Error('refused'))", "Error: refused");
    provoke("setTimeout(() => alert('stop')), 0", "a script opened a dialog: stop");
    provoke("setTimeout(() => { document.body.innerHTML = '<b>' }), 0", "TrustedHTML");
    provoke("void fetch('/api/v1/nowhere')", "404");
    provoke(
        "document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:1/x' }))",
        "ContentSecurityPolicyIssue",
    );
    provoke("location.assign('http://127.0.0.1:1/')", "request to another origin: http://127.0.0.1:1/");
    assert!(site.faults().len() >= 8, "{:#?}", site.faults());
    site.expect_fault("");
    assert_eq!(site.faults(), Vec::<String>::new(), "each was expected");
}

#[test]
fn a_tab_is_read_and_used_as_by_a_person() {
    let site = Site::new(Home::with_jobs(&["a", "b"]));
    let tab = site.open("/jobs");
    tab.wait_for("#age.live").wait_for_role("link", "a");
    assert!(tab.has("link", "b") && !tab.has("button", "b"));
    tab.click("link", "a").wait_for_path("/jobs/a").wait_for_text("has not run yet");
    tab.back().wait_for_path("/jobs").click_on("#rail a[href='/dead']").wait_for_path("/dead");
    tab.back().wait_for_path("/jobs");
    assert_eq!(
        (tab.count("main h1"), tab.text_of("main h1"), tab.path()),
        (1, "Jobs".into(), "/jobs".into())
    );
    tab.press("Ctrl+k").wait_for("dialog[open]");
    assert_eq!(tab.focus(), "combobox \"Go to\"");
    tab.type_text("Events").press("Enter").wait_for_path("/events");
    tab.open("/enqueue").fill("textbox", "command", "echo 1").fill("textbox", "command", "echo 2");
    tab.wait_for_text("queuectl enqueue --command 'echo 2'");
    tab.reload().wait_for_no_text("echo 2");

    tab.viewport(640, 480).theme("dark").reduced_motion().slow_processor(2);
    let media = "[innerWidth, devicePixelRatio, matchMedia('(prefers-color-scheme: dark)').matches, \
                 matchMedia('(prefers-reduced-motion)').matches]";
    assert_eq!(tab.eval(media), json!([640, 1, true, true]));
    tab.zoomed_viewport(1280, 800, 2);
    assert_eq!(tab.eval(media), json!([640, 2, true, true]));
    tab.slow_processor(1).viewport(320, 480).eval("document.body.style.minWidth = '400px'");
    assert_eq!(tab.sideways_overflow(), 80);
    assert_eq!(tab.attribute("html", "lang").as_deref(), Some("en"));

    let file = site.server.home.folder().join("tab.png");
    tab.screenshot(&file, true);
    assert!(fs::read(&file).expect("a picture").starts_with(b"\x89PNG"));
    let other = site.open("/dead");
    assert_eq!([&tab, &other].map(|tab| tab.eval("document.hidden")), [false, false]);
    assert!(other.text().contains("No job is dead"));
    let is_streamed = |url: &String| url.contains("/live?page=") && url.contains("%2Fdead");
    other.until("the stream has the page of the second tab", || site.requests().iter().any(is_streamed));
}

#[test]
fn a_browser_ends_with_its_test_and_leaves_nothing() {
    let site = Site::logged_out(Home::with_queue(), &[]);
    drop(site.tab());
    let folder = site.protocol.process.folder().to_owned();
    let processes = || {
        let all = fs::read_dir("/proc").expect("the processes").flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let ours = folder.to_str().expect("a path").as_bytes().to_owned();
        lines.filter(|line| line.windows(ours.len()).any(|part| part == ours)).count()
    };
    assert!(processes() > 1);
    drop(site);
    assert!(!folder.exists());
    assert_eq!(processes(), 0);
}
