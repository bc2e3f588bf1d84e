//! Tests in a real browser. A [`Site`] is a server and a chromium that is logged in to it; a [`Tab`] is read and used as a
//! person would: by text, by accessible role and name, by keys.
//!
//! ```ignore
//! let site = Site::new(Home::with_jobs(&["a"]));
//! let tab = site.open("/jobs");
//! tab.click("link", "a");
//! tab.wait_for_path("/jobs/a").wait_for_text("has not run yet");
//! ```
//!
//! At the end of every test the site asserts that no page logged an error, broke the content security policy, asked
//! another origin for anything or threw an exception; `expect_fault` names what a test provokes. `tests/with-chromium` starts
//! one browser for all tests, each of which has a profile of its own in it; without it each test starts a browser.

mod act;
mod emulation;
mod process;
mod protocol;
mod record;
mod tab;

mod harness;

use crate::cli::harness::Home;

use super::client::Server;
use process::Process;
use protocol::Protocol;
pub(super) use tab::Tab;

pub(super) struct Site {
    pub(super) server: Server,
    protocol: Protocol,
}

impl Site {
    /// A server on this home, and a browser that has followed its login link.
    pub(super) fn new(home: Home) -> Self {
        Self::start(home, &[])
    }

    pub(super) fn start(home: Home, args: &[&str]) -> Self {
        let site = Self::logged_out(home, args);
        site.log_in();
        site
    }

    pub(super) fn logged_out(home: Home, args: &[&str]) -> Self {
        Self::in_browser(Process::of_test_run(), home, args)
    }

    fn in_browser(process: Process, home: Home, args: &[&str]) -> Self {
        let site = Self { server: Server::start(home, args), protocol: Protocol::with(process) };
        site.protocol.record.borrow_mut().origins.push(site.origin());
        site
    }

    fn log_in(&self) {
        let tab = self.tab();
        tab.navigate(&self.server.link);
        tab.wait(
            "the login link leads into the dashboard",
            "!location.pathname.endsWith('/login') && document.readyState === 'complete'",
        );
    }

    /// An empty tab.
    pub(super) fn tab(&self) -> Tab<'_> {
        Tab::new(&self.protocol, &self.origin())
    }

    /// A tab with this path of the server.
    #[track_caller]
    pub(super) fn open(&self, path: &str) -> Tab<'_> {
        let tab = self.tab();
        tab.open(path);
        tab
    }

    /// The same, after the first message of the stream, which can move what a test is about to click on.
    #[track_caller]
    pub(super) fn open_live(&self, path: &str) -> Tab<'_> {
        let tab = self.open(path);
        tab.wait_for("#age.live");
        tab
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The test provokes faults with this text.
    pub(super) fn expect_fault(&self, part: &str) {
        self.protocol.record.borrow_mut().expected.push(part.to_owned());
    }

    /// The URLs of all requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.protocol.note_arrived();
        self.protocol.record.borrow().requests.clone()
    }

    /// The faults so far that no test provoked.
    pub(super) fn faults(&self) -> Vec<String> {
        // The browser answers after it has sent every earlier event.
        let _ = self.protocol.try_call(None, "Browser.getVersion", &serde_json::json!({}));
        self.protocol.record.borrow().faults().into_iter().map(str::to_owned).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let faults = self.faults();
            assert!(faults.is_empty(), "the pages had faults:\n{}", faults.join("\n"));
        }
    }
}
