//! Hostile data on every page, in a real browser: it is shown as text, whatever it is.

use serde_json::{Value, json};

use super::browser::{Site, Tab};
use super::rich::{self, Rich};
use crate::cli::harness::Home;

/// Markup that would run a script, controls that would turn text around, line ends of scripts, links of terminals.
const HOSTILE: &str = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2><b class=hostile>\
                       \u{202e}\u{2028}\u{2066}\u{200b}\"'`${window.pwned=3}&lt;";
/// In a command. It prints the same, a link of a terminal, bytes that are not UTF-8, and a line of 1 MB.
const OUTPUT: &str = "cat hostile; printf '\\033]8;;javascript:window.pwned=4\\033\\\\link\\033]8;;\\033\\\\\\n\\033[2J\\033[31mred\\n\\377\\376\\300\\n'; \
                      head -c 1000000 /dev/zero | tr '\\0' '<'; echo; cat hostile >&2; exit 1";

/// Says what is wrong with a page: elements that only data can have brought, scripts that ran, characters that deceive.
const INSPECT: &str = "(() => {
    const wrong = [];
    if (window.pwned !== undefined) wrong.push(`a script ran: ${window.pwned}`);
    for (const one of document.querySelectorAll('script:not([src]), [onerror], img[src=x], .hostile, [href^=javascript]'))
        wrong.push(one.outerHTML.slice(0, 200));
    const hidden = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200b\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]/;
    const walk = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT | NodeFilter.SHOW_COMMENT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        // A field that is edited has the text itself.
        if (node.parentNode.nodeName === 'TEXTAREA') continue;
        const shown = ['title', 'aria-label', 'alt', 'placeholder'];
        const texts = node.attributes ? shown.map((name) => node.getAttribute(name) ?? '') : [node.data];
        for (const text of texts) if (hidden.test(text)) wrong.push(`${node.nodeName}: ${JSON.stringify(text.slice(0, 200))}`);
    }
    return wrong;
})()";

fn home() -> Home {
    let home = rich::home();
    home.file("hostile", HOSTILE.replace('\0', "") + "\n");
    let text = HOSTILE.replace('\u{2028}', " ");
    let folder = home.folder().display().to_string();
    let dead = json!({ "id": "bad-1", "command": OUTPUT, "name": text, "tags": ["<img src=x onerror=window.pwned=5>"],
        "unique_key": HOSTILE, "max_retries": 0, "cwd": folder, "env": { "SAFE": HOSTILE } });
    let command =
        json!({ "id": "hostile", "command": format!(": {HOSTILE}"), "delay": "1h", "queue": "mail" });
    let lines = format!("{dead}\n{command}\n");
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    for words in [
        &["queue", "pause", "mail", "--reason", HOSTILE][..],
        &["hook", "add", "h", "--on", "dead", "--command", HOSTILE],
        &["schedule", "add", "s", "--every", "1h", "--", HOSTILE],
        &["schedule", "pause", "s", "--reason", HOSTILE],
    ] {
        home.run(words);
    }
    home
}

#[track_caller]
fn assert_harmless(tab: &Tab<'_>, path: &str) {
    let wrong = tab.eval(INSPECT);
    assert_eq!(wrong, Value::Array(Vec::new()), "{path}");
}

#[test]
fn hostile_data_is_text_on_every_page() {
    let site = Site::new(home());
    let rich = Rich::of_running(&site.server);
    let tab = site.tab();
    let hostile = "%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D6%3E";
    let mut paths = rich.pages();
    paths.extend(["/jobs/bad-1", "/jobs/hostile", "/jobs/ok"].map(str::to_owned));
    paths.extend([
        format!("/jobs?like={hostile}"),
        "/jobs?state=dead".to_owned(),
        format!("/jobs?tag={hostile}%E2%80%AE"),
        format!("/events?by={hostile}"),
        "/enqueue?from=bad-1".to_owned(),
        "/enqueue?from=hostile".to_owned(),
    ]);
    for path in &paths {
        // Not every page takes every query.
        site.expect_fault("422");
        tab.open(path);
        assert_harmless(&tab, path);
    }
    tab.open("/jobs").wait_for_text("<script>window.pwned=1</script>");
    assert_harmless(&tab, "/jobs");
    tab.open("/jobs/bad-1").wait_for_text("<script>window.pwned=1</script>");
    // What arrives later is put into the page by a script.
    tab.open("/jobs").wait_for("#age.live");
    let live = json!({ "id": "live", "command": format!("true {HOSTILE}"), "name": HOSTILE.replace('\u{2028}', " ") });
    site.server.post("/api/v1/jobs", &live).expects(201);
    tab.wait_for_role("link", "live");
    assert_harmless(&tab, "/jobs, live");
    // Names that nothing can have.
    site.expect_fault("404");
    for path in [
        format!("/jobs/{hostile}"),
        format!("/dead/{hostile}"),
        format!("/{hostile}"),
        "/jobs/%E2%80%AE".to_owned(),
    ] {
        tab.open(&path);
        assert_harmless(&tab, &path);
    }
}
