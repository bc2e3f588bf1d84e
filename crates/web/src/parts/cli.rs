//! The command that does the same as a filter or a button, ready to be copied.

use std::sync::OnceLock;

use maud::{Markup, html};

use super::time;
use domain::text::hostile::printable;
use domain::text::shell::quote_words;
use domain::values::timestamp::Timestamp;
use ops::home::location::{Location, LocationArgs, named_home, named_store};

/// How every command line begins. A process serves one queue.
static PROGRAM: OnceLock<String> = OnceLock::new();
const PLAIN: &str = "queuectl";

/// From now on command lines name the home and the store as far as `queuectl` without flags would use others.
pub(crate) fn name_queue(location: &Location, args: &LocationArgs) {
    PROGRAM.get_or_init(|| program_for(location, args));
}

fn program_for(location: &Location, args: &LocationArgs) -> String {
    let mut words = vec![PLAIN.to_owned()];
    if named_home(args).is_some() {
        words.extend(["--home".to_owned(), location.home.display().to_string()]);
    }
    // The address is shown without its password.
    if named_store(args).is_ok_and(|named| named.is_some()) {
        words.extend(["--store".to_owned(), location.store.to_string()]);
    }
    quote_words(&words)
}

/// The program with the flags that lead to this queue: `queuectl --home /srv/queue`.
pub(crate) fn program() -> &'static str {
    PROGRAM.get().map_or(PLAIN, String::as_str)
}

/// A command line of these words.
pub(crate) fn line(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    format!("{} {}", program(), quote_words(&words))
}

/// A command line that is written as it is typed, after `queuectl`.
pub(crate) fn typed(rest: &str) -> String {
    format!("{} {rest}", program())
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

/// A sentence whose parts in backticks are code, and whose times are shown like all others.
pub(crate) fn sentence(now: Timestamp, text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (printable(&with_program(part))) } } @else { (with_times(now, part)) }
        }
    }
}

/// A command of a sentence, as [`line()`] has it.
fn with_program(code: &str) -> String {
    code.strip_prefix("queuectl ").map_or_else(|| code.to_owned(), typed)
}

/// A text whose times in RFC 3339 are elements, so that the reader sees them in their own zone.
pub(crate) fn with_times(now: Timestamp, text: &str) -> Markup {
    html! {
        @for word in text.split_inclusive([' ', '(', ')', ',', ';']) {
            @match word.get(..TIME_LENGTH).filter(|word| word.ends_with('Z')).and_then(|word| word.parse().ok()) {
                Some(at) => { (time::clock(now, at)) (printable(&word[TIME_LENGTH..])) },
                None => (printable(word)),
            }
        }
    }
}

/// The length of `2026-11-17T01:30:00.000Z`.
const TIME_LENGTH: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_was_named_is_named_in_every_command() {
        let home = std::path::PathBuf::from("/srv/my queue");
        let args = LocationArgs { home: Some(home.clone()), store: None };
        let location = ops::home::location::locate(&args).expect("a location");
        assert_eq!(program_for(&location, &args), "queuectl --home '/srv/my queue'");
        let store = Some("postgres://jobs:secret@db.example/jobs".into());
        let args = LocationArgs { home: Some(home), store };
        let location = ops::home::location::locate(&args).expect("a location");
        let shown = program_for(&location, &args);
        assert!(shown.contains(" --store ") && shown.contains("db.example"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn times_of_a_sentence_are_elements() {
        let now: Timestamp = "2026-11-17T01:00:00Z".parse().expect("a time");
        let text = "it runs at 2026-11-17T01:30:00.000Z (in 30m); `queuectl show é` 2026-11-17T01:30:00.00é";
        let shown = sentence(now, text).into_string();
        assert!(shown.contains(">01:30:00</time> (in 30m); <code>queuectl show é</code>"), "{shown}");
        assert_eq!(shown.matches("<time").count(), 1, "{shown}");
    }
}
