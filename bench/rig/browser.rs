//! Chromium behind its debugging pipe, for what only a browser can measure. It is driven as the tests drive it, but no fault
//! of a page is looked for.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::rig::workspace::Home;

const PROGRAM: &str = "chromium";
const FLAGS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--enable-precise-memory-info",
    "--lang=en-US",
];
/// The debugging pipe is on descriptors 3 and 4.
const TO_DESCRIPTORS: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Whether this machine has the browser.
pub(crate) fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
}

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    origin: String,
}

/// A tab of the browser.
#[derive(Clone, Debug)]
pub(crate) struct Tab(String);

/// A call whose answer has not been waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending(u64);

impl Browser {
    /// A browser that is logged in to the dashboard of this home.
    pub(crate) fn start(home: &Home) -> Result<Self> {
        let profile = home.path().join("chromium");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", TO_DESCRIPTORS, PROGRAM]).args(FLAGS);
        command.arg(format!("--user-data-dir={}", profile.display())).env("HOME", &profile);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let to = child.stdin.take().context("stdin is a pipe")?;
        let from = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
        let link = login_link(home)?;
        let origin = link.split("/login").next().unwrap_or_default().to_owned();
        let mut browser = Self { child, to, from, next: 0, origin };
        let tab = browser.tab()?;
        browser.call(&tab, "Page.navigate", &json!({ "url": link }))?;
        browser.wait(&tab, "location.pathname === '/' && document.readyState === 'complete'")?;
        browser.close(&tab)?;
        Ok(browser)
    }

    /// An empty tab in a window of its own, so that it is visible.
    pub(crate) fn tab(&mut self) -> Result<Tab> {
        let window = json!({ "url": "about:blank", "newWindow": true, "width": 1280, "height": 800 });
        let made = self.send_and_wait(None, "Target.createTarget", &window)?;
        let attach = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = self.send_and_wait(None, "Target.attachToTarget", &attach)?;
        let tab = Tab(attached["sessionId"].as_str().context("no session")?.to_owned());
        self.call(&tab, "Page.enable", &json!({}))?;
        self.call(&tab, "Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }))?;
        Ok(tab)
    }

    pub(crate) fn close(&mut self, tab: &Tab) -> Result<()> {
        self.call(tab, "Page.close", &json!({})).map(drop)
    }

    /// Opens a path of the dashboard and waits until the page has loaded.
    pub(crate) fn open(&mut self, tab: &Tab, path: &str) -> Result<()> {
        self.eval(tab, "window.isBefore = true")?;
        let url = format!("{}{path}", self.origin);
        self.call(tab, "Page.navigate", &json!({ "url": url }))?;
        self.wait(tab, "!window.isBefore && document.readyState === 'complete'")
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, tab: &Tab, expression: &str) -> Result<()> {
        let end = Instant::now() + TIMEOUT;
        let is_true = format!("Boolean({expression})");
        while self.eval(tab, &is_true).ok() != Some(Value::Bool(true)) {
            ensure!(Instant::now() < end, "waited too long until {expression}");
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// The value of an expression; a promise is awaited.
    pub(crate) fn eval(&mut self, tab: &Tab, expression: &str) -> Result<Value> {
        let pending = self.begin(tab, expression)?;
        self.finish(pending)
    }

    pub(crate) fn number(&mut self, tab: &Tab, expression: &str) -> Result<f64> {
        let value = self.eval(tab, expression)?;
        value.as_f64().with_context(|| format!("{expression} is {value}"))
    }

    /// Starts an expression, and returns while it runs.
    pub(crate) fn begin(&mut self, tab: &Tab, expression: &str) -> Result<Pending> {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        self.send(Some(tab), "Runtime.evaluate", &params)
    }

    pub(crate) fn finish(&mut self, pending: Pending) -> Result<Value> {
        let answer = self.answer(pending)?;
        if let Some(details) = answer.get("exceptionDetails") {
            bail!("{}", details["exception"]["description"]);
        }
        Ok(answer["result"]["value"].clone())
    }

    pub(crate) fn call(&mut self, tab: &Tab, method: &str, params: &Value) -> Result<Value> {
        self.send_and_wait(Some(tab), method, params)
    }

    fn send_and_wait(&mut self, tab: Option<&Tab>, method: &str, params: &Value) -> Result<Value> {
        let pending = self.send(tab, method, params)?;
        self.answer(pending).with_context(|| format!("{method} failed"))
    }

    fn send(&mut self, tab: Option<&Tab>, method: &str, params: &Value) -> Result<Pending> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(Tab(session)) = tab {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(&[message.to_string().as_bytes(), b"\0"].concat())?;
        Ok(Pending(self.next))
    }

    fn answer(&mut self, Pending(id): Pending) -> Result<Value> {
        loop {
            let mut text = Vec::new();
            ensure!(self.from.read_until(0, &mut text)? > 0, "the browser has ended");
            text.pop();
            let message: Value = serde_json::from_slice(&text)?;
            if message["id"] != id {
                continue;
            }
            if let Some(problem) = message.get("error") {
                bail!("{}", problem["message"]);
            }
            return Ok(message["result"].clone());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A link that logs a browser in to the running dashboard.
fn login_link(home: &Home) -> Result<String> {
    let output = Command::new(home.program())
        .args([Path::new("--home"), home.path()])
        .args(["dashboard", "link"])
        .output()
        .context("failed to ask for a link")?;
    let printed = String::from_utf8(output.stdout)?;
    let link = printed.split_whitespace().find(|word| word.starts_with("http://"));
    Ok(link.with_context(|| format!("no link in `{printed}`"))?.to_owned())
}
