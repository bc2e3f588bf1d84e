//! Conditional requests: weak entity tags over the bytes of an answer.

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use sha2::{Digest, Sha256};

use super::answer::{Answer, Body};
use crate::doors::secret::in_hex;
use crate::problem::Problem;

/// How many bytes of the hash make a tag.
const TAG_BYTES: usize = 12;

/// Adds the tag of a whole answer, or answers that the client has it already.
pub(crate) fn tagged(answer: Answer, headers: &HeaderMap) -> Answer {
    let Some(bytes) = answer.whole() else {
        return answer;
    };
    if answer.status != StatusCode::OK {
        return answer;
    }
    let tag = tag_of(bytes);
    if names(headers, &IF_NONE_MATCH, &tag) {
        let is_about_body = |name: &HeaderName| *name == CONTENT_TYPE || *name == CONTENT_LENGTH;
        let headers = answer.headers.into_iter().filter(|(name, _)| !is_about_body(name)).collect();
        let unchanged =
            Answer { status: StatusCode::NOT_MODIFIED, headers, body: Body::Whole(Vec::new().into()) };
        return unchanged.with(ETAG, &tag);
    }
    answer.with(ETAG, &tag)
}

/// Whether the request is to change only a certain version.
pub(crate) fn is_guarded(headers: &HeaderMap) -> bool {
    headers.contains_key(IF_MATCH)
}

/// Refuses a change of a version that the client has not seen.
pub(crate) fn check_match(headers: &HeaderMap, current: &Answer) -> Result<(), Problem> {
    let is_match = current.whole().is_some_and(|bytes| names(headers, &IF_MATCH, &tag_of(bytes)));
    if is_match {
        return Ok(());
    }
    let detail = "it was changed since the version that `If-Match` names";
    Err(Problem::new(StatusCode::PRECONDITION_FAILED, "changed", detail))
}

fn tag_of(bytes: &[u8]) -> String {
    format!("W/\"{}\"", in_hex(&Sha256::digest(bytes)[..TAG_BYTES]))
}

fn names(headers: &HeaderMap, header: &HeaderName, tag: &str) -> bool {
    let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).any(|known| known == "*" || known == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tag_gets_no_body_and_an_unknown_one_does() {
        let answer = || Answer::text(StatusCode::OK, "text/plain", "hello");
        let tag = tag_of(b"hello");
        for (sent, status) in [
            (tag.clone(), StatusCode::NOT_MODIFIED),
            (format!("W/\"x\", {tag}"), StatusCode::NOT_MODIFIED),
            ("*".to_owned(), StatusCode::NOT_MODIFIED),
            ("W/\"x\"".to_owned(), StatusCode::OK),
        ] {
            let headers = [(IF_NONE_MATCH, sent.parse().expect("a value"))].into_iter().collect();
            let answer = tagged(answer(), &headers);
            assert_eq!(answer.status, status, "{sent}");
            assert_eq!(answer.whole().is_some_and(axum::body::Bytes::is_empty), status != StatusCode::OK);
        }
        let headers = [(IF_MATCH, tag.parse().expect("a value"))].into_iter().collect();
        assert!(check_match(&headers, &answer()).is_ok());
        assert!(check_match(&headers, &Answer::text(StatusCode::OK, "text/plain", "hi")).is_err());
    }
}
