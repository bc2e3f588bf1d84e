//! The settings: value, default, origin and meaning; the tokens of programs; what `doctor` finds; what this program is.

mod about;
mod tokens;

use maud::{Markup, html};

use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::cli;
use crate::problem::Problem;
use crate::request::query::{Param, encode};
use domain::text::hostile::printable;
use ops::config::{Setting, SettingOrigin, list};

pub(in crate::pages) const PARAMS: &[Param] =
    &[Param::new("show", r#"{"enum":["settings","tokens","doctor","about"]}"#, "What is shown")];

const PARTS: [&str; 4] = ["settings", "tokens", "doctor", "about"];

pub(in crate::pages) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let part = visit.query.get("show").unwrap_or(PARTS[0]);
    let content = match part {
        "settings" => settings(visit, &list(visit.store)?),
        "tokens" => tokens::content(visit)?,
        "doctor" => about::doctor(visit),
        "about" => about::program(visit)?,
        other => {
            return Err(
                Problem::invalid(format!("nothing is shown as `{other}`")).with_hint(PARTS.join(", "))
            );
        }
    };
    let view = View::new("Settings", Place::Settings).with_script("forms.js");
    Ok(view.with("parts", "Parts of the settings", choice(visit, part)).with("settings", "Settings", content))
}

fn choice(visit: &Visit<'_>, part: &str) -> Markup {
    html! {
        div .bar {
            h1 { "Settings" }
            nav .ranges aria-label="Part" {
                @for known in PARTS {
                    a href=(visit.url(&format!("/settings?show={known}"))) aria-current=[(known == part).then_some("true")] { (known) }
                }
            }
        }
    }
}

fn settings(visit: &Visit<'_>, settings: &[Setting]) -> Markup {
    html! {
        div .bar {
            p .note { "Workers adopt a change within a second. " (changed(settings)) " of " (settings.len()) " differ from their default." }
            (cli::copyable(&cli::typed("config list")))
        }
        div .scroll {
            table .rows.settings.cards {
                thead { tr { th scope="col" { "setting" } th scope="col" { "value" } th scope="col" { "default" } th scope="col" { "origin" } th scope="col" { "meaning" } } }
                tbody { @for setting in settings { (row(visit, setting)) } }
            }
        }
    }
}

fn changed(settings: &[Setting]) -> usize {
    settings.iter().filter(|setting| setting.origin == SettingOrigin::Store).count()
}

fn row(visit: &Visit<'_>, setting: &Setting) -> Markup {
    let name = setting.key.name();
    html! {
        tr id={ "s-" (name) } .changed[setting.origin == SettingOrigin::Store] {
            td { code { (name) } }
            td data-label="value" { @if visit.may_administer() { (change(visit, setting)) } @else { code { (printable(&setting.value)) } } }
            td data-label="default" { code { (printable(&setting.default)) } }
            td data-label="origin" { (setting.origin.name()) @if !setting.is_valid { " " span .problem-word { "not valid" } } }
            td .meaning data-label="meaning" { (setting.key.about()) }
        }
    }
}

/// A field whose value is checked while it is typed, and the way back to the default.
fn change(visit: &Visit<'_>, setting: &Setting) -> Markup {
    let name = setting.key.name();
    let path = visit.url(&format!("/api/v1/config/{}", encode(name)));
    let reset = Act {
        label: "reset",
        method: "DELETE",
        path: path.clone(),
        cli: cli::line(&["config", "unset", name]),
        ..Act::default()
    };
    html! {
        form .inline data-make=(path) data-method="PUT" data-command=(cli::line(&["config", "set", name])) {
            input name="value" data-flag="" value=(setting.value) aria-label={ "Value of " (name) } aria-describedby={ "check-" (name) }
                data-check={ "/api/v1/config/" (name) "/check" } autocomplete="off" spellcheck="false";
            button type="submit" aria-label={ "Save " (name) } { "save" }
            @if setting.origin == SettingOrigin::Store { (reset.markup()) }
        }
        p .check id={ "check-" (name) } role="status" {}
    }
}
