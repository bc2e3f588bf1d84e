//! Completion: the scripts, the answers of the program, and TAB in real shells.

mod answers;
mod shells;

use crate::cli::harness::Home;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

#[test]
fn every_script_is_short_and_asks_the_program() {
    let home = Home::new();
    for shell in SHELLS {
        let ran = home.run(["completions", shell]).ok().says_nothing();
        assert!(ran.stdout.contains(&format!("queuectl __complete {shell} -- ")), "{ran}");
        assert!(ran.lines().len() < 45, "{ran}");
    }
    assert!(!home.path().exists(), "a script needs no queue");
}

#[test]
fn every_shell_accepts_its_script() {
    let home = Home::new();
    for shell in SHELLS {
        let script = home.run(["completions", shell]).ok().stdout;
        let path = home.file(shell, script);
        let status = std::process::Command::new(shell).arg("-n").arg(path).status();
        assert!(status.expect("`./check` installs the shells").success(), "{shell}");
    }
}

#[test]
fn an_unknown_shell_is_refused_with_the_known_ones() {
    Home::new().run(["completions", "tcsh"]).fails(2).says("bash, zsh, fish");
}
