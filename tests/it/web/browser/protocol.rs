//! The browser's debugging protocol: JSON messages that a zero byte ends. A call waits for its answer, and every event
//! that arrives meanwhile goes into the record.
//!
//! Each connection has a profile of its own, which ends with it.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::process::Process;
use super::record::Record;

/// Longer than any call takes on a loaded machine.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Protocol {
    to: RefCell<UnixStream>,
    from: Receiver<Value>,
    next: Cell<u64>,
    /// The context of its profile.
    pub(super) profile: String,
    pub(crate) record: RefCell<Record>,
    // Last: the browser ends after everything that talks to it.
    _process: Process,
}

impl Protocol {
    pub(crate) fn with(process: Process) -> Self {
        let to = UnixStream::connect(&process.address).expect("the browser's socket");
        let from = messages(to.try_clone().expect("a descriptor"));
        let mut protocol = Self {
            to: RefCell::new(to),
            from,
            next: Cell::new(1),
            profile: String::new(),
            record: RefCell::default(),
            _process: process,
        };
        let made = protocol.call(None, "Target.createBrowserContext", &json!({ "disposeOnDetach": true }));
        made["browserContextId"].as_str().expect("a context").clone_into(&mut protocol.profile);
        protocol
    }

    /// Calls a method of the browser, or of a tab if a session is given.
    #[track_caller]
    pub(crate) fn call(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        match self.try_call(session, method, params) {
            Ok(result) => result,
            Err(problem) => panic!("{method}: {problem}"),
        }
    }

    /// As `call`, for a caller that can do without the answer.
    pub(crate) fn try_call(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<Value, String> {
        let id = self.send(session, method, params)?;
        loop {
            let message =
                self.from.recv_timeout(CALL_TIMEOUT).map_err(|error| format!("no answer: {error}"))?;
            if message["id"] != id {
                self.note(&message);
            } else if let Some(problem) = message.get("error") {
                return Err(problem["message"].as_str().unwrap_or_default().to_owned());
            } else {
                return Ok(message["result"].clone());
            }
        }
    }

    /// Records the events that have arrived.
    pub(crate) fn note_arrived(&self) {
        while let Ok(message) = self.from.try_recv() {
            self.note(&message);
        }
    }

    fn note(&self, message: &Value) {
        self.record.borrow_mut().note(message);
        if message["method"] == "Page.javascriptDialogOpening" {
            // The tab stands still until it is answered.
            let _ = self.send(
                message["sessionId"].as_str(),
                "Page.handleJavaScriptDialog",
                &json!({ "accept": true }),
            );
        }
    }

    fn send(&self, session: Option<&str>, method: &str, params: &Value) -> Result<u64, String> {
        let id = self.next.replace(self.next.get() + 1);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let bytes = [message.to_string().as_bytes(), b"\0"].concat();
        self.to.borrow_mut().write_all(&bytes).map_err(|error| error.to_string())?;
        Ok(id)
    }
}

impl Drop for Protocol {
    /// The thread that reads has a descriptor of its own.
    fn drop(&mut self) {
        let _ = self.to.borrow_mut().shutdown(Shutdown::Both);
    }
}

fn messages(from: UnixStream) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::with_capacity(1 << 16, from);
        let mut message = Vec::new();
        while from.read_until(0, &mut message).is_ok_and(|read| read > 0) {
            message.pop();
            let Ok(value) = serde_json::from_slice(&message) else { return };
            if sender.send(value).is_err() {
                return;
            }
            message.clear();
        }
    });
    receiver
}
