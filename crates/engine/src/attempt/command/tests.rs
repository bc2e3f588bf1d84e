//! The program that a claim spawns, with and without a shell.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::attempt::command::*;
use domain::job::limits::Limits;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::LeaseRef;

fn claim(command: &str, cwd: Option<&Path>) -> Claim {
    Claim {
        number: 1,
        lease: LeaseRef { job: "job1".parse().expect("an id"), attempt: 2 },
        lease_until: Timestamp::EPOCH,
        queue: QueueName::default_queue(),
        is_limited: false,
        priority: 0,
        due_at: Timestamp::EPOCH,
        command: command.to_owned(),
        cwd: cwd.map(|cwd| cwd.to_str().expect("UTF-8").to_owned()),
        environment: Some(environment(&[("PATH", "/bin:/usr/bin")]).into()),
        env: BTreeMap::new(),
        trace: None,
        stdin: None,
        timeout: None,
        limits: Limits::default(),
        runs_alone: false,
    }
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    let bytes: String = variables.iter().map(|(name, value)| [*name, "=", *value, "\0"].concat()).collect();
    Environment::from_bytes(bytes.as_bytes())
}

fn context() -> Context {
    Context {
        worker_id: "w1".parse().expect("an id"),
        home: PathBuf::from("/home/me/.queuectl"),
        store: None,
        own_environment: environment(&[("PATH", "/bin:/usr/bin"), ("OWN", "1")]),
    }
}

fn plan(claim: &Claim) -> Plan {
    prepare(claim, None, &context()).expect("the command can be prepared")
}

fn texts(strings: &[CString]) -> Vec<&str> {
    strings.iter().map(|text| text.to_str().expect("UTF-8")).collect()
}

fn variables(envp: &CstrArray) -> Vec<&str> {
    envp.iter().map(|text| text.to_str().expect("UTF-8")).collect()
}

fn os(text: &CString) -> &OsStr {
    OsStr::from_bytes(text.as_bytes())
}

fn run(invocation: &Invocation) -> Output {
    let mut command = Command::new(os(&invocation.program));
    command.arg0(os(&invocation.argv[0])).args(invocation.argv[1..].iter().map(os)).env_clear();
    for entry in variables(&invocation.envp) {
        let (name, value) = entry.split_once('=').expect("NAME=value");
        command.env(name, value);
    }
    command.current_dir(os(&invocation.cwd)).output().expect("it starts")
}

/// The lines of the output, without the variables that bash adds when it runs as `sh`.
fn lines(output: &Output) -> Vec<String> {
    let is_bash = |line: &&str| line.starts_with("_=") || line.starts_with("SHLVL=");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<String> = text.lines().filter(|line| !is_bash(line)).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_plain_command_is_started_directly_and_can_fall_back() {
    let plan = plan(&claim("ls -l 'a b'", None));
    let invocation = &plan.invocation;
    assert_eq!(invocation.program.as_c_str(), c"/bin/ls");
    assert_eq!(texts(&invocation.argv), ["ls", "-l", "a b"]);
    let (envp, cwd) = (invocation.envp.clone(), invocation.cwd.clone());
    let shell = plan.fallback().expect("it was direct");
    assert_eq!(shell.program.as_c_str(), c"/bin/sh");
    assert_eq!(texts(&shell.argv), ["sh", "-c", "ls -l 'a b'"]);
    assert_eq!((shell.envp, shell.cwd), (envp, cwd));
}

#[test]
fn a_command_that_needs_the_shell_has_no_fallback() {
    for command in ["ls | wc", "echo a", "no-such-program-anywhere a", "true --help", "cd /; ls"] {
        let plan = plan(&claim(command, None));
        assert_eq!(texts(&plan.invocation.argv), ["sh", "-c", command]);
        assert_eq!(plan.fallback(), None);
    }
}

#[test]
fn a_command_that_looks_like_an_option_is_still_a_command() {
    for command in ["-x", "+x; ls", "--"] {
        let invocation = plan(&claim(command, None)).invocation.clone();
        assert_eq!(texts(&invocation.argv), ["sh", "-c", "--", command]);
        assert_ne!(run(&invocation).status.code(), Some(2), "{command}");
    }
}

#[test]
fn builtins_with_a_fixed_result_are_started_as_programs() {
    for (command, name, code) in [("true", "true", 0), (" : ", "true", 0), ("false", "false", 1)] {
        let plan = plan(&claim(command, None));
        assert!(plan.fallback().is_some(), "{command}");
        assert_eq!(texts(&plan.invocation.argv), [name]);
        assert_eq!(run(&plan.invocation).status.code(), Some(code));
        assert_eq!(run(&plan.fallback().expect("it was direct")).status.code(), Some(code));
    }
}

#[test]
fn a_direct_start_cannot_be_distinguished_from_one_through_a_shell() {
    let folder = tempfile::tempdir().expect("tempdir");
    let cwd = folder.path().join("cwd");
    let link = folder.path().join("link");
    fs::create_dir_all(cwd.join("bin")).expect("folder");
    symlink(&cwd, &link).expect("link");
    symlink("/bin/cat", cwd.join("bin/show")).expect("link");
    symlink("/bin/cat", cwd.join("show")).expect("link");
    for command in [
        "env",
        "/usr/bin/env",
        "/bin/pwd -L",
        "cat /proc/self/cmdline",
        "show /proc/self/cmdline",
        "./show /proc/self/cmdline ''",
        "bin/show '/proc/self/cmdline'",
        "readlink /proc/self/cwd",
    ] {
        let mut claim = claim(command, Some(&link));
        claim.environment = Some(
            environment(&[
                ("PATH", "bin:/usr/bin:/bin"),
                ("OLDPWD", "/usr"),
                ("PWD", "/usr"),
                ("QUEUECTL_ATTEMPT", "77"),
                ("EMPTY", ""),
            ])
            .into(),
        );
        claim.env.insert("ADDED".to_owned(), "a b\n".to_owned());
        let plan = plan(&claim);
        let direct = run(&plan.invocation);
        let shell = run(&plan.fallback().expect("it was direct"));
        assert_eq!(lines(&direct), lines(&shell), "{command}");
        assert_eq!(direct.status, shell.status, "{command}");
        assert_eq!(String::from_utf8_lossy(&direct.stderr), String::from_utf8_lossy(&shell.stderr));
    }
}

#[test]
fn a_script_sees_the_same_name_as_from_a_shell() {
    let folder = tempfile::tempdir().expect("tempdir");
    fs::create_dir(folder.path().join("bin")).expect("folder");
    for (command, path, program) in
        [("./run a", "/bin", "./run"), ("run a", "bin:/bin", "bin/run"), ("bin/../run", "/bin", "bin/../run")]
    {
        for script in ["run", "bin/run"] {
            let script = folder.path().join(script);
            fs::write(&script, "#!/bin/sh\n").expect("script");
            fs::set_permissions(&script, Permissions::from_mode(0o700)).expect("mode");
        }
        let mut claim = claim(command, Some(folder.path()));
        claim.environment = Some(environment(&[("PATH", path)]).into());
        assert_eq!(plan(&claim).invocation.program.to_str(), Ok(program));
    }
}

#[test]
fn the_environment_identifies_the_attempt() {
    let mut claim = claim("env", Some(Path::new("/usr")));
    claim.environment = Some(environment(&[("A", "1"), ("QUEUECTL_JOB_ID", "x"), ("OLDPWD", "/")]).into());
    claim.env.insert("QUEUECTL_HOME".to_owned(), "/elsewhere".to_owned());
    assert_eq!(
        variables(&plan(&claim).invocation.envp),
        [
            "A=1",
            "QUEUECTL_JOB_ID=job1",
            "QUEUECTL_ATTEMPT=2",
            "QUEUECTL_QUEUE=default",
            "QUEUECTL_WORKER_ID=w1",
            "QUEUECTL_HOME=/home/me/.queuectl",
            "PWD=/usr"
        ]
    );
}

#[test]
fn a_job_without_an_environment_gets_that_of_the_worker() {
    let mut claim = claim("ls", None);
    claim.environment = None;
    let plan = plan(&claim);
    assert!(variables(&plan.invocation.envp).contains(&"OWN=1"));
    assert!(plan.fallback().is_some(), "its PATH is the worker's as well");
}

#[test]
fn variables_that_a_shell_would_change_are_left_to_it() {
    for name in ["BASH_FUNC_ls%%", "SHELLOPTS", "a.b"] {
        let mut claim = claim("ls", None);
        claim.env.insert(name.to_owned(), "x".to_owned());
        assert!(plan(&claim).fallback().is_none(), "{name}");
    }
}

#[test]
fn a_job_without_a_cwd_starts_in_the_home_directory_of_its_user() {
    let home = tempfile::tempdir().expect("tempdir");
    fs::create_dir(home.path().join("sub")).expect("folder");
    let path = home.path().to_str().expect("UTF-8");
    let sub = format!("{path}/sub");
    for (cwd, variable, folder) in [
        (None, Some(path), path),
        (Some("sub"), Some(path), sub.as_str()),
        (Some("/usr"), Some(path), "/usr"),
        (None, None, "/"),
        (None, Some(""), "/"),
        (None, Some("relative"), "/"),
        (None, Some("/no/such/folder"), "/"),
        (Some("usr"), None, "/usr"),
    ] {
        let mut claim = claim("ls", cwd.map(Path::new));
        claim.env.extend(variable.map(|home| ("HOME".to_owned(), home.to_owned())));
        let invocation = plan(&claim).invocation.clone();
        assert_eq!(invocation.cwd.to_str(), Ok(folder), "{cwd:?} {variable:?}");
        assert!(variables(&invocation.envp).contains(&format!("PWD={folder}").as_str()));
    }
}

#[test]
fn the_error_for_a_bad_cwd_names_it() {
    for (cwd, message) in [
        ("/no/such/dir", "cwd /no/such/dir does not exist"),
        ("/bin/sh/x", "cwd /bin/sh/x does not exist"),
        ("/bin/sh", "cwd /bin/sh is not a directory"),
        ("no/such", "cwd /no/such does not exist"),
    ] {
        let problem = check_cwd(plan(&claim("ls", Some(Path::new(cwd)))).cwd()).expect_err("no such folder");
        assert_eq!(problem.to_string(), message);
    }
    let long = format!("/{}", "x".repeat(300));
    let problem = check_cwd(plan(&claim("ls", Some(Path::new(&long)))).cwd()).expect_err("too long");
    assert!(problem.to_string().starts_with(&format!("cwd {long} cannot be entered: ")), "{problem}");
}

#[test]
fn a_nul_byte_is_an_error_and_not_a_panic() {
    let message = |claim: &Claim| prepare(claim, None, &context()).expect_err("a NUL byte").to_string();
    assert_eq!(message(&claim("ls \0", None)), "its command contains a NUL byte");
    let mut in_variable = claim("ls", None);
    in_variable.env.insert("A".to_owned(), "\0".to_owned());
    assert_eq!(message(&in_variable), "its environment contains a NUL byte");
    assert_eq!(message(&claim("ls", Some(Path::new("/\0")))), "its cwd contains a NUL byte");
}
