//! A row of the table of routes. The router, the scopes, the checks of parameters and bodies, and the OpenAPI document
//! come from it.

use std::sync::Arc;

use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::body::MAX_BODY_BYTES;
use crate::request::call::{Call, Parts};
use crate::request::query::Param;
use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// `GET` changes nothing, and every other method may.
    pub(crate) fn changes(self) -> bool {
        match self {
            Self::Get => false,
            Self::Post | Self::Put | Self::Patch | Self::Delete => true,
        }
    }

    /// As HTTP writes it.
    pub(crate) fn in_capitals(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// As OpenAPI writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// Runs on a thread that may block, and answers at once.
    Whole(fn(&Call<'_>) -> Result<Answer, Problem>),
    /// Answers piece by piece.
    Stream(fn(&Arc<Server>, Parts) -> Result<Answer, Problem>),
}

/// The media types of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Produces {
    Json,
    Text,
    Html,
    Events,
}

impl Produces {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain",
            Self::Html => "text/html",
            Self::Events => "text/event-stream",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Parts in braces are parameters.
    pub(crate) path: &'static str,
    /// `None` needs neither a token nor a session.
    pub(crate) scope: Option<Scope>,
    pub(crate) handler: Handler,
    /// One sentence for the document.
    pub(crate) about: &'static str,
    pub(crate) query: &'static [&'static [Param]],
    /// The schema of the body, if it takes one.
    pub(crate) body: Option<&'static str>,
    pub(crate) is_body_optional: bool,
    pub(crate) max_body: usize,
    /// The schema of the answer: a name, or a name with `[]` for an array.
    pub(crate) answer: Option<&'static str>,
    pub(crate) status: u16,
    /// Further statuses, beside those that every route can have.
    pub(crate) failures: &'static [u16],
    pub(crate) produces: &'static [Produces],
    /// Guesses are counted.
    pub(crate) is_login: bool,
}

impl Route {
    const fn new(method: Method, path: &'static str, scope: Option<Scope>, handler: Handler) -> Self {
        Self {
            method,
            path,
            scope,
            handler,
            about: "",
            query: &[],
            body: None,
            is_body_optional: false,
            max_body: MAX_BODY_BYTES,
            answer: None,
            status: 200,
            failures: &[],
            produces: &[Produces::Json],
            is_login: false,
        }
    }

    pub(crate) const fn get(
        path: &'static str,
        scope: Scope,
        run: fn(&Call<'_>) -> Result<Answer, Problem>,
    ) -> Self {
        Self::new(Method::Get, path, Some(scope), Handler::Whole(run))
    }

    /// Whether the caller is known or not.
    pub(crate) const fn open(
        method: Method,
        path: &'static str,
        run: fn(&Call<'_>) -> Result<Answer, Problem>,
    ) -> Self {
        Self::new(method, path, None, Handler::Whole(run))
    }

    pub(crate) const fn stream(
        path: &'static str,
        scope: Scope,
        start: fn(&Arc<Server>, Parts) -> Result<Answer, Problem>,
    ) -> Self {
        let route = Self::new(Method::Get, path, Some(scope), Handler::Stream(start));
        route.producing(&[Produces::Events])
    }

    pub(crate) const fn change(
        method: Method,
        path: &'static str,
        scope: Scope,
        run: fn(&Call<'_>) -> Result<Answer, Problem>,
    ) -> Self {
        Self::new(method, path, Some(scope), Handler::Whole(run))
    }

    pub(crate) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    pub(crate) const fn takes(self, query: &'static [&'static [Param]]) -> Self {
        Self { query, ..self }
    }

    pub(crate) const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    pub(crate) const fn optional_body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_body_optional: true, ..self }
    }

    pub(crate) const fn max_body(self, bytes: usize) -> Self {
        Self { max_body: bytes, ..self }
    }

    pub(crate) const fn answers(self, status: u16, schema: &'static str) -> Self {
        Self { status, answer: Some(schema), ..self }
    }

    pub(crate) const fn answers_nothing(self) -> Self {
        Self { status: 204, produces: &[], ..self }
    }

    pub(crate) const fn fails(self, failures: &'static [u16]) -> Self {
        Self { failures, ..self }
    }

    pub(crate) const fn producing(self, produces: &'static [Produces]) -> Self {
        Self { produces, ..self }
    }

    pub(crate) const fn login(self) -> Self {
        Self { is_login: true, ..self }
    }

    /// Whether programs call it; the others are pages and their parts.
    pub(crate) fn is_of_api(&self) -> bool {
        !crate::pages::ROUTES.iter().any(|page| page.path == self.path)
    }

    /// Its method and path, for metrics.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.method.in_capitals(), self.path)
    }

    /// Whether a path without the base path has the shape of this one.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let (mut own, mut given) = (self.path.split('/'), path.split('/'));
        loop {
            match (own.next(), given.next()) {
                (None, None) => return true,
                (Some(own), Some(given)) if own == given || own.starts_with('{') => {}
                (Some(_) | None, Some(_)) | (Some(_), None) => return false,
            }
        }
    }
}
