//! The command that does the same as a filter or a button, ready to be copied.

use maud::{Markup, html};

use domain::text::hostile::printable;
use domain::text::shell::quote_words;

/// A command line of these words.
pub(crate) fn line(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    format!("queuectl {}", quote_words(&words))
}

/// The line, with a button that copies it.
pub(crate) fn copyable(line: &str) -> Markup {
    html! {
        span .cli {
            code { (printable(line)) }
            button type="button" data-copy=(line) title="Copy this command" aria-label="Copy this command" { "copy" }
        }
    }
}

/// A place that a script fills with a command, with a button that copies it.
pub(crate) fn block(shows: &str) -> Markup {
    html! {
        div .cli-block {
            pre .cli data-shows=(shows) {}
            button type="button" data-copy aria-label="Copy this command" { "copy" }
        }
    }
}

/// A sentence whose parts in backticks are code.
pub(crate) fn with_code(sentence: &str) -> Markup {
    html! {
        @for (at, part) in sentence.split('`').enumerate() {
            @if at % 2 == 1 { code { (printable(part)) } } @else { (printable(part)) }
        }
    }
}
