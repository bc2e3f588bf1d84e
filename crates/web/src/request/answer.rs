//! The answer to a request.

use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::pieces::Pieces;
use crate::problem::Problem;
use ops::escape::to_json;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Whole(Bytes),
    /// Written piece by piece, for as long as the client reads.
    Pieces(Pieces),
}

impl Answer {
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, Problem> {
        let text = to_json(value).map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(Self::text(StatusCode::OK, "application/json", text))
    }

    pub(crate) fn text(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Self {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))];
        Self { status, headers, body: Body::Whole(text.into()) }
    }

    pub(crate) fn empty() -> Self {
        Self { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Body::Whole(Bytes::new()) }
    }

    pub(crate) fn pieces(content_type: &'static str, pieces: Pieces) -> Self {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))];
        Self { status: StatusCode::OK, headers, body: Body::Pieces(pieces) }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Adds a header; a value that cannot stand in one is left out.
    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// Names the resource that was created.
    pub(crate) fn at(self, path: &str) -> Self {
        self.with(LOCATION, path)
    }

    /// Names the next page.
    pub(crate) fn with_next(self, url: &str) -> Self {
        self.with(LINK, &format!("<{url}>; rel=\"next\""))
    }

    /// The body, unless it is written piece by piece.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Whole(bytes) => Some(bytes),
            Body::Pieces(_) => None,
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let body = match self.body {
            Body::Whole(bytes) => axum::body::Body::from(bytes),
            Body::Pieces(pieces) => axum::body::Body::new(pieces),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}
