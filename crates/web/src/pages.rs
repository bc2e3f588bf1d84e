//! The plain pages: where the API is, and the login.

#![expect(clippy::unnecessary_wraps, reason = "a handler may fail; these cannot")]

use axum::http::StatusCode;

use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::routes::table::{Method, Produces, Route};

const HTML: &str = "text/html; charset=utf-8";

pub(crate) const ROUTES: &[Route] = &[
    Route::open(Method::Get, "/", home).about("Says where the API is.").producing(&[Produces::Html]),
    Route::open(Method::Get, "/login", login)
        .about("Logs a browser in with the code in the fragment.")
        .producing(&[Produces::Html]),
    Route::open(Method::Get, "/login.js", login_script)
        .about("The script of the login page.")
        .producing(&[Produces::Script]),
];

/// Fills the base path into a page. It consists of characters that need no escaping.
fn page(call: &Call<'_>, text: &str) -> Answer {
    let base = call.server.options.base_path.to_string();
    Answer::text(StatusCode::OK, HTML, text.replace("{base}", &base))
}

fn home(call: &Call<'_>) -> Result<Answer, Problem> {
    Ok(page(call, include_str!("pages/home.html")))
}

fn login(call: &Call<'_>) -> Result<Answer, Problem> {
    Ok(page(call, include_str!("pages/login.html")))
}

fn login_script(_: &Call<'_>) -> Result<Answer, Problem> {
    let script = include_str!("pages/login.js");
    Ok(Answer::text(StatusCode::OK, "text/javascript; charset=utf-8", script))
}
