//! The spans of attempts, in `traces.jsonl` in the home: one line of OTLP JSON per attempt, which the collector of
//! OpenTelemetry reads (`otlpjsonfile`).
//!
//! A trace is an aid and no promise: a line that cannot be written is noted in the journal, and the attempt counts all
//! the same.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde_json::{Value, json};

use super::command;
use domain::job::outcome::Outcome;
use domain::job::trace::{TraceContext, TraceParent};
use store::{Claim, Settlement};

const FILE: &str = "traces.jsonl";
/// The file before, which the next rotation replaces.
const OLD_FILE: &str = "traces.jsonl.1";
const MAX_BYTES: u64 = 64 << 20;

/// The kinds of spans, as OTLP numbers them.
const PRODUCER: u32 = 4;
const CONSUMER: u32 = 5;
const STATUS_ERROR: u32 = 2;

/// The spans of a job and of one of its attempts.
#[derive(Clone, Debug)]
pub(super) struct AttemptTrace {
    /// The trace that the caller was in.
    caller: TraceContext,
    /// `None` if the job began the trace.
    caller_span: Option<u64>,
    send: TraceParent,
    process: TraceParent,
}

impl AttemptTrace {
    /// `None` if the job belongs to no trace, unless all attempts are recorded.
    pub(super) fn of(claim: &Claim, context: &command::Context, records_all: bool) -> Option<Self> {
        let job = claim.lease.job.as_str().as_bytes();
        let own = || {
            let home = context.home.as_os_str().as_encoded_bytes();
            TraceContext::new(&[home, &claim.number.to_be_bytes(), job])
        };
        let given = claim.trace.as_deref().cloned();
        let caller_span = given.as_ref().map(|trace| trace.parent.span);
        let caller = given.or_else(|| records_all.then(own))?;
        let send = caller.parent.child(&[b"send", job]);
        let attempt = claim.lease.attempt.to_be_bytes();
        let process = send.child(&[b"process", &attempt, context.worker_id.as_str().as_bytes()]);
        Some(Self { caller, caller_span, send, process })
    }

    /// The variables by which the command continues the trace.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        self.caller.below(self.process).variables().collect()
    }

    /// Appends the spans of an attempt that ended now, unless the caller records none of its trace.
    pub(super) fn record(
        &self,
        context: &command::Context,
        claim: &Claim,
        settlement: &Settlement,
    ) -> io::Result<()> {
        if !self.process.is_sampled() {
            return Ok(());
        }
        let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut spans = vec![self.process_span(context, claim, settlement, ended)];
        if claim.lease.attempt == 1 {
            spans.push(self.send_span(claim));
        }
        let service = [attribute("service.name", "queuectl")];
        let scope = json!({ "name": "queuectl", "version": env!("CARGO_PKG_VERSION") });
        let line = json!({ "resourceSpans": [{
            "resource": { "attributes": service },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }] });
        append(&context.home, &format!("{line}\n"), MAX_BYTES)
    }

    /// The time from which the job could run, when it was first claimed.
    fn send_span(&self, claim: &Claim) -> Value {
        let at = Duration::from_millis(u64::try_from(claim.due_at.as_millis()).unwrap_or(0));
        let mut span = json!({
            "name": format!("send {}", claim.queue),
            "kind": PRODUCER,
            "attributes": messaging(claim, "send"),
        });
        place(&mut span, self.send, self.caller_span, [at, at]);
        span
    }

    fn process_span(
        &self,
        context: &command::Context,
        claim: &Claim,
        settlement: &Settlement,
        ended: Duration,
    ) -> Value {
        let outcome = &settlement.outcome;
        let mut attributes = messaging(claim, "process");
        attributes.push(attribute("messaging.consumer.id", context.worker_id.as_str()));
        attributes.push(number("queuectl.attempt", i64::from(claim.lease.attempt)));
        attributes.extend(outcome.exit_code().map(|code| number("process.exit.code", i64::from(code))));
        let is_success = matches!(outcome, Outcome::Success);
        if !is_success {
            attributes.push(attribute("error.type", outcome.name()));
        }
        let mut span = json!({
            "name": format!("process {}", claim.queue),
            "kind": CONSUMER,
            "attributes": attributes,
            "links": [{ "traceId": trace_id(self.send), "spanId": span_id(self.send.span) }],
        });
        if !is_success {
            let message = settlement.error.as_deref().unwrap_or_default();
            span["status"] = json!({ "code": STATUS_ERROR, "message": message });
        }
        place(
            &mut span,
            self.process,
            Some(self.send.span),
            [ended.saturating_sub(settlement.duration), ended],
        );
        span
    }
}

/// Gives a span its ids and its time.
fn place(span: &mut Value, own: TraceParent, parent: Option<u64>, [began, ended]: [Duration; 2]) {
    span["traceId"] = trace_id(own).into();
    span["spanId"] = span_id(own.span).into();
    if let Some(parent) = parent {
        span["parentSpanId"] = span_id(parent).into();
    }
    span["startTimeUnixNano"] = began.as_nanos().to_string().into();
    span["endTimeUnixNano"] = ended.as_nanos().to_string().into();
}

fn trace_id(span: TraceParent) -> String {
    format!("{:032x}", span.trace)
}

fn span_id(span: u64) -> String {
    format!("{span:016x}")
}

fn messaging(claim: &Claim, operation: &str) -> Vec<Value> {
    vec![
        attribute("messaging.system", "queuectl"),
        attribute("messaging.destination.name", claim.queue.as_str()),
        attribute("messaging.message.id", claim.lease.job.as_str()),
        attribute("messaging.operation.type", operation),
    ]
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// OTLP writes whole numbers as text.
fn number(key: &str, value: i64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

/// Appends a line, and sets a file aside that has grown to `max_bytes`. Workers take turns by a lock on the file.
fn append(home: &Path, line: &str, max_bytes: u64) -> io::Result<()> {
    let path = home.join(FILE);
    let mut file = lock(&path)?;
    if file.metadata()?.len() >= max_bytes {
        std::fs::rename(&path, home.join(OLD_FILE))?;
        file = lock(&path)?;
    }
    file.write_all(line.as_bytes())
}

/// Opens and locks the file that has this name then: another worker may set it aside meanwhile.
fn lock(path: &PathBuf) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        #[expect(clippy::cast_possible_wrap, reason = "the flags of open are a C int")]
        let no_links = OFlags::NOFOLLOW.bits() as i32;
        let file = options.custom_flags(no_links).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let (own, named) = (file.metadata()?, path.symlink_metadata());
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())) {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_full_file_is_set_aside_and_only_the_owner_reads_it() {
        let home = tempfile::tempdir().expect("a folder");
        for line in ["one\n", "two\n", "three\n"] {
            append(home.path(), line, 8).expect("appended");
        }
        let read = |name: &str| std::fs::read_to_string(home.path().join(name)).expect("text");
        assert_eq!((read(FILE), read(OLD_FILE)), ("three\n".to_owned(), "one\ntwo\n".to_owned()));
        let mode = home.path().join(FILE).metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_link_is_not_followed() {
        let home = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/dev/null", home.path().join(FILE)).expect("a link");
        append(home.path(), "line\n", 8).expect_err("refused");
    }
}
