//! `POST /jobs`

use axum::http::StatusCode;
use axum::http::header::HeaderName;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::doors::secret::in_hex;
use crate::problem::{FieldError, Problem};
use crate::request::answer::Answer;
use crate::request::body;
use crate::request::call::Call;
use crate::request::query::{Param, TEXT, encode};
use domain::job::Job;
use domain::job::spec::JobSpec;
use domain::job::trace::TraceContext;
use domain::values::name::{BatchName, JobId};
use ops::OpError;
use ops::error::chain;
use ops::jobs::enqueue::{Caller, Enqueuer};
use ops::json::EnqueuedJson;
use store::{EnqueueResult, Store};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The most jobs of one request: they are stored in one transaction.
const MAX_JOBS: usize = 10_000;
/// How much of the hash of a key becomes an id.
const KEY_CHARS: usize = 20;

pub(super) const PARAMS: &[Param] = &[
    Param::new("if_absent", r#"{"type":"boolean"}"#, "Return a job that has the id already, instead of 409"),
    Param::new("batch", TEXT, "The batch of the jobs"),
];

/// One job, or several.
enum Requested {
    One(Box<JobSpec>),
    Several(Vec<JobSpec>),
}

pub(super) fn enqueue(call: &Call<'_>) -> Result<Answer, Problem> {
    let (mut specs, is_array) = match parse(&call.parts.body)? {
        Requested::One(spec) => (vec![*spec], false),
        Requested::Several(specs) => (specs, true),
    };
    let key = key(call)?;
    if let Some(key) = &key {
        name_by_key(&mut specs, key, is_array)?;
    }
    let if_absent = call.query().read("if_absent")?.unwrap_or(false) || key.is_some();
    let batch: Option<BatchName> = call.query().read("batch")?;
    // The jobs get the environment and the home directory of the worker: the client has neither on this machine.
    let header = |name: &'static str| call.parts.headers.get(name.to_ascii_lowercase())?.to_str().ok();
    let trace = TraceContext::read(header).map(Box::new);
    let caller = Caller { runs_elsewhere: true, if_absent, batch, trace, ..Caller::default() };
    let store = call.store()?;
    let wanted = specs.clone();
    let answers = store_all(store, specs, caller)?;
    let jobs = find_all(store, &answers)?;
    if key.is_some() {
        check_same(&wanted, &jobs)?;
    }
    answer(call, &jobs, &answers, is_array)
}

fn parse(bytes: &[u8]) -> Result<Requested, Problem> {
    body::check_depth(bytes)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return Ok(Requested::One(Box::new(body::parse(bytes)?)));
    }
    let specs: Vec<JobSpec> = serde_json::from_slice(bytes).map_err(|error| with_place(bytes, error))?;
    if specs.len() > MAX_JOBS {
        let detail = format!("an array may have at most {MAX_JOBS} jobs");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
    }
    if specs.is_empty() {
        return Err(Problem::invalid("the array has no job"));
    }
    Ok(Requested::Several(specs))
}

/// Names the element of the array that is not a job.
fn with_place(bytes: &[u8], error: serde_json::Error) -> Problem {
    let elements: Vec<Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let bad = elements.into_iter().map(serde_json::from_value::<JobSpec>).enumerate();
    let errors = bad.filter_map(|(at, spec)| Some(field_error(at, &OpError::from(spec.err()?)))).take(1);
    Problem::from(OpError::from(error)).with_errors(errors.collect())
}

fn field_error(at: usize, error: &OpError) -> FieldError {
    FieldError { pointer: format!("/{at}"), detail: chain(error) }
}

fn key(call: &Call<'_>) -> Result<Option<String>, Problem> {
    let mut sent = call.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = sent.next() else {
        return Ok(None);
    };
    let key = key.to_str().ok().filter(|key| !key.trim().is_empty() && sent.next().is_none());
    key.map(|key| Some(key.to_owned())).ok_or_else(|| Problem::invalid("`Idempotency-Key` must be one text"))
}

/// Jobs without an id get one that follows from the key.
fn name_by_key(specs: &mut [JobSpec], key: &str, is_array: bool) -> Result<(), Problem> {
    let hash = in_hex(&Sha256::digest(key.as_bytes()));
    for (at, spec) in specs.iter_mut().enumerate().filter(|(_, spec)| spec.id.is_none()) {
        let number = if is_array { format!("-{at}") } else { String::new() };
        let id = format!("k-{}{number}", &hash[..KEY_CHARS]);
        spec.id = Some(id.parse::<JobId>().map_err(|error| Problem::invalid(error.to_string()))?);
    }
    Ok(())
}

fn store_all(store: &dyn Store, specs: Vec<JobSpec>, caller: Caller) -> Result<Vec<EnqueueResult>, Problem> {
    let mut enqueuer = Enqueuer::new(store, caller)?;
    let again = specs.clone();
    enqueuer.enqueue(specs).map_err(|error| {
        let is_of_job = matches!(error, OpError::Request(_) | OpError::UnusableFolder { .. });
        let bad = again.into_iter().enumerate().filter(|_| is_of_job);
        let bad = bad.filter_map(|(at, spec)| Some(field_error(at, &enqueuer.resolve(spec).err()?))).take(1);
        let errors = bad.collect();
        Problem::from(error).with_errors(errors)
    })
}

fn find_all(store: &dyn Store, answers: &[EnqueueResult]) -> Result<Vec<Job>, Problem> {
    let find = |answer: &EnqueueResult| {
        let id = answer.id();
        Ok(store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?)
    };
    answers.iter().map(find).collect()
}

/// A key stands for one request: a different one under the same key is a mistake of the client.
fn check_same(wanted: &[JobSpec], jobs: &[Job]) -> Result<(), Problem> {
    let differs = |(spec, job): &(&JobSpec, &Job)| {
        spec.command.as_deref() != Some(&job.command)
            || spec.queue.as_ref().is_some_and(|queue| *queue != job.queue)
    };
    match wanted.iter().zip(jobs).find(differs) {
        Some((_, job)) => Err(Problem::invalid(format!(
            "the same `Idempotency-Key` was used for another job, `{}`",
            job.id
        ))),
        None => Ok(()),
    }
}

fn answer(
    call: &Call<'_>,
    jobs: &[Job],
    answers: &[EnqueueResult],
    is_array: bool,
) -> Result<Answer, Problem> {
    let is_new = answers.iter().any(EnqueueResult::is_created);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let shown: Vec<EnqueuedJson<'_>> = jobs
        .iter()
        .zip(answers)
        .map(|(job, answer)| EnqueuedJson { job: job.into(), existing: !answer.is_created() })
        .collect();
    match (&shown[..], answers) {
        ([one], [stored]) if !is_array => {
            let path = call.path(&format!("/jobs/{}", encode(stored.id().as_str())));
            Ok(Answer::json(one)?.with_status(status).at(&path))
        }
        _ => Ok(Answer::json(&shown)?.with_status(status)),
    }
}
