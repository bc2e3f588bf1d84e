use crate::cli::harness::Home;

#[test]
fn every_script_completes_the_verbs() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = home.run(["completions", shell]).ok().says_nothing().shows("max-retries");
        for verb in ["enqueue", "schedule", "batch", "queue", "hook", "explain", "graph", "prune", "restore"]
        {
            assert!(ran.stdout.contains(verb), "{verb} is missing for {shell}");
        }
    }
    assert!(!home.path().exists(), "a script needs no queue");
}

#[test]
fn bash_accepts_its_script() {
    let home = Home::new();
    let script = home.run(["completions", "bash"]).ok().stdout;
    let path = home.file("completions", script);
    let status = std::process::Command::new("bash").arg("-n").arg(path).status().expect("bash runs");
    assert!(status.success());
}

#[test]
fn an_unknown_shell_is_refused_with_the_known_ones() {
    Home::new().run(["completions", "tcsh"]).fails(2).says("bash, elvish, fish");
}
