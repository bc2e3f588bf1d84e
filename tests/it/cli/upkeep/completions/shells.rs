//! TAB in real shells on a pseudo-terminal.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::cli::harness::pseudo_terminal::Terminal;
use crate::cli::harness::{Home, PROGRAM};

const CTRL_U: &str = "\u{15}";

/// How a shell is started without a user's configuration, and how it loads the script.
struct Shell {
    command: &'static [&'static str],
    setup: &'static str,
}

const BASH: Shell =
    Shell { command: &["bash", "--norc", "--noprofile", "-i"], setup: "source <(queuectl completions bash)" };
const ZSH: Shell = Shell {
    command: &["zsh", "-f", "-i"],
    setup: "autoload -Uz compinit; compinit -u -d ~/dump; source <(queuectl completions zsh)",
};
const FISH: Shell =
    Shell { command: &["fish", "--no-config", "-i"], setup: "queuectl completions fish | source" };

impl Shell {
    /// The shell on a terminal, with the script loaded, a program `zebra-maker` and a file `jobs-of-today`.
    fn start(&self, home: &Home) -> Terminal {
        let programs = home.folder().join("programs");
        fs::create_dir(&programs).expect("a folder");
        symlink(PROGRAM, programs.join("queuectl")).expect("a link");
        let maker = home.file("programs/zebra-maker", "#!/bin/sh\n");
        fs::set_permissions(maker, fs::Permissions::from_mode(0o755)).expect("it is a program");
        home.file("jobs-of-today", "{\"command\":\"from-file\"}\n");
        let path = std::env::var("PATH").expect("there is a path");
        // Shells want the terminal to be theirs.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).args(self.command).current_dir(home.folder()).env_clear();
        command.env("PATH", format!("{}:{path}", programs.display())).env("HOME", home.folder());
        command.env("QUEUECTL_HOME", home.path()).env("LC_ALL", "C.UTF-8").env("INPUTRC", "/dev/null");
        let mut terminal = Terminal::start(command, 100, 40);
        terminal.type_in(&format!("{}; echo re''ady\n", self.setup));
        terminal.wait_until(|screen| screen.contains("ready"));
        terminal
    }
}

fn completes(shell: &Shell) {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "build:1", "--", "make", "all"]).ok();
    home.run(["enqueue", "-q", "--", "make", "unique-words"]).ok();
    let mut terminal = shell.start(&home);

    // A list shows numbers with states and commands.
    terminal.type_in("queuectl cancel \t\t");
    terminal.wait_until(|screen| screen.contains("make unique-words") && screen.contains("pending"));
    terminal.type_in(CTRL_U);

    // A verb, then an id with a colon, which bash treats in its own way.
    terminal.type_in("queuectl sho\tbui\t--json\n");
    terminal.wait_until(|screen| screen.contains("\"id\": \"build:1\""));

    // The value of a flag, after a blank and after an equals sign.
    terminal.type_in("queuectl list --stat\tpen\t--json\n");
    terminal.wait_until(|screen| screen.matches("\"command\": \"make unique-words\"").count() == 1);
    terminal.type_in("queuectl list --state=pen\t--json\n");
    terminal.wait_until(|screen| screen.matches("\"command\": \"make unique-words\"").count() == 2);

    // Programs and their files belong to the shell.
    terminal.type_in("queuectl enqueue zebra-m\t--flag jobs-of\t\n");
    terminal.wait_until(|screen| screen.contains("Job 3 enqueued"));
    terminal.type_in("queuectl enqueue --file jobs-of\t\n");
    terminal.wait_until(|screen| screen.contains("1 job enqueued"));
    let commands: Vec<String> = home.jobs().into_iter().map(|job| job.command).collect();
    assert_eq!(commands[..2], ["from-file", "zebra-maker --flag jobs-of-today"], "{}", terminal.screen());

    // No hidden verb follows: the word stays as it is.
    terminal.type_in("queuectl __w\t\n");
    terminal.wait_until(|screen| screen.contains("unknown command `__w`"));

    terminal.type_in("exit\n");
    assert_eq!(terminal.end().code, Some(2), "the exit code of the last command");
}

#[test]
fn bash_completes() {
    completes(&BASH);
}

#[test]
fn zsh_completes() {
    completes(&ZSH);
}

#[test]
fn fish_completes() {
    completes(&FISH);
}
