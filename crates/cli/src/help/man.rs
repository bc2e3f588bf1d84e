//! Man pages, in the macros of man(7), from the description of the verbs.

use std::fmt::Write;

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command};

use super::short::{examples, name_of, one_line};
use crate::render::help_groups::{HELP, PROGRAM};

/// A page for a verb: its file, and its text.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) file: String,
    pub(crate) text: String,
}

/// The pages of the program and of all its verbs. The tree of verbs must be built.
pub(crate) fn all(root: &Command) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        pages.push(page(command));
        open.extend(verbs(command));
    }
    pages.sort_by(|a, b| a.file.cmp(&b.file));
    pages
}

pub(crate) fn page(command: &Command) -> Page {
    let name = page_name(command);
    let mut roff = Roff(String::new());
    let title = name.to_uppercase();
    // Without a date, the page of one version is always the same.
    roff.macro_line(&format!("TH \"{}\" \"1\" \"\" \"queuectl {}\" \"queuectl\"", escape(&title), version()));
    roff.section("NAME");
    roff.text(&format!("{name} - {}", one_line(command.get_about())));
    roff.section("SYNOPSIS");
    let usage = command.clone().render_usage().to_string();
    roff.text(usage.trim_start_matches("Usage:").trim());
    roff.section("DESCRIPTION");
    roff.paragraphs(command.get_long_about().or(command.get_about()));
    roff.verbs(command);
    roff.arguments(command);
    roff.flags(command);
    if command.get_name() == PROGRAM {
        roff.program();
    }
    roff.examples(command);
    roff.see_also(command);
    Page { file: format!("{name}.1"), text: roff.0 }
}

/// The verbs of a verb that people type.
fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != HELP)
}

/// `queuectl-worker-start`
fn page_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(PROGRAM).replace(' ', "-")
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

struct Roff(String);

impl Roff {
    fn macro_line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, ".{line}");
    }

    fn section(&mut self, heading: &str) {
        self.macro_line(&format!("SH \"{}\"", escape(heading)));
    }

    /// A line of text. At its beginning, a dot or a quote would be a macro.
    fn text(&mut self, text: &str) {
        let text = bold_code(&escape(text));
        let guard = if text.starts_with(['.', '\'']) { "\\&" } else { "" };
        let _ = writeln!(self.0, "{guard}{text}");
    }

    fn paragraphs(&mut self, text: Option<&StyledStr>) {
        let text = text.map(ToString::to_string).unwrap_or_default();
        for (at, paragraph) in text.split("\n\n").enumerate() {
            if at > 0 {
                self.macro_line("PP");
            }
            self.text(&paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    /// A name and its description, indented.
    fn entry(&mut self, name: &str, about: &str) {
        self.macro_line("TP");
        let _ = writeln!(self.0, "\\fB{}\\fR", escape(name));
        self.text(about);
    }

    fn verbs(&mut self, command: &Command) {
        if verbs(command).next().is_some() {
            self.section("COMMANDS");
        }
        for verb in verbs(command) {
            self.macro_line("TP");
            let _ = writeln!(self.0, "\\fB{}\\fR(1)", escape(&page_name(verb)));
            self.text(&one_line(verb.get_about()));
        }
    }

    fn arguments(&mut self, command: &Command) {
        let shown: Vec<&Arg> = command.get_positionals().filter(|argument| !argument.is_hide_set()).collect();
        if !shown.is_empty() {
            self.section("ARGUMENTS");
        }
        for argument in shown {
            self.entry(&argument.to_string(), &described(argument));
        }
    }

    /// The flags of the verb, in the groups of `--help`. Those of every verb are on the page of the program.
    fn flags(&mut self, command: &Command) {
        let is_program = command.get_name() == PROGRAM;
        let is_shown = |flag: &&Arg| !flag.is_positional() && !flag.is_hide_set();
        let is_own = |flag: &&Arg| is_program || !flag.is_global_set() && flag.get_id() != "version";
        let flags: Vec<&Arg> = command.get_arguments().filter(is_shown).filter(is_own).collect();
        let mut headings: Vec<Option<&str>> = Vec::new();
        for flag in &flags {
            if !headings.contains(&flag.get_help_heading()) {
                headings.push(flag.get_help_heading());
            }
        }
        self.section("OPTIONS");
        // Those without a heading come first.
        headings.sort_by_key(Option::is_some);
        for heading in headings {
            if let Some(heading) = heading {
                self.macro_line(&format!("SS \"{}\"", escape(heading)));
            }
            for flag in flags.iter().filter(|flag| flag.get_help_heading() == heading) {
                self.entry(name_of(flag).trim_start(), &described(flag));
            }
        }
        if !is_program {
            self.macro_line("PP");
            self.text("The options of every command are described in queuectl(1).");
        }
    }

    /// What only the page of the program has.
    fn program(&mut self) {
        self.section("ENVIRONMENT");
        self.entry("QUEUECTL_HOME", "The home directory of the queue; --home has precedence.");
        self.entry(
            "QUEUECTL_STORE",
            "The queue's database, a path or a postgres:// URL; --store has precedence.",
        );
        self.entry("NO_COLOR", "If it is set and not empty, nothing is coloured.");
        self.section("FILES");
        self.entry(
            ".queuectl",
            "The home of a queue, in this directory or above it, else in the user's home directory.",
        );
        self.entry(".queuectl/queue.db", "The queue.");
        self.section("EXIT STATUS");
        for (code, meaning) in [
            ("0", "done"),
            ("1", "it failed, or a job that was waited for did not succeed"),
            ("2", "bad input or usage; nothing changed"),
            ("3", "no such thing"),
            ("4", "conflict: the id is taken, or the job is in the wrong state"),
            ("5", "the store is not available, full, read-only or busy; nothing changed"),
            ("6", "the outcome is unknown; ask again with the same id"),
            ("7", "corrupt or incompatible data"),
            ("124", "the time limit of wait has passed"),
        ] {
            self.entry(code, meaning);
        }
        self.macro_line("PP");
        self.text("`queuectl run` exits with the exit code of its command.");
    }

    fn examples(&mut self, command: &Command) {
        self.section("EXAMPLES");
        self.macro_line("nf");
        for example in examples(command) {
            // In an example, a backquote is one.
            let _ = writeln!(self.0, "{}", escape(&example));
        }
        self.macro_line("fi");
    }

    fn see_also(&mut self, command: &Command) {
        let name = page_name(command);
        let Some((above, _)) = name.rsplit_once('-') else {
            return;
        };
        self.section("SEE ALSO");
        let _ = writeln!(self.0, "\\fB{}\\fR(1)", escape(above));
    }
}

/// The description of an argument, with its default, its values and its other names.
fn described(argument: &Arg) -> String {
    let mut text = one_line(argument.get_long_help().or(argument.get_help()));
    if !argument.get_action().takes_values() {
        return text;
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = write!(text, " [default: {}]", defaults.join(","));
    }
    let possible = argument.get_possible_values();
    let possible: Vec<&str> =
        possible.iter().filter(|value| !value.is_hide_set()).map(PossibleValue::get_name).collect();
    if !possible.is_empty() {
        let _ = write!(text, " [possible values: {}]", possible.join(", "));
    }
    text
}

/// Plain text in roff: backslashes are doubled, and hyphens stay hyphens, so that flags can be copied.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq")
}

/// Words between backquotes in bold.
fn bold_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let styled = parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { format!("\\fB{part}\\fR") } else { (*part).to_owned() });
    styled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::whole;

    #[test]
    fn text_cannot_become_a_macro_or_an_escape() {
        let mut roff = Roff(String::new());
        roff.text(".TH is text");
        roff.text("'quoted' \\fB and --flag");
        roff.text("run `a-b` and `c`");
        roff.text("an odd ` stays");
        assert_eq!(
            roff.0,
            "\\&.TH is text\n\\&'quoted' \\efB and \\-\\-flag\nrun \\fBa\\-b\\fR and \\fBc\\fR\nan odd ` stays\n"
        );
    }

    #[test]
    fn every_visible_verb_has_a_well_formed_page() {
        const MACROS: [&str; 7] = ["TH", "SH", "SS", "PP", "TP", "nf", "fi"];
        let mut root = whole();
        root.build();
        let pages = all(&root);
        assert!(pages.iter().any(|page| page.file == "queuectl-worker-start.1"));
        assert!(!pages.iter().any(|page| page.file.contains("__") || page.file.contains("help")));
        for Page { file, text } in pages {
            let sections: Vec<&str> = text.lines().filter(|line| line.starts_with(".SH ")).collect();
            assert!(text.starts_with(".TH \"QUEUECTL"), "{file}: {text}");
            assert_eq!(sections[..3], [".SH \"NAME\"", ".SH \"SYNOPSIS\"", ".SH \"DESCRIPTION\""], "{file}");
            assert!(sections.contains(&".SH \"EXAMPLES\"") && text.contains("queuectl "), "{file}");
            for line in text.lines() {
                let is_macro = line.starts_with('.');
                let name = line.trim_start_matches('.').split(' ').next().unwrap_or_default();
                assert!(!is_macro || MACROS.contains(&name), "{file}: {line}");
                assert!(!line.trim().is_empty(), "{file} has an empty line");
                let escapes = line.split('\\').skip(1).filter(|rest| !rest.is_empty());
                for rest in escapes {
                    let is_known =
                        ["e", "-", "&", "(dq", "fB", "fR"].iter().any(|known| rest.starts_with(known));
                    assert!(is_known, "{file}: \\{rest}");
                }
            }
        }
    }

    #[test]
    fn a_page_has_every_visible_flag() {
        let mut root = whole();
        root.build();
        let enqueue = root.find_subcommand("enqueue").expect("it exists");
        let text = page(enqueue).text;
        for flag in enqueue.get_arguments().filter(|flag| !flag.is_hide_set() && !flag.is_global_set()) {
            if let Some(long) = flag.get_long().filter(|long| *long != "version") {
                assert!(text.contains(&escape(&format!("--{long}"))), "--{long} is missing");
            }
        }
    }
}
