//! The text of `-h`: one screen. `--help`, which clap writes, is complete.
//!
//! Each flag gets one line, with the beginning of its description. A verb with many flags shows the common ones, and
//! names the others. Whatever a verb has, its text is at most [`MAX_LINES`] long.

use std::fmt::Write;

use clap::builder::{StyledStr, Styles};
use clap::{Arg, Command};
use unicode_width::UnicodeWidthStr;

use crate::render::help_groups;
use crate::render::text::wrap;

const USAGE: &str = "Usage:";
/// One screen.
pub(crate) const MAX_LINES: usize = 40;
pub(crate) const MAX_WIDTH: usize = 80;
const MAX_EXAMPLES: usize = 3;
/// Up to this number, all flags are shown.
const FEW_FLAGS: usize = 12;
/// Lines that name the flags which are not shown.
const MAX_LINES_OF_NAMES: usize = 5;
/// A longer name has its description on the same line, but not in the column of the others.
const MAX_NAME_WIDTH: usize = 30;
/// A shorter beginning of a description says too little.
const MIN_CLAUSE_WIDTH: usize = 14;

/// Flags that few people need, by their ids. A verb with many flags only names them.
const RARE: [&str; 32] = [
    "max_attempts",
    "backoff",
    "retry_on",
    "no_retry_on",
    "on_dependency_failure",
    "unique_key",
    "unique_for",
    "env",
    "unset_env",
    "limits",
    "cwd",
    "if_absent",
    "no_env_capture",
    "env_capture",
    "csv",
    "on_missed",
    "missed_limit",
    "on_overlap",
    "older_than",
    "command_like",
    "changed_after",
    "id_prefix",
    "schedule",
    "worker",
    "cause",
    "reason",
    "exit_code",
    "set-queue",
    "set-tags",
    "no_tags",
    "after",
    "is_accepted",
];

/// The help of a verb, or of the program, on one screen. The tree of verbs must be built.
pub(crate) fn short_help(command: &Command, width: usize) -> String {
    let width = width.min(MAX_WIDTH);
    let mut page = Page { styles: command.get_styles().clone(), width, text: String::new() };
    page.line(&fitting(&one_line(command.get_about()), width));
    page.usage(command);
    let end = page.end(command);
    let room = MAX_LINES - end.lines().count();
    if command.get_name() == help_groups::PROGRAM {
        page.groups(command, room);
    } else {
        page.verbs(command);
        page.arguments(command);
        page.flags(command, room);
    }
    page.text.push_str(&end);
    page.text
}

/// The explanation of the flags that every verb has.
pub(crate) fn global_help(root: &Command, width: usize) -> String {
    let mut page = Page {
        styles: root.get_styles().clone(),
        width: width.min(MAX_WIDTH),
        text: "Options of every command, before or after its name\n".to_owned(),
    };
    for flag in root.get_arguments().filter(|flag| flag.is_global_set()) {
        page.blank();
        let name = page.literal(&name_of(flag));
        page.line(&format!("  {name}"));
        for line in wrap(&one_line(flag.get_help()), page.width - 6) {
            page.line(&format!("      {line}"));
        }
    }
    page.blank();
    page.heading("Environment");
    page.entries(&[
        ("QUEUECTL_HOME".to_owned(), "as --home, which has precedence".to_owned()),
        ("QUEUECTL_STORE".to_owned(), "as --store, which has precedence".to_owned()),
        ("NO_COLOR".to_owned(), "no colour, if it is set and not empty".to_owned()),
    ]);
    page.blank();
    page.heading("Examples");
    for example in ["queuectl --home /srv/queue status", "queuectl list --json | jq -r '.[].id'"] {
        page.line(&format!("  {example}"));
    }
    page.text
}

struct Page {
    styles: Styles,
    width: usize,
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        let style = *self.styles.get_header();
        self.line(&format!("{style}{heading}:{style:#}"));
    }

    fn literal(&self, text: &str) -> String {
        let style = self.styles.get_literal();
        format!("{style}{text}{style:#}")
    }

    fn lines(&self) -> usize {
        self.text.lines().count()
    }

    fn usage(&mut self, command: &Command) {
        let usage = command.clone().render_usage().to_string();
        self.blank();
        let style = *self.styles.get_usage();
        let mut before = format!("{style}{USAGE}{style:#} ");
        // A verb that does something without a verb below it has two.
        for usage in usage.trim_start_matches(USAGE).lines() {
            let usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
            for line in wrap(&usage, self.width - USAGE.len() - 1) {
                self.line(&format!("{before}{line}"));
                before = " ".repeat(USAGE.len() + 1);
            }
        }
    }

    /// Names, and what each stands for, one line each.
    fn entries(&mut self, entries: &[(String, String)]) {
        let widths = entries.iter().map(|(name, _)| name.width());
        let column = widths.filter(|width| *width <= MAX_NAME_WIDTH).max().unwrap_or(0);
        for (name, about) in entries {
            let padding = column.saturating_sub(name.width());
            let room = self.width.saturating_sub(name.width() + padding + 4);
            let shown = self.literal(name);
            let line = format!("  {shown}{:padding$}  {}", "", fitting(about, room));
            self.line(line.trim_end());
        }
    }

    fn section(&mut self, heading: &str, entries: &[(String, String)]) {
        if !entries.is_empty() {
            self.blank();
            self.heading(heading);
            self.entries(entries);
        }
    }

    /// The verbs of the program in their groups. Where that takes too many lines, the last groups have only names.
    fn groups(&mut self, program: &Command, room: usize) {
        let groups: Vec<(&str, Vec<(String, String)>)> = help_groups::shown()
            .map(|(heading, names)| {
                let entry = |name: &str| (name.to_owned(), help_groups::about(program, name));
                (heading, names.into_iter().map(entry).collect())
            })
            .collect();
        let column =
            groups.iter().flat_map(|(_, verbs)| verbs).map(|(name, _)| name.len()).max().unwrap_or(0);
        let names_of = |verbs: &[(String, String)]| {
            let names: Vec<&str> = verbs.iter().map(|(name, _)| name.as_str()).collect();
            wrap(&names.join(", "), MAX_WIDTH - 2)
        };
        let mut described = groups.len();
        let lines = |described: usize| {
            let full = groups[..described].iter().map(|(_, verbs)| verbs.len() + 1);
            let short = groups[described..].iter().map(|(_, verbs)| names_of(verbs).len() + 1);
            full.chain(short).sum::<usize>()
        };
        while described > 0 && self.lines() + 1 + lines(described) > room {
            described -= 1;
        }
        self.blank();
        for (at, (heading, verbs)) in groups.iter().enumerate() {
            self.heading(heading);
            if at < described {
                for (name, about) in verbs {
                    let about = fitting(about, self.width.saturating_sub(column + 4));
                    let line = format!("  {}{:2$}  {about}", self.literal(name), "", column - name.len());
                    self.line(&line);
                }
            } else {
                for line in names_of(verbs) {
                    self.line(&format!("  {line}"));
                }
            }
        }
    }

    fn verbs(&mut self, command: &Command) {
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let shown = shown.filter(|verb| verb.get_name() != help_groups::HELP);
        let entries: Vec<_> =
            shown.map(|verb| (verb.get_name().to_owned(), one_line(verb.get_about()))).collect();
        self.section("Commands", &entries);
    }

    fn arguments(&mut self, command: &Command) {
        let shown = command.get_positionals().filter(|argument| !argument.is_hide_set());
        let entries: Vec<_> =
            shown.map(|argument| (argument.to_string(), one_line(argument.get_help()))).collect();
        self.section("Arguments", &entries);
    }

    /// The flags of the verb. If they are many, the rare ones, and those for which there is no room, are only named.
    fn flags(&mut self, command: &Command, room: usize) {
        let own = command.get_opts().chain(command.get_arguments().filter(|flag| is_switch(flag)));
        let mut flags: Vec<&Arg> = own.filter(|flag| is_own(flag)).collect();
        // As they are declared, which is how `--help` has them.
        let order = |flag: &Arg| command.get_arguments().position(|other| other.get_id() == flag.get_id());
        flags.sort_by_key(|flag| order(flag));
        let (mut common, mut others) = (flags, Vec::new());
        if common.len() > FEW_FLAGS {
            (common, others) = common.into_iter().partition(|flag| !RARE.contains(&flag.get_id().as_str()));
        }
        // A blank line and the heading.
        let room = room.saturating_sub(self.lines() + 2);
        if common.len() > room || !others.is_empty() {
            let fit = room.saturating_sub(MAX_LINES_OF_NAMES);
            let rest = common.split_off(fit.min(common.len()));
            others.splice(0..0, rest);
        }
        let entries: Vec<_> = common.iter().map(|flag| (name_of(flag), one_line(flag.get_help()))).collect();
        self.section("Options", &entries);
        if !others.is_empty() {
            let names = others.iter().filter_map(|flag| flag.get_long()).map(|long| format!("--{long}"));
            let text = format!("More: {}", names.collect::<Vec<_>>().join(" "));
            for line in wrap(&text, self.width - 2).into_iter().take(MAX_LINES_OF_NAMES) {
                self.line(&format!("  {line}"));
            }
        }
    }

    /// The examples, and the flags of every verb.
    fn end(&self, command: &Command) -> String {
        let mut end = Self { styles: self.styles.clone(), width: self.width, text: String::new() };
        let examples = examples(command);
        let mut shown: Vec<&String> = examples.iter().filter(|line| line.width() <= self.width).collect();
        shown.truncate(MAX_EXAMPLES);
        if !shown.is_empty() {
            end.blank();
            end.heading(if shown.len() == 1 { "Example" } else { "Examples" });
            for example in shown {
                end.line(example);
            }
        }
        end.blank();
        end.note("Global options:", "--home --store --json -q --utc --color (queuectl help globals)");
        let name = command.get_bin_name().unwrap_or_default();
        if command.get_name() != help_groups::PROGRAM {
            end.note("All details:", &format!("{name} --help"));
        }
        end.text
    }

    fn note(&mut self, heading: &str, text: &str) {
        let style = *self.styles.get_header();
        let lines = wrap(&format!("{heading} {text}"), self.width).join("\n");
        self.line(&lines.replacen(heading, &format!("{style}{heading}{style:#}"), 1));
    }
}

fn is_switch(flag: &Arg) -> bool {
    !flag.is_positional() && !flag.get_action().takes_values()
}

/// Whether the flag is the verb's own: not one of every verb, and not `--help`.
fn is_own(flag: &Arg) -> bool {
    let id = flag.get_id();
    !flag.is_hide_set() && !flag.is_global_set() && id != "help" && id != "version"
}

/// `-Q, --queue <QUEUE>`
pub(crate) fn name_of(flag: &Arg) -> String {
    let mut name = flag.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    if let Some(long) = flag.get_long() {
        // Writing to a string cannot fail.
        let _ = write!(name, "--{long}");
    }
    let value = flag.get_value_names().and_then(|names| names.first());
    if let Some(value) = value.filter(|_| flag.get_action().takes_values()) {
        let _ = write!(name, " <{value}>");
    }
    name
}

/// The examples of a verb, each with the blanks before it.
pub(crate) fn examples(command: &Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("  ")).map(str::to_owned).collect()
}

pub(crate) fn one_line(text: Option<&StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text, or as much of it as fits: up to the end of a clause, else of a word.
fn fitting(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let is_end = |at: &usize, room: usize| {
        let clause = &text[..*at];
        let is_whole = |open, close| clause.matches(open).count() == clause.matches(close).count();
        (MIN_CLAUSE_WIDTH..=room).contains(&clause.width()) && is_whole('(', ')') && is_whole('[', ']')
    };
    let longest = |marks: &[&str], room: usize| {
        let ends = marks.iter().flat_map(|mark| text.match_indices(mark).map(|(at, _)| at));
        ends.filter(|end| is_end(end, room)).max()
    };
    if let Some(end) = longest(&["; ", ": ", " ["], room).or_else(|| longest(&[" ("], room)) {
        return text[..end].to_owned();
    }
    // A list without its end must not look complete.
    if let Some(end) = longest(&[", "], room.saturating_sub(", …".width())) {
        return format!("{}, …", &text[..end]);
    }
    let word = text.match_indices(' ').map(|(at, _)| at).filter(|at| text[..*at].width() < room).max();
    format!("{}…", &text[..word.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::whole;

    fn built() -> Command {
        let mut root = whole();
        root.build();
        root
    }

    #[test]
    fn a_description_ends_with_a_clause_or_a_word() {
        for (room, expected) in [
            (80, "The queue, by name; created if missing [default: default]"),
            (45, "The queue, by name; created if missing"),
            (30, "The queue, by name"),
            (17, "The queue, by…"),
            (15, "The queue, by…"),
            (8, "The…"),
        ] {
            assert_eq!(fitting("The queue, by name; created if missing [default: default]", room), expected);
        }
    }

    /// 80 columns are the narrowest terminal in common use.
    #[test]
    fn every_description_fits_80_columns() {
        fn check(command: &Command) {
            let text = short_help(command, 80);
            assert!(!text.contains('…'), "{text}");
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).for_each(check);
        }
        check(&built());
    }

    #[test]
    fn every_rare_flag_exists() {
        fn has(command: &Command, id: &str) -> bool {
            command.get_arguments().any(|flag| flag.get_id() == id)
                || command.get_subcommands().any(|verb| has(verb, id))
        }
        let root = built();
        for id in RARE {
            assert!(has(&root, id), "no verb has the flag {id}");
        }
    }

    /// Others add verbs and flags: the text must still fit.
    #[test]
    fn a_verb_with_any_number_of_flags_fits_one_screen() {
        for count in [0, 1, 12, 13, 40, 100] {
            let flag =
                |at: usize| Arg::new(&*format!("flag-{at}").leak()).long(&*format!("flag-{at}").leak());
            let mut verb = Command::new("verb").about("A verb").args((0..count).map(flag));
            verb.build();
            let text = short_help(&verb, MAX_WIDTH);
            assert!(text.lines().count() <= MAX_LINES, "{count} flags: {text}");
        }
    }
}
