//! The text of `queuectl --help`: the verbs in groups, because one list would be too long to read.

use std::fmt::Write;

use clap::Command;

/// Every verb that is not hidden, in the order in which users need them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Jobs", &["enqueue", "run", "schedule", "batch"]),
    ("Inspect", &["status", "list", "show", "explain", "logs", "wait", "graph", "events"]),
    ("Manage", &["cancel", "retry", "edit", "remove", "dlq"]),
    ("Workers and settings", &["worker", "queue", "config", "hook"]),
    (
        "Maintenance",
        &[
            "init",
            "doctor",
            "prune",
            "backup",
            "restore",
            "export",
            "import",
            "selftest",
            "completions",
            "help",
        ],
    ),
];

/// clap adds the verb `help` by itself and gives it no text here.
const ABOUT_HELP: &str = "Print this help, or the help of a command";

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
    let width = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for verb in verbs {
            let about = about(command, verb);
            let _ = writeln!(text, "  {literal}{verb}{literal:#}{:1$}  {about}", "", width - verb.len());
        }
        text.push('\n');
    }
    text
}

fn about(command: &Command, verb: &str) -> String {
    let known = command.find_subcommand(verb).and_then(Command::get_about);
    known.map_or_else(|| ABOUT_HELP.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::root::Cli;

    #[test]
    fn every_verb_is_in_exactly_one_group() {
        let command = Cli::command();
        let mut verbs: Vec<&str> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .chain(["help"])
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn each_verb_fits_in_80_columns() {
        let help = grouped(Cli::command()).render_help().to_string();
        for line in groups(&Cli::command()).lines() {
            let line = anstream::adapter::strip_str(line).to_string();
            assert!(line.chars().count() <= 80, "too long: {line}");
            assert!(help.contains(&line), "{line} is missing in {help}");
        }
    }
}
