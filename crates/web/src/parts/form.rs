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
    /// How the text becomes JSON: `number`, `list`, `time` or `pairs`; empty for text, and `query` for a parameter of the call.
    pub(crate) kind: &'a str,
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
                input name=(self.name) data-flag=(self.flag) data-kind=[given(self.kind)] type=(kind) value=(self.value)
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

fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

impl Form<'_> {
    pub(crate) fn markup(&self, fields: &Markup) -> Markup {
        html! {
            form .make data-make=(self.path) data-command=(self.command) data-then=(self.then) data-preview=[self.preview.as_deref()] {
                div .wide { (fields) }
                @if self.preview.is_some() { div .preview role="status" data-shows="preview" {} }
                p .problem role="alert" data-shows="problem" hidden {}
                p .actions { button .primary type="submit" { (self.submit) } }
                p .caption { "The same on the command line" }
                (cli::block("cli"))
                p .caption { "The same over HTTP" }
                (cli::block("curl"))
            }
        }
    }
}
