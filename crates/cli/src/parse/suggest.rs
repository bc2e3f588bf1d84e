//! What to type instead of a verb or a flag that does not exist.
//!
//! Words that people know from other tools are answered from tables: the verb that is spelled most like `stop` is `restore`.
//! What is not in a table is taken for a typo, and only if it differs by at most two letters.

use clap::Command;

use domain::text::nearest::{MAX_TYPO_DISTANCE, nearest_within};

/// A verb that does not exist, after the verbs before it, and what to type instead.
const VERBS: &[(&str, &[&str], &str)] = &[
    ("", &["start", "up", "daemon"], "`queuectl worker start`"),
    ("", &["stop", "shutdown", "down"], "`queuectl worker stop`, or `queuectl cancel JOB` for one job"),
    ("", &["hold", "suspend", "freeze"], "`queuectl pause JOB`, or `queuectl queue pause QUEUE`"),
    ("", &["unpause", "continue", "thaw"], "`queuectl resume JOB`, or `queuectl queue resume QUEUE`"),
    ("", &["clean", "clear", "cleanup", "gc"], "`queuectl prune`, or `queuectl remove --state completed`"),
    ("", &["restart", "requeue", "rerun", "replay", "redo"], "`queuectl retry JOB`"),
    ("", &["abort", "interrupt", "terminate"], "`queuectl cancel JOB`"),
    ("", &["delete", "del", "drop"], "`queuectl remove JOB`"),
    (
        "",
        &["submit", "push", "put", "new", "create", "queue-job", "schedule-job"],
        "`queuectl enqueue COMMAND`",
    ),
    ("", &["exec", "execute"], "`queuectl run COMMAND`"),
    ("", &["tail", "output", "stdout", "cat"], "`queuectl logs JOB`, or `queuectl follow`"),
    ("", &["jobs", "tasks"], "`queuectl list`"),
    ("", &["workers"], "`queuectl worker list`"),
    ("", &["queues"], "`queuectl queue list`"),
    ("", &["schedules", "crontab", "cron"], "`queuectl schedule list`, or `queuectl schedule add`"),
    ("", &["at"], "`queuectl enqueue --run-at TIME COMMAND`"),
    ("", &["info", "inspect", "describe", "get", "job"], "`queuectl show JOB`"),
    ("", &["why"], "`queuectl explain JOB`"),
    ("", &["stats", "state", "health"], "`queuectl status`"),
    ("", &["watch", "monitor"], "`queuectl status --watch`"),
    ("", &["settings", "set", "get-config"], "`queuectl config list`, or `queuectl config set KEY VALUE`"),
    ("", &["dead", "dead-letter", "failed", "failures"], "`queuectl dlq list`"),
    ("", &["purge", "flush"], "`queuectl dlq purge --all`, or `queuectl remove --state pending`"),
    ("", &["parallel", "slots"], "`queuectl worker start --concurrency N`"),
    ("", &["group", "groups"], "`queuectl queue list`, or `queuectl batch list`"),
    ("", &["version"], "`queuectl --version`"),
    ("worker", &["status", "show", "ls", "ps"], "`queuectl worker list`"),
    ("worker", &["restart"], "`queuectl worker stop`, then `queuectl worker start`"),
    ("worker", &["kill"], "`queuectl worker stop --now`"),
    ("queue", &["add", "create", "new"], "`queuectl enqueue --queue QUEUE COMMAND`, which creates the queue"),
    ("queue", &["show", "status", "info", "ls"], "`queuectl queue list`"),
    ("queue", &["limit", "edit"], "`queuectl queue set QUEUE`"),
    ("queue", &["unpause", "start"], "`queuectl queue resume QUEUE`"),
    ("queue", &["delete", "rm", "del"], "`queuectl queue remove QUEUE`"),
    ("queue", &["stop"], "`queuectl queue pause QUEUE`"),
    ("dlq", &["requeue", "replay", "restart"], "`queuectl dlq retry JOB`, or `--all`"),
    ("dlq", &["clear", "clean", "delete", "remove", "rm", "flush"], "`queuectl dlq purge JOB`, or `--all`"),
    ("dlq", &["ls", "status"], "`queuectl dlq list`"),
    ("schedule", &["delete", "rm", "del"], "`queuectl schedule remove NAME`"),
    ("schedule", &["create", "new", "set"], "`queuectl schedule add NAME`"),
    ("schedule", &["ls", "status"], "`queuectl schedule list`"),
    ("schedule", &["enable", "start", "unpause"], "`queuectl schedule resume NAME`"),
    ("schedule", &["disable", "stop"], "`queuectl schedule pause NAME`"),
    ("schedule", &["trigger", "fire", "now"], "`queuectl schedule run NAME`"),
    ("hook", &["create", "new"], "`queuectl hook add NAME`"),
    ("hook", &["delete", "rm", "del"], "`queuectl hook remove NAME`"),
    ("hook", &["ls"], "`queuectl hook list`"),
    ("batch", &["ls"], "`queuectl batch list`"),
    ("batch", &["delete", "rm", "del", "remove"], "`queuectl remove --batch NAME`"),
    ("batch", &["retry"], "`queuectl retry --batch NAME`"),
    ("config", &["ls", "view", "print"], "`queuectl config list`"),
    ("config", &["reset", "delete", "rm", "remove"], "`queuectl config unset KEY`"),
];

/// For a word in the place of a command that begins like JSON.
pub(super) const INSTEAD_OF_JSON: &str = "`queuectl enqueue` takes JSON, in single quotes: '{\"command\":\"make\"}'; \
     a line for the shell that begins with { or [ needs --command";

/// A flag that does not exist, of this verb or (with an empty one) of any, and what to type instead.
const FLAGS: &[(&str, &[&str], &str)] = &[
    (
        "enqueue",
        &["--follow", "--wait", "--attach", "--foreground"],
        "`queuectl run COMMAND`, which shows the output and waits",
    ),
    ("enqueue", &["--shell", "--cmd", "--exec"], "--command"),
    ("enqueue", &["--dependency", "--deps", "--needs"], "--depends-on"),
    ("enqueue", &["--retries", "--retry", "--max-retry"], "--max-retries"),
    ("enqueue", &["--at", "--when", "--start", "--scheduled"], "--run-at"),
    ("enqueue", &["--in", "--after-delay", "--after-seconds"], "--delay"),
    ("enqueue", &["--label", "--title", "--description"], "--name"),
    ("enqueue", &["--labels"], "--tags"),
    ("enqueue", &["--group"], "--queue or --batch"),
    ("enqueue", &["--dir", "--directory", "--workdir", "--working-directory"], "--cwd"),
    ("enqueue", &["--memory", "--cpu", "--nice"], "--limits, as in --limits memory=512M"),
    (
        "enqueue",
        &["-j", "--jobs", "--concurrency", "--parallel"],
        "`queuectl run --each` to run the jobs now, or `queuectl worker start --concurrency N`",
    ),
    ("enqueue", &[":::"], "--each before the command, as in `--each COMMAND {} ::: A B C`"),
    ("run", &["--jobs", "--parallel", "--threads", "--slots"], "--concurrency, or -j"),
    ("run", &["--detach", "--background", "--bg"], "`queuectl enqueue COMMAND`, which does not wait"),
    ("run", &["--halt", "--fail-fast", "--halt-on-error"], "--halt-on-failure"),
    ("run", &["--bar", "--eta", "--progress"], "nothing: a terminal shows a bar"),
    ("worker stop", &["--force", "--kill", "--immediate", "--hard"], "--now"),
    ("worker stop", &["--graceful", "--gracefully", "--wait"], "nothing: the running jobs may finish"),
    ("worker stop", &["--all"], "nothing: all workers of this home are stopped"),
    ("worker start", &["--workers", "--num", "--number", "--processes"], "--count"),
    ("worker start", &["--threads", "--parallel", "--jobs", "--slots"], "--concurrency"),
    (
        "worker start",
        &["--poll-interval", "--poll", "--interval"],
        "nothing: a new job wakes a worker at once",
    ),
    ("worker run", &["--poll-interval", "--poll", "--interval"], "nothing: a new job wakes a worker at once"),
    ("worker start", &["--foreground"], "`queuectl worker run`"),
    ("worker start", &["--background", "--detach", "--daemon"], "nothing: it runs in the background"),
    ("worker run", &["--threads", "--parallel", "--jobs", "--slots"], "--concurrency"),
    ("worker run", &["--once", "--burst", "--drain"], "--until-empty"),
    ("edit", &["--label", "--title", "--description"], "--name"),
    ("list", &["--status", "--filter"], "--state"),
    (
        "list",
        &[
            "--pending",
            "--running",
            "--processing",
            "--completed",
            "--done",
            "--failed",
            "--dead",
            "--cancelled",
        ],
        "--state, as in `queuectl list --state failed`",
    ),
    ("list", &["--output"], "--format"),
    ("logs", &["--id", "--job"], "the job without a flag: `queuectl logs JOB`"),
    ("show", &["--id", "--job"], "the job without a flag: `queuectl show JOB`"),
    ("cancel", &["--force", "--kill", "--now"], "nothing: a running job is killed with its children"),
    ("cancel", &["--all"], "--state pending,processing,failed"),
    ("pause", &["--all"], "--state processing"),
    ("resume", &["--all"], "--state paused"),
    ("wait", &["--all"], "nothing: without ids, `queuectl wait` waits for all jobs"),
    ("retry", &["--failed", "--dead"], "--state dead"),
    ("retry", &["--all"], "--state dead, or `queuectl dlq retry --all`"),
    ("remove", &["--force"], "--yes"),
    ("schedule add", &["--label", "--title", "--description"], "--name"),
    ("schedule add", &["--interval", "--period"], "--every"),
    ("schedule add", &["--timezone", "--zone"], "--tz"),
    ("dlq retry", &["--with-dependents"], "`queuectl retry ID --with-dependents`"),
    ("", &["--db", "--database"], "--store"),
    ("", &["--verbose", "-v"], "`queuectl show`, `explain` and `logs` for details"),
    ("", &["--output", "--format"], "--json"),
    ("", &["--no-color"], "--color never"),
    ("", &["--force"], "--yes"),
];

/// What to type instead of this verb below `command`, whose verbs before it are `path`.
pub(super) fn instead_of_verb(command: &Command, path: &str, typed: &str) -> Option<String> {
    let known = look_up(VERBS, path, typed).map(|instead| format!("use {instead}"));
    known.or_else(|| {
        let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let near = nearest_within(typed, visible, MAX_TYPO_DISTANCE)?;
        let full: Vec<&str> = ["queuectl", path, near].into_iter().filter(|word| !word.is_empty()).collect();
        Some(format!("did you mean `{}`?", full.join(" ")))
    })
}

/// What to type instead of this flag of the verb at `path`.
pub(super) fn instead_of_flag(command: &Command, path: &str, typed: &str) -> Option<String> {
    // `run` takes the flags of `enqueue`, and waits already; `schedule edit` takes those of `schedule add`.
    let of_verb = match path {
        "run" => "enqueue",
        "schedule edit" => "schedule add",
        _ => path,
    };
    if let Some(instead) = [path, of_verb, ""].iter().find_map(|path| look_up(FLAGS, path, typed)) {
        return Some(format!("use {instead}"));
    }
    let long = typed.strip_prefix("--")?;
    let known = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let near = nearest_within(long, known.filter_map(clap::Arg::get_long), MAX_TYPO_DISTANCE)?;
    Some(format!("did you mean `--{near}`?"))
}

/// The value that was mistyped, of those that a flag accepts.
pub(super) fn instead_of_value(typed: &str, known: &[String]) -> Option<String> {
    let near = nearest_within(typed, known.iter().map(String::as_str), MAX_TYPO_DISTANCE)?;
    Some(format!("did you mean `{near}`?"))
}

fn look_up(table: &[(&str, &[&str], &'static str)], path: &str, typed: &str) -> Option<&'static str> {
    let row = table.iter().find(|(of, words, _)| *of == path && words.contains(&typed));
    row.map(|(_, _, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::parse::{aliases, verb_of, whole};

    /// The command at this path.
    fn at<'a>(root: &'a Command, path: &str) -> &'a Command {
        path.split_whitespace().fold(root, |command, verb| {
            command.find_subcommand(verb).unwrap_or_else(|| panic!("there is no {path}"))
        })
    }

    #[test]
    fn no_row_of_a_table_names_what_exists_or_a_verb_that_does_not() {
        let mut root = whole();
        root.build();
        for (path, words, _) in VERBS {
            for word in *words {
                let exists = at(&root, path).find_subcommand(word).is_some();
                assert!(!exists, "`{path} {word}` exists");
            }
        }
        for (path, words, _) in FLAGS {
            for word in *words {
                let long = word.trim_start_matches('-');
                let exists =
                    at(&root, path).get_arguments().any(|argument| argument.get_long() == Some(long));
                assert!(!exists, "`{path} {word}` exists");
            }
        }
        for (_, _, instead) in VERBS.iter().chain(FLAGS) {
            for shown in instead.split('`').skip(1).step_by(2).filter(|shown| shown.starts_with("queuectl "))
            {
                let words: Vec<OsString> = shown.split_whitespace().map(OsString::from).collect();
                let (verb, _) = verb_of(&root, &aliases::expand(&root, &words));
                let is_verb = !verb.has_subcommands() || shown == "queuectl --version";
                assert!(is_verb, "`{shown}` names no verb");
            }
        }
    }

    #[test]
    fn a_synonym_comes_before_a_typo_and_a_lookalike_is_not_offered() {
        let root = whole();
        let verb = |path: &str, typed: &str| instead_of_verb(at(&root, path), path, typed);
        assert_eq!(
            verb("", "stop").as_deref(),
            Some("use `queuectl worker stop`, or `queuectl cancel JOB` for one job")
        );
        assert_eq!(verb("worker", "status").as_deref(), Some("use `queuectl worker list`"));
        assert_eq!(verb("queue", "rm").as_deref(), Some("use `queuectl queue remove QUEUE`"));
        assert_eq!(verb("", "enqeue").as_deref(), Some("did you mean `queuectl enqueue`?"));
        assert_eq!(verb("worker", "strat").as_deref(), Some("did you mean `queuectl worker start`?"));
        assert_eq!(verb("", "demo"), None);
        assert_eq!(
            verb("", "wroker").as_deref(),
            Some("did you mean `queuectl worker`?"),
            "never a hidden verb"
        );
        let flag = |path: &str, typed: &str| instead_of_flag(at(&root, path), path, typed);
        assert_eq!(flag("worker stop", "--force").as_deref(), Some("use --now"));
        assert_eq!(flag("enqueue", "--label").as_deref(), Some("use --name"));
        assert_eq!(flag("run", "--label").as_deref(), Some("use --name"));
        assert_eq!(flag("run", "--jobs").as_deref(), Some("use --concurrency, or -j"));
        assert_eq!(flag("schedule add", "--label").as_deref(), Some("use --name"));
        assert_eq!(flag("list", "--stat").as_deref(), Some("did you mean `--state`?"));
        assert_eq!(flag("schedule edit", "--timezone").as_deref(), Some("use --tz"));
        assert_eq!(flag("enqueue", "--nonsense"), None);
    }
}
