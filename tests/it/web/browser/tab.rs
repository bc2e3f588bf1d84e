//! A tab: where it is, what it shows, and the wait for either.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::protocol::Protocol;

/// Longer than any page takes on a loaded machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Each look makes the browser lay out the page, so a long wait looks less often.
const FIRST_POLL: Duration = Duration::from_millis(10);
const LONGEST_POLL: Duration = Duration::from_millis(80);

/// Every command line names the home of the test, which tests leave out to stay readable.
const PLAIN_COMMANDS: &str = r".replaceAll(/queuectl --home \S+/g, 'queuectl')";

/// Messages of a stream wait in `held`.
const HOLD_STREAM: &str = "window.held = [];
    const add = EventSource.prototype.addEventListener;
    EventSource.prototype.addEventListener = function (name, listener) {
        if (name !== 'sections') return add.call(this, name, listener);
        return add.call(this, name, (event) => (window.held ? window.held.push(() => listener(event)) : listener(event)));
    };";

pub(crate) struct Tab<'a> {
    pub(super) protocol: &'a Protocol,
    pub(super) session: String,
    target: String,
    origin: String,
    /// The media features that differ from those of a plain browser.
    pub(super) media: RefCell<BTreeMap<&'static str, String>>,
}

impl<'a> Tab<'a> {
    /// A new tab in a window of its own, so that it is not hidden behind another.
    pub(crate) fn new(protocol: &'a Protocol, origin: &str) -> Self {
        let window = json!({ "url": "about:blank", "newWindow": true, "width": 1280, "height": 800,
            "browserContextId": protocol.profile });
        let made = protocol.call(None, "Target.createTarget", &window);
        let target = made["targetId"].as_str().expect("a target").to_owned();
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = protocol.call(None, "Target.attachToTarget", &attach);
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        let tab = Self { protocol, session, target, origin: origin.to_owned(), media: RefCell::default() };
        for domain in ["Page", "Runtime", "Log", "Network", "Audits"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab.call("Page.setLifecycleEventsEnabled", &json!({ "enabled": true }));
        tab.call("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
        tab.viewport(1280, 800);
        tab
    }

    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        self.protocol.call(Some(&self.session), method, params)
    }

    /// Opens a path of the server, and waits until its scripts have run.
    #[track_caller]
    pub(crate) fn open(&self, path: &str) -> &Self {
        self.navigate(&format!("{}{path}", self.origin))
    }

    #[track_caller]
    pub(crate) fn navigate(&self, url: &str) -> &Self {
        let answer = self.call("Page.navigate", &json!({ "url": url }));
        assert_eq!(answer["errorText"], Value::Null, "{url}");
        // Another fragment of the same page loads nothing.
        if let Some(document) = answer["loaderId"].as_str() {
            self.until(&format!("{url} has loaded"), || {
                self.protocol.record.borrow().has_reached(&self.session, document, "load")
            });
        }
        self
    }

    /// From the next page on, keeps back what the stream sends until `let_go`.
    #[track_caller]
    pub(crate) fn hold_stream(&self) -> &Self {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": HOLD_STREAM }));
        self
    }

    /// Lets the page have what its stream has sent, and waits for that.
    #[track_caller]
    pub(crate) fn let_go(&self) -> &Self {
        self.wait("the stream has sent something", "window.held.length > 0");
        self.eval("(window.held.splice(0).forEach((deliver) => deliver()), window.held = undefined)");
        self
    }

    /// Loads the page again, and waits until its scripts have run.
    #[track_caller]
    pub(crate) fn reload(&self) -> &Self {
        self.eval("window.isBeforeReload = true");
        self.call("Page.reload", &json!({}));
        self.wait("the page has loaded again", "!window.isBeforeReload && document.readyState === 'complete'")
    }

    /// Goes back in the tab's history.
    #[track_caller]
    pub(crate) fn back(&self) -> &Self {
        self.eval("history.back()");
        self
    }

    /// The value of an expression in the page. A promise is awaited.
    #[track_caller]
    pub(crate) fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_else(|problem| panic!("{expression}: {problem}"))
    }

    pub(crate) fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.protocol.try_call(Some(&self.session), "Runtime.evaluate", &params)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(details["exception"]["description"].to_string()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression in the page is true. The page may be replaced meanwhile.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, expression: &str) -> &Self {
        let is_true = format!("Boolean({expression})");
        self.until(what, || self.try_eval(&is_true) == Ok(Value::Bool(true)));
        self
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&self, text: &str) -> &Self {
        self.wait(
            &format!("the page shows {text:?}"),
            &format!("document.body.innerText{PLAIN_COMMANDS}.includes({})", json!(text)),
        )
    }

    /// Waits until no text of the page has this part.
    #[track_caller]
    pub(crate) fn wait_for_no_text(&self, text: &str) -> &Self {
        let has = format!("!document.body.innerText{PLAIN_COMMANDS}.includes({})", json!(text));
        self.wait(&format!("the page shows no {text:?}"), &has)
    }

    /// Waits until the page has a visible element that matches.
    #[track_caller]
    pub(crate) fn wait_for(&self, selector: &str) -> &Self {
        let is_visible = format!(
            "[...document.querySelectorAll({})].some((one) => one.checkVisibility())",
            json!(selector)
        );
        self.wait(&format!("the page has {selector}"), &is_visible)
    }

    /// Waits until the tab is at a path, with its query, and the page has loaded.
    #[track_caller]
    pub(crate) fn wait_for_path(&self, path: &str) -> &Self {
        let is_there = format!("location.pathname + location.search === {}", json!(path));
        self.wait(
            &format!("the tab is at {path}"),
            &format!("{is_there} && document.readyState === 'complete'"),
        )
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_done: impl Fn() -> bool) {
        let end = Instant::now() + WAIT_TIMEOUT;
        let mut pause = FIRST_POLL;
        while !is_done() {
            assert!(Instant::now() < end, "waited too long until {what}; the tab shows {}", self.summary());
            std::thread::sleep(pause);
            pause = (pause * 3 / 2).min(LONGEST_POLL);
            self.protocol.note_arrived();
        }
    }

    /// The text that a reader of the page sees.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        self.text_of("body")
    }

    /// The text of the first element that matches.
    #[track_caller]
    pub(crate) fn text_of(&self, selector: &str) -> String {
        let text =
            self.eval(&format!("document.querySelector({}).innerText{PLAIN_COMMANDS}", json!(selector)));
        text.as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub(crate) fn attribute(&self, selector: &str, name: &str) -> Option<String> {
        let found =
            self.eval(&format!("document.querySelector({}).getAttribute({})", json!(selector), json!(name)));
        found.as_str().map(str::to_owned)
    }

    #[track_caller]
    pub(crate) fn count(&self, selector: &str) -> u64 {
        self.eval(&format!("document.querySelectorAll({}).length", json!(selector)))
            .as_u64()
            .expect("a number")
    }

    /// Path, query and fragment.
    #[track_caller]
    pub(crate) fn path(&self) -> String {
        let path = self.eval("location.pathname + location.search + location.hash");
        path.as_str().unwrap_or_default().to_owned()
    }

    /// Writes a picture of the tab; of the whole page, or of what fits into the window.
    pub(crate) fn screenshot(&self, file: &Path, is_whole: bool) {
        let params = json!({ "format": "png", "captureBeyondViewport": is_whole, "optimizeForSpeed": false });
        let picture = self.call("Page.captureScreenshot", &params);
        write_picture(&picture, file);
    }

    fn summary(&self) -> String {
        let shown = "`${location.href}: ${document.body?.innerText.slice(0, 2000)}`";
        self.try_eval(shown)
            .map_or_else(|problem| problem, |text| text.as_str().unwrap_or_default().to_owned())
    }
}

impl Drop for Tab<'_> {
    /// A failed test leaves a picture of its tabs.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.protocol.try_call(None, "Target.closeTarget", &json!({ "targetId": self.target }));
            return;
        }
        let params = json!({ "format": "png" });
        if let Ok(picture) = self.protocol.try_call(Some(&self.session), "Page.captureScreenshot", &params) {
            let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
            let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}.png", self.target));
            write_picture(&picture, &file);
            eprintln!("a picture of the tab is in {}", file.display());
        }
    }
}

fn write_picture(picture: &Value, file: &Path) {
    let bytes = BASE64_STANDARD.decode(picture["data"].as_str().unwrap_or_default()).unwrap_or_default();
    let _ = file.parent().map(std::fs::create_dir_all);
    let _ = std::fs::write(file, bytes);
}
