//! Forms that create something. `forms.js` builds the body of the call from the names of the fields, where a dot leads into
//! an object, and shows the command line and the call that do the same.

use maud::{Markup, html};

use super::cli;

/// What a form does.
pub(crate) struct Form<'a> {
    /// The path of the API, with the base path.
    pub(crate) path: String,
    /// The beginning of the command line: `queuectl schedule add`.
    pub(crate) command: &'a str,
    /// Where to go afterwards; the answer's field in braces is filled in.
    pub(crate) then: String,
    pub(crate) submit: &'a str,
    /// The path that previews the times, if there are any.
    pub(crate) preview: Option<String>,
}

/// A field of one line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field<'a> {
    pub(crate) label: &'a str,
    /// The path in the body.
    pub(crate) name: &'a str,
    /// The flag of the command line; empty for an argument without one.
    pub(crate) flag: &'a str,
    /// How the text becomes JSON, as `forms.js` says; empty for text, and `query` for a parameter of the call.
    pub(crate) kind: &'a str,
    /// The flag that says the same as a field that was emptied; empty for its own flag with `none`.
    pub(crate) none: &'a str,
    pub(crate) placeholder: &'a str,
    pub(crate) value: &'a str,
    pub(crate) is_required: bool,
}

impl Field<'_> {
    pub(crate) fn markup(&self) -> Markup {
        let kind = if self.kind == "number" { "number" } else { "text" };
        html! {
            label {
                span { (self.label) }
                input name=(self.name) data-flag=(self.flag) data-kind=[given(self.kind)] data-none=[given(self.none)] type=(kind) value=(self.value)
                    placeholder=[given(self.placeholder)] required[self.is_required] autocomplete="off";
            }
        }
    }

    /// The same with several lines.
    pub(crate) fn lines(&self, rows: u8) -> Markup {
        html! {
            label .broad {
                span { (self.label) }
                textarea name=(self.name) data-flag=(self.flag) data-kind=[given(self.kind)] rows=(rows)
                    placeholder=[given(self.placeholder)] required[self.is_required] spellcheck="false" { (self.value) }
            }
        }
    }

    /// A choice of words that are sent as they are.
    pub(crate) fn pick(&self, choices: &[&str]) -> Markup {
        html! {
            label {
                span { (self.label) }
                select name=(self.name) data-flag=(self.flag) {
                    @for choice in choices { option value=(choice) selected[*choice == self.value] { (choice) } }
                }
            }
        }
    }

    /// A choice; the first is the default and is not sent.
    pub(crate) fn choice(&self, choices: &[&str]) -> Markup {
        html! {
            label {
                span { (self.label) }
                select name=(self.name) data-flag=(self.flag) {
                    @for (at, choice) in choices.iter().enumerate() {
                        option value=(if at == 0 { "" } else { choice }) selected[*choice == self.value] { (choice) }
                    }
                }
            }
        }
    }
}

/// The places for the command line and the call that do the same as a form.
pub(crate) fn same() -> Markup {
    html! {
        p .caption { "The same on the command line" }
        (cli::block("cli"))
        (same_call())
    }
}

/// As [`same`], for what the command line does not have.
pub(crate) fn same_call() -> Markup {
    html! {
        p .caption { "The same over HTTP" }
        (cli::block("curl"))
    }
}

/// The place for what the server has against a form.
pub(crate) fn problem() -> Markup {
    html! { p .problem role="alert" data-shows="problem" hidden {} }
}

/// The form that pauses something, with a reason.
pub(crate) fn pause(path: &str, command: &str, effect: &Markup) -> Markup {
    let reason = Field {
        label: "why (the others see it)",
        name: "reason",
        flag: "--reason",
        placeholder: "smtp is down",
        ..Field::default()
    };
    html! {
        form .line data-make=(path) data-command=(command) {
            (reason.markup())
            button type="submit" { "pause" }
            p .effect { (effect) }
            (problem())
            (same())
        }
    }
}

fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

impl Form<'_> {
    pub(crate) fn markup(&self, fields: &Markup) -> Markup {
        html! {
            form .make data-make=(self.path) data-command=(self.command) data-then=(self.then) data-preview=[self.preview.as_deref()] {
                div .wide { (fields) }
                @if self.preview.is_some() { div .preview role="status" data-shows="preview" {} }
                (problem())
                p .actions { button .primary type="submit" { (self.submit) } }
                (same())
            }
        }
    }
}
