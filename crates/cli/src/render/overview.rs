//! What `queuectl --help` shows: the verbs in groups, for there are too many of them to read in one list.

use std::fmt::Write;

use clap::Command;

/// Every verb that is not hidden, in the order in which one comes to need them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Jobs", &["enqueue", "run", "schedule", "batch"]),
    ("Looking at them", &["status", "list", "show", "explain", "logs", "wait", "graph", "events"]),
    ("Changing them", &["cancel", "retry", "edit", "remove", "dlq"]),
    ("Who runs them, and how", &["worker", "queue", "config", "hook"]),
    (
        "Upkeep",
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

/// The verb that the parser makes itself.
const ABOUT_HELP: &str = "Print this, or the help of a command";

/// The command line, whose help has the verbs in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let groups = groups(&command);
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{header}Everywhere:{header:#}\n{{options}}{{after-help}}"
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
    fn every_verb_is_in_one_group() {
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
    fn a_verb_is_told_in_one_line_of_a_terminal() {
        let help = grouped(Cli::command()).render_help().to_string();
        for line in groups(&Cli::command()).lines() {
            let line = anstream::adapter::strip_str(line).to_string();
            assert!(line.chars().count() <= 80, "too long: {line}");
            assert!(help.contains(&line), "{line} is missing in {help}");
        }
    }
}
