//! The record of a browser: which requests it sent, which pages it loaded, and everything that must not happen in any
//! test: a console error, a report of the content security policy or of Trusted Types, a request to another origin, an
//! uncaught exception, a dialog that a script opened.

use serde_json::Value;

#[derive(Default)]
pub(crate) struct Record {
    /// The only origins that a page may ask for anything.
    pub(crate) origins: Vec<String>,
    /// Parts of faults that a test provokes.
    pub(crate) expected: Vec<String>,
    pub(crate) requests: Vec<String>,
    /// Session, document and name of each stage that a page reached.
    stages: Vec<[String; 3]>,
    faults: Vec<String>,
}

impl Record {
    pub(super) fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let text =
            |pointer: &str| params.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => self.request(text("/request/url")),
            "Page.lifecycleEvent" => {
                let session = event["sessionId"].as_str().unwrap_or_default().to_owned();
                self.stages.push([session, text("/loaderId"), text("/name")]);
            }
            "Runtime.consoleAPICalled"
                if ["error", "assert", "warning"].contains(&text("/type").as_str()) =>
            {
                self.faults.push(format!("console {}: {}", text("/type"), params["args"]));
            }
            "Runtime.exceptionThrown" => {
                let what = [text("/exceptionDetails/text"), text("/exceptionDetails/exception/description")];
                self.faults.push(format!("uncaught: {}", what.join(" ")));
            }
            "Log.entryAdded" if ["error", "warning"].contains(&text("/entry/level").as_str()) => {
                self.faults.push(format!(
                    "{}: {} {}",
                    text("/entry/source"),
                    text("/entry/text"),
                    text("/entry/url")
                ));
            }
            "Audits.issueAdded" => self.issue(&params["issue"]),
            "Page.javascriptDialogOpening" => {
                self.faults.push(format!("a script opened a dialog: {}", text("/message")));
            }
            "Target.targetCrashed" | "Inspector.targetCrashed" => {
                self.faults.push("the tab crashed".to_owned());
            }
            _ => {}
        }
    }

    fn request(&mut self, url: String) {
        let is_ours = self
            .origins
            .iter()
            .any(|origin| url.strip_prefix(origin).is_some_and(|rest| rest.starts_with('/')));
        if !is_ours && url != "about:blank" {
            self.faults.push(format!("request to another origin: {url}"));
        }
        self.requests.push(url);
    }

    fn issue(&mut self, issue: &Value) {
        let code = issue["code"].as_str().unwrap_or_default();
        if ["ContentSecurityPolicyIssue", "MixedContentIssue", "CookieIssue"].contains(&code) {
            self.faults.push(format!("{code}: {}", issue["details"]));
        }
    }

    /// Whether a document of a session has reached a stage of its loading.
    pub(super) fn has_reached(&self, session: &str, document: &str, stage: &str) -> bool {
        self.stages.iter().any(|known| *known == [session, document, stage])
    }

    /// The faults that no test provoked.
    pub(super) fn faults(&self) -> Vec<&str> {
        let is_expected = |fault: &&str| self.expected.iter().any(|part| fault.contains(part));
        self.faults.iter().map(String::as_str).filter(|fault| !is_expected(fault)).collect()
    }
}
