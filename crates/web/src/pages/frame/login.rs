//! The login page: its script sends the code of the link.

#![expect(clippy::unnecessary_wraps, reason = "a handler may fail; this cannot")]

use maud::html;

use crate::pages::frame;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;

pub(in crate::pages) fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let content = html! {
        p #message role="status" { "Logging in …" }
        noscript {
            p { "The login needs scripts. Programs use a token: " code { "queuectl dashboard token add NAME" } "." }
        }
    };
    Ok(frame::bare(call.server, "Log in", Some("login.js"), &content))
}
