//! The tokens of programs. The command line alone adds one, so that its secret is in no browser.

use maud::{Markup, html};

use crate::doors::tokens::{Token, list};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::text::hostile::printable;

pub(super) fn content(visit: &Visit<'_>) -> Result<Markup, Problem> {
    if !visit.may_administer() {
        return Ok(html! { p .empty { "The tokens need the scope admin." } });
    }
    let tokens = list(&visit.server.options.location.home)?;
    Ok(html! {
        div .bar { p .note { "Programs call the API with a token. Its secret is shown once, when it is added." } (cli::copyable(&cli::typed("dashboard token list"))) }
        @if tokens.is_empty() {
            div .empty { p { "No token yet. This adds one that may only read:" } p { (cli::copyable(&cli::typed("dashboard token add ci --scope read"))) } }
        } @else {
            div .scroll {
                table .rows.cards {
                    thead { tr { th scope="col" { "token" } th scope="col" { "scope" } th scope="col" { "added" } th scope="col" { "by" } th scope="col" { "expires" } th scope="col" { span .hidden { "actions" } } } }
                    tbody { @for token in &tokens { (row(visit, token)) } }
                }
            }
        }
    })
}

fn row(visit: &Visit<'_>, token: &Token) -> Markup {
    let remove = Act {
        label: "remove",
        method: "DELETE",
        path: visit.url(&format!("/api/v1/tokens/{}", encode(&token.name))),
        ask: format!("Remove token {}? The server refuses it from now on.", token.name),
        cli: cli::line(&["dashboard", "token", "remove", &token.name]),
        then: visit.url("/settings?show=tokens"),
        is_final: true,
        ..Act::default()
    };
    html! {
        tr id={ "t-" (encode(&token.name)) } {
            td .id { (printable(&token.name)) }
            td data-label="scope" { (token.scope.name()) }
            td data-label="added" { (time::ago(visit.now, token.created_at)) }
            td data-label="by" { (printable(&token.created_by)) }
            td data-label="expires" {
                @match token.expires_at {
                    Some(at) if at <= visit.now => span .problem-word { "expired" },
                    Some(at) => (time::ago(visit.now, at)),
                    None => "never",
                }
            }
            td { div .actions { (remove.markup()) } }
        }
    }
}
