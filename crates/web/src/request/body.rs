//! The body of a request: its size, its type, and how deeply its JSON is nested.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::problem::Problem;
use ops::OpError;

/// The largest body, unless a route takes more.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;
/// How long a client may take to send its body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How deeply JSON may be nested.
const MAX_DEPTH: usize = 64;

/// Reads the body within its limits.
pub(crate) async fn read(body: axum::body::Body, limit: usize) -> Result<Bytes, Problem> {
    let read = timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await;
    let Ok(read) = read else {
        return Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow_body",
            "the body took too long to arrive",
        ));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format!("the body is longer than {limit} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail))
        }
        Err(_) => Err(Problem::new(StatusCode::BAD_REQUEST, "malformed", "the body ended early")),
    }
}

/// Accepts a body only as JSON: a form of another site cannot send that without asking first.
pub(crate) fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = sent.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", "the body must be JSON");
    Err(problem.with_hint("send `Content-Type: application/json`"))
}

/// The value of a JSON body.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    check_depth(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| OpError::from(error).into())
}

/// The JSON parser has a higher limit, and our own code may recurse over what it accepts.
pub(crate) fn check_depth(bytes: &[u8]) -> Result<(), Problem> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let detail = format!("the JSON is nested more than {MAX_DEPTH} levels deep");
            return Err(Problem::new(StatusCode::BAD_REQUEST, "malformed", detail));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(check_depth(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(check_depth(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(check_depth(nested(100_000).as_bytes()).is_err());
        assert!(check_depth(format!("\"{}\\\"{}\"", "[".repeat(99), "{".repeat(99)).as_bytes()).is_ok());
        assert!(check_depth("[],".repeat(1_000).as_bytes()).is_ok());
    }
}
