//! Output of commands: large, binary, in one line, none (FAULTS 19); and logs that disappear (FAULTS 20).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::json;

use crate::engine::harness::{Home, Pool, history};

const MIB: u64 = 1 << 20;

/// The disk space that the files in a folder take.
fn disk_usage(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).expect("the folder is there").flatten();
    files.map(|file| file.metadata().expect("a file").blocks() * 512).sum()
}

/// The peak memory of a process.
fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is alive");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn fault_19_a_command_that_prints_1_gb_is_cut_in_the_middle() {
    let home = Home::new();
    home.set("log_max_bytes", "1M");
    let half = "head -c 500000000 /dev/zero";
    let look = "du -sk \"$QUEUECTL_HOME/logs\" | cut -f 1 > midway";
    home.enqueue("loud", &format!("echo begin; {half}; {look}; {half}; echo; echo finish; exit 3"));
    let _pool = Pool::run(&home, "");
    let job = home.wait_for("loud", "dead");
    assert_eq!((&job["exit_code"], &job["error"]), (&json!(3), &json!("exit code 3")));
    let kept = history(&job)[0]["log_bytes"].as_u64().expect("a number");
    assert!((MIB / 2..=MIB).contains(&kept), "{kept} bytes are kept");
    let on_disk = disk_usage(&home.path().join("logs"));
    assert!(on_disk < 2 * MIB, "{on_disk} bytes on the disk");
    let midway: u64 = home.wait_for_file("midway").parse().expect("a number of KiB");
    assert!(midway * 1024 < 4 * MIB, "{midway} KiB on the disk while it ran");
    let peak = peak_memory(home.workers()[0].pid);
    assert!(peak < 48 * MIB, "the worker took {peak} bytes");
    let printed = home.printed("loud");
    assert!(printed.starts_with(b"begin\n\0\0") && printed.ends_with(b"\0\nfinish\n"));
}

#[test]
fn fault_19_binary_output_is_kept_byte_for_byte() {
    let home = Home::new();
    let mut random = fastrand::Rng::with_seed(19);
    let small: Vec<u8> = (0..=255).chain([0, 10, 13, 0xFF, 0xFE]).collect();
    let large: Vec<u8> = (0..300_000).map(|_| random.u8(..)).collect();
    for (id, bytes) in [("small", &small), ("large", &large)] {
        home.file(id, bytes);
        home.enqueue(id, &format!("cat {id}"));
    }
    Pool::drain(&home, "");
    assert!(home.printed("small") == small, "small output");
    assert!(home.printed("large") == large, "large output");
}

#[test]
fn fault_19_a_line_of_100_mb_does_not_fill_the_memory() {
    let home = Home::new();
    home.enqueue("line", "head -c 100000000 /dev/zero | tr '\\0' x >&2; exit 1");
    let _pool = Pool::run(&home, "");
    let job = home.wait_for("line", "dead");
    let error = job["error"].as_str().expect("an error");
    assert!(error.len() <= 512 && error.starts_with("exit code 1: xxxx"), "{error}");
    assert!(home.printed("line").iter().all(|byte| *byte == b'x' || byte.is_ascii()));
    assert!(peak_memory(home.workers()[0].pid) < 48 * MIB);
}

#[test]
fn fault_19_a_command_that_closes_its_output_keeps_running() {
    let home = Home::new();
    let job = home.ran("echo before; exec >&- 2>&-; sleep 0.3; echo still here > later; exit 7");
    assert_eq!(job["exit_code"], 7);
    assert_eq!(home.read("later"), "still here\n");
    assert_eq!(home.printed_text("it"), "before\n");
}

#[test]
fn fault_20_a_command_that_deletes_its_own_log_affects_no_other_job() {
    for what in ["rm -f \"$QUEUECTL_HOME\"/logs/*.log", "rm -rf \"$QUEUECTL_HOME/logs\""] {
        let home = Home::new();
        let has_log = "ls \"$QUEUECTL_HOME\"/logs/*.log >/dev/null 2>&1";
        let vandal = format!(
            "echo one; until {has_log}; do sleep 0.02; done; {what}; echo two; sleep 0.1; echo three"
        );
        home.enqueue("vandal", &vandal);
        home.enqueue("next", "head -c 100000 /dev/zero; echo end");
        Pool::drain(&home, "--concurrency 1");
        assert_eq!(home.state_of("vandal"), "completed", "{what}");
        // The deleted output is gone, and `logs` says so.
        let code = home.run(["logs", "vandal"]).status.code();
        assert!(matches!(code, Some(0 | 3)), "{what}: {code:?}");
        let printed = home.printed("next");
        assert!(printed.len() == 100_004 && printed.ends_with(b"\0end\n"), "{what}");
        assert!(!home.journal().contains("crashed"), "{what}: {}", home.journal());
    }
}

/// A job runs as the same user, so it can write anything into its own log.
#[test]
fn fault_20_a_command_that_corrupts_its_own_log_affects_no_other_job() {
    for what in [
        "head -c 3000000 /dev/urandom > $log",
        "truncate -s 0 $log",
        "truncate -s 41 $log",
        "printf qctllog > $log; truncate -s 10000000 $log",
        "rm -f $log; ln -s /dev/full $log",
    ] {
        let home = Home::new();
        home.set("log_max_bytes", "64K");
        let loud = "head -c 200000 /dev/zero";
        let find = "until log=$(ls \"$QUEUECTL_HOME\"/logs/*.log 2>/dev/null); do sleep 0.02; done";
        let vandal = format!("{loud}; {find}; {what} && : > spoiled; {loud}; echo words >&2; exit 4");
        home.enqueue("vandal", &vandal);
        home.enqueue("next", "head -c 50000 /dev/zero; echo end");
        Pool::drain(&home, "--concurrency 1");
        let job = home.show("vandal");
        assert_eq!((&job["exit_code"], &job["error"]), (&json!(4), &json!("exit code 4: words")), "{what}");
        assert!(home.folder().join("spoiled").exists(), "{what} failed");
        // `logs` prints the rest or an error.
        let shown = home.call(["logs", "vandal"]).into_command().output().expect("it runs");
        let said = String::from_utf8_lossy(&shown.stderr);
        assert!(
            matches!(shown.status.code(), Some(0 | 1 | 3 | 7)) && !said.contains("panicked"),
            "{what}: {said}"
        );
        assert!(home.printed("next").ends_with(b"\0end\n"), "{what}");
        assert!(!home.journal().contains("crashed"), "{what}: {}", home.journal());
    }
}

#[test]
fn fault_04_an_id_never_appears_in_a_file_name() {
    let home = Home::new();
    let id = "A.b_c:d-9";
    home.enqueue(id, "head -c 100000 /dev/zero; find \"$QUEUECTL_HOME\" > names; echo done >> names");
    Pool::drain(&home, "");
    let during = home.read("names");
    assert!(during.contains(".log") && during.contains(".slots"), "{during}");
    let after = String::from_utf8(
        std::process::Command::new("find").arg(home.path()).output().expect("find runs").stdout,
    );
    for names in [during, after.expect("names are text")] {
        assert!(!names.contains(id) && !names.contains("b_c"), "{names}");
    }
}

#[test]
fn fault_15_hostile_output_is_kept_byte_by_byte_and_escaped_in_json() {
    let home = Home::new();
    let hostile = "\u{1b}[31mred\u{1b}]0;title\u{7}\r\n\u{202e}gpj.exe\u{9b}2J\u{feff}\u{0}\n";
    home.file("hostile", hostile);
    let job = home.ran("cat hostile; cat hostile >&2; exit 1");
    assert_eq!(home.printed_text("it"), hostile.repeat(2));
    let error = job["error"].as_str().expect("an error");
    assert!(!error.contains(char::is_control) && error.starts_with("exit code 1: "), "{error:?}");
    let ran = home.run(["logs", "it", "--json"]).ok();
    assert!(
        !ran.stdout.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
        "{:?}",
        ran.stdout
    );
    let texts = ran.lines().into_iter().map(|line| {
        let frame: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        frame["text"].as_str().expect("text").to_owned()
    });
    assert_eq!(texts.collect::<String>(), hostile.repeat(2), "nothing is lost");
}

#[test]
fn fault_20_a_job_runs_although_the_log_folder_cannot_be_created() {
    let home = Home::with_jobs(&[]);
    home.enqueue("it", "head -c 100000 /dev/zero; echo words >&2; exit 4");
    fs::write(home.path().join("logs"), "a file instead of the folder").expect("written");
    Pool::drain(&home, "");
    let job = home.show("it");
    assert_eq!((&job["exit_code"], &job["error"]), (&json!(4), &json!("exit code 4: words")));
}
