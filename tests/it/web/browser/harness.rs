//! The harness itself: it sees each kind of fault, it reads and acts as a person does, and a browser ends with its test.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::Site;
use super::process::Process;
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

/// The command lines of all processes that have this part.
fn command_lines(part: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("the processes").flatten();
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(part)).collect()
}

#[test]
fn a_browser_ends_with_its_test_and_leaves_nothing() {
    let process = Process::start();
    let folder = Path::new(&process.address).parent().expect("a folder").to_owned();
    let site = Site::in_browser(process, Home::with_queue(), &[]);
    drop(site.tab());
    let processes = || command_lines(folder.to_str().expect("a path"));
    assert!(processes().len() > 1);
    drop(site);
    assert!(!folder.exists());
    assert_eq!(processes(), Vec::<String>::new());
}

#[test]
fn tests_that_share_a_browser_have_profiles_of_their_own_which_end_with_them() {
    let process = Process::start();
    let mine = Site::in_browser(process.shared(), Home::with_queue(), &[]);
    mine.expect_fault("request to another origin");
    let count_in = |profile: &str| {
        let all = mine.protocol.call(None, "Target.getTargets", &json!({}));
        let all = all["targetInfos"].as_array().expect("a list").clone();
        all.iter().filter(|target| target["browserContextId"] == profile).count()
    };
    let tab = mine.tab();
    let profile = {
        let another = Site::in_browser(process.shared(), Home::with_queue(), &[]);
        let its = another.open("/login");
        its.eval("document.cookie = 'seen=1'");
        tab.navigate(&format!("{}/login", another.origin()));
        assert_eq!([&its, &tab].map(|tab| tab.eval("document.cookie")), [json!("seen=1"), json!("")]);
        assert!(another.faults().is_empty(), "requests of the first test are not those of the second");
        assert!(count_in(&another.protocol.profile) > 0);
        // What the page still loads must not fail when the server of the other test ends.
        tab.wait("the page is loaded", "document.readyState === 'complete'");
        tab.navigate("about:blank");
        // A test that is killed closes no tab.
        std::mem::forget(its);
        another.protocol.profile.clone()
    };
    tab.until("the tab of the other test is closed", || count_in(&profile) == 0);
}
