//! The text of `queuectl --help`: the verbs in groups, because one list would be too long to read.

use std::fmt::Write;

use clap::Command;

use crate::verbs::GROUPS;

/// clap adds the verb `help` by itself and gives it no text here.
pub(crate) const HELP: &str = "help";
/// The name of the root of all verbs.
pub(crate) const PROGRAM: &str = "queuectl";
const ABOUT_HELP: &str = "Print this help, or the help of a command";

/// clap's text for the verb `help` of a verb such as `worker`.
const CLAP_ABOUT_HELP: &str = "Print this message or the help of the given subcommand(s)";

/// Replaces clap's text for the verb `help`, which it does not let a program choose.
pub(crate) fn with_own_about_of_help(text: &str) -> String {
    text.replace(CLAP_ABOUT_HELP, ABOUT_HELP)
}

/// Replaces the flat list of verbs in the help by groups.
pub(crate) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let groups = groups(&command);
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{header}Global options:{header:#}\n{{options}}{{after-help}}"
    ))
}

fn groups(command: &Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let width = shown().flat_map(|(_, names)| names).map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, names) in shown() {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for name in names {
            let about = about(command, name);
            let _ = writeln!(text, "  {literal}{name}{literal:#}{:1$}  {about}", "", width - name.len());
        }
        text.push('\n');
    }
    text
}

/// The headings, each with the names of its verbs. The last group also has the verb that clap adds.
pub(crate) fn shown() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let groups = GROUPS.iter().filter_map(|group| Some((group.heading?, group.verbs)));
    let last = groups.clone().count() - 1;
    groups.enumerate().map(move |(at, (heading, verbs))| {
        let help = (at == last).then_some(HELP);
        (heading, verbs.iter().map(|verb| verb.name()).chain(help).collect())
    })
}

pub(crate) fn about(command: &Command, verb: &str) -> String {
    let known =
        command.find_subcommand(verb).filter(|verb| verb.get_name() != HELP).and_then(Command::get_about);
    known.map_or_else(|| ABOUT_HELP.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::whole;

    #[test]
    fn each_verb_fits_in_80_columns() {
        let help = grouped(whole()).render_help().to_string();
        for line in groups(&whole()).lines() {
            let line = anstream::adapter::strip_str(line).to_string();
            assert!(line.chars().count() <= 80, "too long: {line}");
            assert!(help.contains(&line), "{line} is missing in {help}");
        }
    }
}
