//! `enqueue --each`: one job for each line.

use serde_json::json;

use crate::cli::harness::{Home, RunResult};

fn commands(home: &Home) -> Vec<String> {
    home.jobs().iter().rev().map(|job| job.command.clone()).collect()
}

/// Runs `enqueue --each -` on these lines.
fn each(home: &Home, lines: &str, args: &[&str]) -> RunResult {
    home.call(["enqueue", "--each", "-"].iter().chain(args)).with_stdin(lines).run()
}

#[test]
fn a_line_replaces_the_braces() {
    let home = Home::new();
    each(&home, "a b.png\n\n$(reboot)\r\nit's", &["-q", "--", "convert", "{}", "out/{}.jpg"]).ok();
    let expected = [
        "convert 'a b.png' 'out/a b.png.jpg'",
        "convert '$(reboot)' 'out/$(reboot).jpg'",
        r"convert 'it'\''s' 'out/it'\''s.jpg'",
    ];
    assert_eq!(commands(&home), expected);
}

#[test]
fn without_braces_the_line_is_appended() {
    let home = Home::new();
    each(&home, "one\ntwo words\n", &["-q", "--", "echo", "-n"]).ok();
    assert_eq!(commands(&home), ["echo -n one", "echo -n 'two words'"]);
}

#[test]
fn csv_columns_can_be_referenced() {
    let home = Home::new();
    let rows = "name,city\nAnn,\"Bonn, old\"\n\"B \"\"the\"\" ob\",\"two\nlines\"\n\n";
    each(&home, rows, &["-q", "--csv", "--", "mail", "{city}", "{1}", "{{x}}"]).ok();
    let expected = ["mail 'Bonn, old' Ann '{x}'", "mail 'two\nlines' 'B \"the\" ob' '{x}'"];
    assert_eq!(commands(&home), expected);
    let empty = Home::new();
    each(&empty, "name\n", &["--csv", "--json", "--", "mail", "{name}"]).ok().prints("[]\n");
}

#[test]
fn flags_apply_to_every_job() {
    let home = Home::new();
    let flags = ["--queue", "mail", "--batch", "letters", "--tag", "t", "--max-retries", "0", "--", "true"];
    each(&home, "1\n2\n", &flags).ok();
    assert_eq!(home.run(["batch", "show", "letters", "--json"]).ok().json()["total"], 2);
    let jobs = home.run(["list", "--json", "--tag", "t", "--queue", "mail"]).ok().json();
    assert_eq!((&jobs[0]["max_retries"], &jobs[1]["command"]), (&json!(0), &json!("true 1")));
    let plain = Home::new();
    each(&plain, "1\n", &["--", "true"]).ok();
    plain.run(["batch", "list", "--json"]).ok().prints("[]\n");
}

#[test]
fn a_file_is_checked_before_anything_is_stored() {
    let home = Home::new();
    let good = home.file("good.txt", "a\nb\n");
    home.run(["enqueue", "--each", good.to_str().expect("a path"), "--", "echo"]).ok();
    assert_eq!(home.count(), 2);
    let long = "x".repeat(140_000);
    for (content, csv, line, says) in [
        (b"a\n\xff\n".to_vec(), false, 2, "not valid UTF-8"),
        (b"a\nb\0c\n".to_vec(), false, 2, "NUL"),
        (format!("a\n\n{long}\n").into_bytes(), false, 3, "at most 131071"),
        (b"x,y\n1,2\n3\n".to_vec(), true, 3, "1 fields, but the header has 2"),
        (b"x,y\n1,2\n3,4,5\n".to_vec(), true, 3, "3 fields, but the header has 2"),
        (b"z,y\n1,2\n".to_vec(), true, 1, "unknown column `x`"),
        (b"x\n\"a\nb\n".to_vec(), true, 3, "a quote is not closed"),
        (b"x\n\"a\nb\"\n\xff\n".to_vec(), true, 4, "not valid UTF-8"),
    ] {
        let path = home.file("bad.txt", &content);
        let args = ["enqueue", "--each", path.to_str().expect("a path")];
        let csv: &[&str] = if csv { &["--csv", "--", "echo", "{x}"] } else { &["--", "echo", "{}"] };
        let refused = format!("line {line} was refused; nothing was stored");
        home.run(args.iter().chain(csv)).fails(2).prints("").says(&refused).says(says);
        let dry_run: Vec<&str> =
            args.iter().copied().chain(["--dry-run"]).chain(csv.iter().copied()).collect();
        home.run(dry_run).fails(2).prints("").says(&refused);
    }
    assert_eq!(home.count(), 2);
    home.run(["enqueue", "--each", "nowhere.txt", "--", "echo"]).fails(2).says("nowhere.txt");
}

#[test]
fn a_stream_is_stored_up_to_the_bad_line() {
    let home = Home::new();
    let args = ["--csv", "--", "echo", "{x}"];
    each(&home, "x\n1\n2\n3,4\n5\n", &args).fails(1).says("stopped at line 4, 2 jobs were stored before it");
    assert_eq!(home.count(), 2);
    each(&home, "y\n1\n", &args).fails(2).says("line 1 was refused; nothing was stored");
}

#[test]
fn a_dry_run_shows_the_commands_and_stores_nothing() {
    let home = Home::new();
    let lines: Vec<String> = (1..=12).map(|at| format!("f{at} \u{1b}\n")).collect();
    let ran = each(&home, &lines.concat(), &["--dry-run", "--", "echo"]).ok();
    assert_eq!(ran.lines()[..2], ["Would enqueue 12 jobs:", "  echo 'f1 \\u{1b}'"]);
    assert_eq!((ran.lines().len(), ran.lines()[11]), (12, "  and 2 more"), "{ran}");
    let output = each(&home, "a\nb\n", &["--dry-run", "--json", "--", "echo"]).ok().json();
    assert_eq!(output, json!({"count": 2, "commands": ["echo a", "echo b"]}));
    each(&home, "", &["--dry-run", "--", "echo"]).ok().prints("Would enqueue 0 jobs\n");
    assert!(!home.path().exists(), "not even a home");
}

#[test]
fn the_placeholders_of_gnu_parallel_are_filled_in() {
    let home = Home::new();
    let command = ["ffmpeg", "-i", "{}", "{.}.mp4", "{/}", "{//}", "{/.}", "{#}"];
    each(&home, "d/a b.mkv\n\nc.tar.gz\n", &[["-q"].as_slice(), &command].concat()).ok();
    let expected = [
        "ffmpeg -i 'd/a b.mkv' 'd/a b.mp4' 'a b.mkv' d 'a b' 1",
        "ffmpeg -i c.tar.gz c.tar.mp4 c.tar.gz . c.tar 2",
    ];
    assert_eq!(commands(&home), expected);
}

#[test]
fn an_unknown_placeholder_is_refused_before_anything_is_read_or_stored() {
    let home = Home::new();
    for form in ["{..}", "{1}", "{%}", "x/{2.}"] {
        let known = "the known ones are {}, {.}, {/}, {//}, {/.} and {#}";
        each(&home, "a\n", &["echo", "{}", form]).fails(2).prints("").says("unknown placeholder").says(known);
        home.run(["enqueue", "--each", "echo", form, ":::", "a"]).fails(2).prints("").says(known);
        home.run(["enqueue", "--each", "nowhere.txt", "echo", form]).fails(2).says(known);
    }
    assert!(home.is_empty());
    each(&home, "a\n", &["-q", "--", "echo", "{{..}}", "${x}", r#"{"a":1}"#, "{a,b}", "{{}}", "+", "{}"])
        .ok();
    assert_eq!(commands(&home), [r#"echo '{..}' '${x}' '{"a":1}' '{a,b}' '{}' + a"#]);
}

#[test]
fn arguments_after_three_colons_need_no_file() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--each", "gzip", "-9", "{}", ":::", "a b", "", "two\nlines"]).ok();
    assert_eq!(commands(&home), ["gzip -9 'a b'", "gzip -9 ''", "gzip -9 'two\nlines'"]);
    let ran =
        home.run(["enqueue", "--each", "--batch", "b", "--", "gzip", "{}", ":::", "c", "--", ":::"]).ok();
    assert_eq!(ran.lines().len(), 3);
    assert_eq!(commands(&home)[3..], ["gzip c", "gzip --", "gzip :::"]);
    let dry = home.run(["enqueue", "--each", "--dry-run", "--json", "echo", ":::", "x"]).ok().json();
    assert_eq!(dry, json!({"count": 1, "commands": ["echo x"]}));
    home.run(["enqueue", "--each", "echo", ":::"]).ok().prints("");
    home.run(["enqueue", "echo", ":::", "a"]).ok();
    assert_eq!(commands(&home)[6..], ["echo ::: a"], "without --each it is a word like any other");
}

#[test]
fn a_shell_line_gets_quoted_values() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--each", "gzip < {} > {.}.gz", "--queue", "z", ":::", "$(reboot).txt"]).ok();
    each(&home, "a b\n", &["-q", "--command", "echo \"to {}\" | wc -c"]).ok();
    each(&home, "c\n", &["-q", "make && make test"]).ok();
    let expected =
        ["gzip < '$(reboot).txt' > '$(reboot)'.gz", "echo \"to \"'a b'\"\" | wc -c", "make && make test c"];
    assert_eq!(commands(&home), expected);
    assert_eq!(home.jobs()[2].queue.as_str(), "z");
    let refused = ["enqueue", "--each", "echo \"$(basename {})\"", ":::", "a"];
    home.run(refused).fails(2).prints("").says("cannot be filled in safely").says("sh -c");
    assert_eq!(home.count(), 3);
}

#[test]
fn a_glob_that_the_shell_expanded_after_each_gets_a_hint() {
    let home = Home::new();
    let names = ["a.mkv", "b.mkv", "c.mkv"];
    for name in names {
        home.file(name, "x\n");
    }
    let says = |args: &[&str], says: &str| {
        for verb in ["enqueue", "run"] {
            home.run([&[verb, "--each"], args].concat()).fails(2).prints("").says(says).says(":::");
        }
    };
    says(&names, "--each takes one file, but 3 were given");
    says(&names[..2], "--each takes one file, but 2 were given");
    says(&[&names, ["--", "ffmpeg", "-i"].as_slice()].concat(), "--each takes one file");
    says(&names[..1], "--each needs a command");
    says(&[], "a value is required for '--each <FILE>'");
    assert!(home.is_empty());
    let script = home.file("script.sh", "");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    home.run(["enqueue", "-q", "--each", "a.mkv", "./script.sh", "{}"]).ok();
    assert_eq!(commands(&home), ["./script.sh x"]);
}

#[test]
fn what_each_cannot_be_combined_with_is_refused() {
    let home = Home::new();
    for args in [
        vec!["--command", "echo {}", "--csv"],
        vec!["--command", "echo {}", "--", "echo"],
        vec![],
        vec!["--id", "a", "--", "echo"],
        vec!["--file", "x", "--", "echo"],
        vec!["--csv", "--", "echo"],
        vec!["--csv", "--", "echo", "{}"],
    ] {
        each(&home, "a\nb\n", &args).fails(2).prints("");
    }
    home.run(["enqueue", "--csv", "--", "echo"]).fails(2);
    home.run(["enqueue", "--each", "--csv", "echo", "{1}", ":::", "a"]).fails(2).says("--csv reads a file");
    home.run(["run", "-j", "2", "--", "echo"]).fails(2).says("--each");
    home.run(["run", "--halt-on-failure", "--", "echo"]).fails(2).says("--each");
    home.run(["enqueue", "--dry-run", "--", "echo"]).fails(2);
    assert!(home.is_empty());
}

#[test]
fn every_job_runs_with_its_line() {
    let home = Home::new();
    each(&home, "a  b\n'q'\n", &["-q", "--max-retries", "0", "--", "printf", "<%s>"]).ok();
    home.run(["worker", "run", "--until-empty", "-q"]).ok();
    let printed: Vec<String> =
        home.jobs().iter().rev().map(|job| home.run(["logs", job.id.as_str()]).ok().stdout).collect();
    assert_eq!(printed, ["<a  b>", "<'q'>"]);
}

fn keys(home: &Home) -> Vec<String> {
    home.jobs().iter().rev().filter_map(|job| job.unique_key.clone()).collect()
}

#[test]
fn each_item_has_its_own_unique_key() {
    let home = Home::new();
    let flags = ["--unique-key", "thumb-{/.}", "--", "convert", "{}"];
    each(&home, "in/a b.png\nin/c.png\n", &flags).ok();
    each(&home, "in/c.png\nin/d.png\n", &flags).ok();
    assert_eq!(keys(&home), ["thumb-a b", "thumb-c", "thumb-d"]);
    let rows = Home::new();
    each(
        &rows,
        "name,city\nAnn,Bonn\nBo,Bonn\n",
        &["--csv", "--unique-key", "{city}", "--", "mail", "{name}"],
    )
    .ok();
    assert_eq!(commands(&rows), ["mail Ann"]);
    assert_eq!(keys(&rows), ["Bonn"]);
    let arguments = Home::new();
    arguments.run(["enqueue", "--each", "--unique-key", "k{#}", "true", "{}", ":::", "a", "b"]).ok();
    assert_eq!(keys(&arguments), ["k1", "k2"]);
}

#[test]
fn a_unique_key_that_all_items_share_is_refused() {
    let home = Home::with_queue();
    let shared = "the unique key `thumb` is the same for every item, so only the first would be enqueued";
    for args in [
        ["--unique-key", "thumb", "--", "convert", "{}"].as_slice(),
        &["--unique-key", "thumb", "-c", "ls {}"],
    ] {
        let ran = each(&home, "a\nb\n", args).fails(2).says(shared);
        ran.says("hint: give each item its own key, as in --unique-key 'thumb-{}'");
    }
    each(&home, "name\nAnn\n", &["--csv", "--unique-key", "thumb", "--", "mail", "{name}"])
        .fails(2)
        .says(shared);
    each(&home, "a\n", &["--unique-key", "{1}", "--", "true"]).fails(2).says("unknown placeholder `{1}`");
    each(&home, &"x".repeat(600), &["--unique-key", "k{}", "--", "true"]).fails(2).says("512");
    assert!(home.is_empty());
}
