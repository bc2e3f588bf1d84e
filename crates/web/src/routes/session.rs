//! Logging a browser in and out.

use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use serde::{Deserialize, Serialize};

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::server::wall_now;

pub(crate) const ROUTES: &[Route] = &[
    Route::open(Method::Post, "/api/v1/session", begin)
        .about("Logs a browser in with the code of a login link; the answer sets the cookie.")
        .body("Login")
        .answers(201, "Session")
        .fails(&[401, 429])
        .login(),
    Route::change(Method::Delete, "/api/v1/session", Scope::Read, end)
        .about("Ends the session.")
        .answers_nothing(),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    code: String,
}

#[derive(Serialize)]
struct SessionJson<'a> {
    /// To be sent with every change.
    token: &'a str,
}

fn begin(call: &Call<'_>) -> Result<Answer, Problem> {
    let login: Login = call.body()?;
    if !call.server.codes.take(&login.code, wall_now()) {
        call.server.attempts.record(call.parts.address);
        return Err(Problem::unauthenticated("the code is not valid, or was used before")
            .with_hint("`queuectl dashboard link` prints a new link"));
    }
    let session = call.server.sessions.begin().map_err(|error| Problem::invalid(error.to_string()))?;
    let answer = Answer::json(&SessionJson { token: &session.token })?.with_status(StatusCode::CREATED);
    Ok(answer.with(SET_COOKIE, &cookie(call, &session.cookie, "")))
}

fn end(call: &Call<'_>) -> Result<Answer, Problem> {
    let session = call.parts.caller.session;
    call.server.sessions.end(&session.ok_or_else(|| Problem::invalid("there is no session to end"))?);
    Ok(Answer::empty().with(SET_COOKIE, &cookie(call, "", "; Max-Age=0")))
}

fn cookie(call: &Call<'_>, value: &str, more: &str) -> String {
    let options = &call.server.options;
    let secure = if options.tls.is_some() { "; Secure" } else { "" };
    let (name, path) = (call.server.cookie_name(), options.base_path.or_root());
    format!("{name}={value}; HttpOnly; SameSite=Strict; Path={path}{secure}{more}")
}
