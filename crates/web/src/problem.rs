//! Errors as `application/problem+json` (RFC 9457).

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use crate::doors::tokens::TokenError;
use crate::request::answer::{Answer, Body};
use engine::EngineError;
use ops::OpError;
use ops::error::{Kind, chain, judge};
use ops::escape::to_json;
use store::StoreError;

/// The path below which problem types are named.
const TYPES: &str = "/problems/";
/// A busy store is most likely free again after this time, in seconds.
const RETRY_AFTER_BUSY: &str = "1";
/// The same for one that cannot be reached.
const RETRY_AFTER_UNAVAILABLE: &str = "5";

/// Why a request was not fulfilled.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The last part of its type.
    name: &'static str,
    detail: String,
    exit_code: Option<u8>,
    /// The store's connection may be broken.
    pub(crate) doubts_store: bool,
    /// Why the store did not answer, if it did not.
    pub(crate) outage: Option<Outage>,
    /// Elsewhere in memory, because every handler returns a problem or something smaller.
    more: Box<More>,
}

/// Why a store does not answer, for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// Another process holds a lock.
    Locked,
    /// It cannot be reached.
    Unavailable,
}

impl Outage {
    fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Busy => Some(Self::Locked),
            Kind::Unavailable => Some(Self::Unavailable),
            Kind::Failed
            | Kind::HookFailed
            | Kind::Usage
            | Kind::Malformed
            | Kind::NotFound
            | Kind::Gone
            | Kind::Conflict
            | Kind::Full
            | Kind::Unknown
            | Kind::Corrupt
            | Kind::TimedOut => None,
        }
    }

    fn retry_after(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Locked => RETRY_AFTER_BUSY,
            Self::Unavailable => RETRY_AFTER_UNAVAILABLE,
        })
    }
}

/// What few problems have.
#[derive(Debug, Default)]
struct More {
    hint: Option<String>,
    ids: Vec<String>,
    errors: Vec<FieldError>,
    header: Option<(HeaderName, HeaderValue)>,
}

/// An error in one place of the body.
#[derive(Debug, Serialize)]
pub(crate) struct FieldError {
    /// A JSON pointer.
    pub(crate) pointer: String,
    pub(crate) detail: String,
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    r#type: String,
    title: String,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ids: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl Problem {
    pub(crate) fn new(status: StatusCode, name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            name,
            detail: detail.into(),
            exit_code: None,
            doubts_store: false,
            outage: None,
            more: Box::default(),
        }
    }

    /// A request that is understood and not valid.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self { exit_code: Some(2), ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "usage", detail) }
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self { exit_code: Some(4), ..Self::new(StatusCode::CONFLICT, "conflict", detail) }
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self { exit_code: Some(3), ..Self::new(StatusCode::NOT_FOUND, "not_found", detail) }
    }

    /// Too many requests of a kind at once; the same request succeeds later.
    pub(crate) fn too_many(detail: impl Into<String>, retry_after_seconds: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
        problem.with_header(RETRY_AFTER, retry_after_seconds.into())
    }

    /// The server has no room for the request now.
    pub(crate) fn overloaded(detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail);
        problem.with_header(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_BUSY))
    }

    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
            .with_hint("send `Authorization: Bearer TOKEN`; `queuectl dashboard token add` makes a token");
        problem.with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"queuectl\""))
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// A handler panicked. The message of the panic went to standard error.
    pub(crate) fn crashed() -> Self {
        let problem =
            Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "the request failed unexpectedly");
        Self { exit_code: Some(1), doubts_store: true, ..problem }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.more.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.more.errors = errors;
        self
    }

    pub(crate) fn with_allowed(self, methods: &str) -> Self {
        match HeaderValue::from_str(methods) {
            Ok(methods) => self.with_header(ALLOW, methods),
            Err(_) => self,
        }
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.more.header = Some((name, value));
        self
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.more.hint.as_deref()
    }

    /// The sentence and the hint, for a place that holds one line.
    pub(crate) fn line(&self) -> String {
        match &self.more.hint {
            Some(hint) => format!("{}; {hint}", self.detail),
            None => self.detail.clone(),
        }
    }
}

/// The status of each kind of error, the name of its type, and the exit code of the command line.
fn of_kind(kind: Kind) -> (StatusCode, &'static str, u8) {
    match kind {
        Kind::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "failed", 1),
        Kind::HookFailed => (StatusCode::BAD_GATEWAY, "hook_failed", 1),
        Kind::Usage => (StatusCode::UNPROCESSABLE_ENTITY, "usage", 2),
        Kind::Malformed => (StatusCode::BAD_REQUEST, "malformed", 2),
        Kind::NotFound => (StatusCode::NOT_FOUND, "not_found", 3),
        Kind::Gone => (StatusCode::GONE, "gone", 3),
        Kind::Conflict => (StatusCode::CONFLICT, "conflict", 4),
        Kind::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", 5),
        Kind::Full => (StatusCode::INSUFFICIENT_STORAGE, "full", 5),
        Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", 5),
        Kind::Unknown => (StatusCode::INTERNAL_SERVER_ERROR, "outcome_unknown", 6),
        Kind::Corrupt => (StatusCode::INTERNAL_SERVER_ERROR, "corrupt", 7),
        Kind::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "timed_out", 124),
    }
}

impl From<OpError> for Problem {
    fn from(error: OpError) -> Self {
        let (kind, hint) = judge(&error);
        let (status, name, exit_code) = of_kind(kind);
        let outage = Outage::of(kind);
        let header = outage.map(|outage| (RETRY_AFTER, outage.retry_after()));
        let ids = error.unacknowledged().iter().map(ToString::to_string).collect();
        Self {
            exit_code: Some(exit_code),
            more: Box::new(More { hint, ids, header, errors: Vec::new() }),
            doubts_store: status.is_server_error() && kind != Kind::Busy,
            outage,
            ..Self::new(status, name, chain(&error))
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        OpError::from(error).into()
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        let detail = chain(&error);
        match error {
            TokenError::Missing { nearest, .. } => {
                let hint = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
                hint.into_iter().fold(Self::not_found(detail), Self::with_hint)
            }
            TokenError::Taken(_) | TokenError::TooMany => Self::conflict(detail),
            TokenError::BadName { .. } => Self::invalid(detail),
            TokenError::Write(error) => error.into(),
            TokenError::Unreadable { .. }
            | TokenError::Malformed { .. }
            | TokenError::NotOwn(_)
            | TokenError::Exposed { .. }
            | TokenError::Random(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "tokens", detail),
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::WorkerLives { .. } | EngineError::CannotForget { .. } => {
                Self::conflict(chain(&error))
            }
            EngineError::System { .. }
            | EngineError::CannotMake { .. }
            | EngineError::NoChildrenList
            | EngineError::NoSupervisor
            | EngineError::DeclaredDead
            | EngineError::CannotStart { .. }
            | EngineError::GaveUp { .. } => {
                let (status, name, exit_code) = of_kind(Kind::Failed);
                Self { exit_code: Some(exit_code), ..Self::new(status, name, chain(&error)) }
            }
        }
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let json = ProblemJson {
            r#type: format!("{TYPES}{}", problem.name),
            title: problem.name.replace('_', " "),
            status: problem.status.as_u16(),
            detail: &problem.detail,
            hint: problem.more.hint.as_deref(),
            exit_code: problem.exit_code,
            ids: &problem.more.ids,
            errors: &problem.more.errors,
        };
        let text = to_json(&json).unwrap_or_default();
        let content_type = (CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let headers = std::iter::once(content_type).chain(problem.more.header).collect();
        Self { status: problem.status, headers, body: Body::Whole(text.into()) }
    }
}
