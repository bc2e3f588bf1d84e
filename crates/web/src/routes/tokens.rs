//! Tokens of programs: listing and removing them. The command line alone adds them, so no secret crosses the network.

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::doors::tokens;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/tokens", Scope::Admin, list)
        .about("The tokens of programs, without their secrets.")
        .answers(200, "Token[]"),
    Route::change(Method::Delete, "/api/v1/tokens/{token}", Scope::Admin, remove)
        .about("Removes a token; the server refuses it from now on.")
        .answers_nothing()
        .fails(&[404]),
];

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&tokens::list(&call.server.options.location.home)?)
}

fn remove(call: &Call<'_>) -> Result<Answer, Problem> {
    let name = call.param("token");
    tokens::remove(&call.server.options.location.home, name)?;
    call.store()?.note("token_remove", call.by(), name)?;
    Ok(Answer::empty())
}
