//! The settings: value, default and origin.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::cli;
use crate::problem::Problem;
use crate::request::query::encode;
use domain::text::hostile::printable;
use ops::config::{Setting, list};

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let settings = list(visit.store)?;
    Ok(View::new("Settings", Place::Settings).with("settings", "Settings", content(visit, &settings)))
}

fn content(visit: &Visit<'_>, settings: &[Setting]) -> Markup {
    html! {
        div .bar { h1 { "Settings" } span .note { "queuectl " (env!("CARGO_PKG_VERSION")) } (cli::copyable("queuectl config list")) }
        div .scroll {
            table .rows {
                thead { tr { th scope="col" { "setting" } th scope="col" { "value" } th scope="col" { "default" } th scope="col" { "origin" } } }
                tbody { @for setting in settings { (row(visit, setting)) } }
            }
        }
    }
}

fn row(visit: &Visit<'_>, setting: &Setting) -> Markup {
    let name = setting.key.name();
    let path = visit.url(&format!("/api/v1/config/{}", encode(name)));
    html! {
        tr id={ "s-" (name) } {
            td { code { (name) } }
            td {
                @if visit.may_administer() {
                    form .inline data-form {
                        input name="value" value=(setting.value) aria-label={ "Value of " (name) };
                        button type="submit" data-act="PUT" data-path=(path) data-cli=(cli::line(&["config", "set", name, &setting.value])) { "save" }
                    }
                } @else { code { (printable(&setting.value)) } }
            }
            td { code { (printable(&setting.default)) } }
            td { (setting.origin.name()) @if !setting.is_valid { " " span .note { "not valid" } } }
        }
    }
}
