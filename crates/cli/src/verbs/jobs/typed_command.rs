//! The command as it was typed, and mistakes in commands and JSON that can be recognised.

use std::path::Path;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::each::ARGUMENTS;
use crate::render::text::printable;
use domain::job::spec::JobSpec;
use domain::text::shell::quote_words;
use ops::OpError;

/// For JSON whose quotes the shell removed.
pub(crate) const HOW_TO_QUOTE_JSON: &str = "the shell may have removed the quotes: put the whole JSON in single quotes, \
     as in '{\"command\":\"make test\"}', or use flags: --command \"make test\"";

/// Characters that mean something to a shell only.
const SHELL_OPERATORS: [char; 9] = ['|', '&', ';', '<', '>', '(', ')', '$', '`'];

pub(crate) fn begins_json(word: &str) -> bool {
    word.trim_start().starts_with(['{', '['])
}

/// The failure for JSON that was given as an argument.
pub(crate) fn bad_json(json: &str, error: serde_json::Error) -> Failure {
    // An error within a field is an error of its data, also if the JSON ends there.
    let is_cut = error.is_eof() || error.to_string().contains("EOF while parsing");
    let lacks_quotes = is_cut || !error.is_data() && !json.contains('"');
    let failure = Failure::from(OpError::from(error));
    if lacks_quotes { failure.with_hint(HOW_TO_QUOTE_JSON) } else { failure }
}

/// Whether every word begins with the name of a field, as in `id:a command:b`.
pub(crate) fn looks_like_split_json<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let fields: Vec<&str> = words.map(|word| word.split_once(':').map_or("", |(field, _)| field)).collect();
    let are_known = || fields.iter().all(|field| JobSpec::field_names().contains(field));
    fields.len() > 1 && fields.contains(&"command") && are_known()
}

/// The command, given by `--command` or as words after `--`. `hint` shows how to give it.
pub(crate) fn one_command(
    context: &Context,
    flag: Option<String>,
    words: &[String],
    hint: &str,
) -> Result<String, Failure> {
    given_command(context, flag, words)?.ok_or_else(|| Failure::usage("no command given").with_hint(hint))
}

/// The command if it is given, by `--command` or as words after `--`.
pub(crate) fn given_command(
    context: &Context,
    flag: Option<String>,
    words: &[String],
) -> Result<Option<String>, Failure> {
    match (flag, words.is_empty()) {
        (flag, true) => Ok(flag),
        (None, false) => {
            hint_one_word(context, words)?;
            hint_arguments(context, words)?;
            Ok(Some(quote_words(words)))
        }
        (Some(_), false) => Err(Failure::usage("the command is given in more than one way")
            .with_hint("use either --command or words after --")),
    }
}

/// Prints a hint if the words after `--` are a line for the shell in one word, and no program has that name.
pub(crate) fn hint_one_word(context: &Context, words: &[String]) -> Result<(), Failure> {
    let [word] = words else {
        return Ok(());
    };
    if !word.contains(|c: char| c.is_whitespace() || SHELL_OPERATORS.contains(&c)) || is_program(word) {
        return Ok(());
    }
    context.hint(&format!(
        "`{}` is one word after --, so the shell looks for a program of that name; for a shell line use --command",
        printable(word)
    ))
}

/// Prints a hint if the words look like a sweep without `--each`. The command may also be a sweep itself, or GNU parallel.
fn hint_arguments(context: &Context, words: &[String]) -> Result<(), Failure> {
    let has_arguments = words.iter().any(|word| word == ARGUMENTS);
    let is_sweep = || words.iter().any(|word| word == "--each" || word.ends_with("parallel"));
    if !has_arguments || is_sweep() {
        return Ok(());
    }
    context.hint("`:::` is an argument of the command; to make a job for each word after it, add --each before the command")
}

fn is_program(word: &str) -> bool {
    if word.contains('/') {
        return Path::new(word).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(word).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_all_begin_with_fields_look_like_split_json() {
        for (words, expected) in [
            (&["id:a", "command:sleep 2"][..], true),
            (&["command:a", "priority:5"], true),
            (&["command:a"], false),
            (&["id:a", "queue:b"], false),
            (&["command:a", "b"], false),
            (&["make", "test"], false),
            (&[], false),
        ] {
            assert_eq!(looks_like_split_json(words.iter().copied()), expected, "{words:?}");
        }
    }
}
