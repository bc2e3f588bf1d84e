//! Problems as pages, for a browser.

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use maud::{Markup, html};

use crate::pages::frame;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::server::Server;
use domain::text::hostile::printable;

/// Whether the client is a browser that opens a page.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.split(',').any(|range| range.trim().starts_with("text/html")))
}

/// The problem as a page with the same status and headers.
pub(crate) fn page(server: &Server, problem: Problem) -> Answer {
    let content = explained(server, &problem);
    let title = problem.status.canonical_reason().unwrap_or("Problem");
    let page = frame::bare(server, title, None, &content);
    let plain = Answer::from(problem);
    let kept = plain.headers.into_iter().filter(|(name, _)| *name != axum::http::header::CONTENT_TYPE);
    Answer { status: plain.status, headers: page.headers.into_iter().chain(kept).collect(), body: page.body }
}

fn explained(server: &Server, problem: &Problem) -> Markup {
    let home = server.options.base_path.join("/");
    let jobs = server.options.base_path.join("/jobs");
    html! {
        p .problem role="alert" { (printable(problem.detail())) }
        @if problem.status == StatusCode::UNAUTHORIZED {
            p { "A browser logs in with the link that this command prints. It is valid once, for five minutes." }
            pre .cli { "queuectl dashboard link" }
        } @else {
            @if let Some(hint) = problem.hint() { p { (printable(hint)) } }
            p { a href=(home) { "Overview" } " · " a href=(jobs) { "Jobs" } }
        }
    }
}
