//! The unit of a service, as systemd reads it.

use std::fmt::Write;
use std::path::Path;

use super::{Scope, Service, ServiceError, ServiceKind, text};

/// The directories that `ProtectHome=` hides.
const HIDDEN_BY_PROTECT_HOME: [&str; 3] = ["/home", "/root", "/run/user"];

/// The directories that `PrivateTmp=` replaces by empty ones.
const HIDDEN_BY_PRIVATE_TMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// A path of the service that it would not see in its sandbox.
pub(super) fn hidden_path(service: &Service) -> Option<&Path> {
    service.account.as_ref()?;
    let paths = [&service.program, &service.home].into_iter().chain(&service.writable);
    let is_hidden = |path: &&Path| HIDDEN_BY_PRIVATE_TMP.iter().any(|folder| path.starts_with(folder));
    paths.map(std::path::PathBuf::as_path).find(is_hidden)
}

/// The text of the unit.
pub fn unit(service: &Service) -> Result<String, ServiceError> {
    let Service { scope, name, .. } = service;
    let edit = match scope {
        Scope::User => "systemctl --user edit",
        Scope::System => "systemctl edit",
    };
    let home = text(&service.home)?;
    let page = match name.kind() {
        ServiceKind::Workers => "queuectl-worker-run",
        ServiceKind::Dashboard => "queuectl-dashboard",
    };
    let mut unit = head(&format!("{edit} {name}"));
    let _ = writeln!(
        unit,
        "[Unit]\nDescription={} ({})\nDocumentation=man:{page}(1)",
        service.description(),
        in_line(home)
    );
    if let Some(socket) = name.socket() {
        let _ = writeln!(unit, "Requires={socket}\nAfter={socket}");
    }
    if *scope == Scope::System {
        if service.is_on_server {
            // `After=` alone does not make systemd wait for the network.
            let _ = writeln!(unit, "Wants=network-online.target");
            let _ = writeln!(unit, "After=network-online.target postgresql.service");
        }
        let _ = writeln!(unit, "RequiresMountsFor={}", word(home));
    }
    unit.push_str("\n[Service]\n");
    let kind = match name.kind() {
        ServiceKind::Workers => "notify",
        ServiceKind::Dashboard => "exec",
    };
    let _ = writeln!(unit, "Type={kind}\nExecStart={}", command_line(&service.command()?));
    if let Some(account) = &service.account {
        let _ = writeln!(unit, "User={account}");
    }
    unit.push_str(RESTART);
    match name.kind() {
        ServiceKind::Workers => unit.push_str(LIFE_OF_WORKERS),
        ServiceKind::Dashboard => {}
    }
    if service.account.is_some() {
        unit.push_str(&sandbox(service)?);
    }
    let target = match scope {
        Scope::User => "default.target",
        Scope::System => "multi-user.target",
    };
    let _ = match name.socket() {
        None => write!(unit, "\n[Install]\nWantedBy={target}\n"),
        Some(socket) => write!(unit, "\n[Install]\nAlso={socket}\n"),
    };
    Ok(unit)
}

/// The text of the unit with the sockets of a dashboard; `None` for workers.
pub fn socket_unit(service: &Service) -> Result<Option<String>, ServiceError> {
    let Some(socket) = service.name.socket() else {
        return Ok(None);
    };
    let edit = match service.scope {
        Scope::User => "systemctl --user edit",
        Scope::System => "systemctl edit",
    };
    let mut unit = head(&format!("{edit} {socket}"));
    let home = in_line(text(&service.home)?);
    let _ = writeln!(unit, "[Unit]\nDescription=queuectl dashboard, its sockets ({home})\n\n[Socket]");
    for address in &service.listen {
        let address = address.strip_prefix("unix:").unwrap_or(address);
        let _ = writeln!(unit, "ListenStream={}", in_line(address));
    }
    // Of sockets that are files.
    unit.push_str("SocketMode=0600\n");
    if let Some(account) = &service.account {
        let _ = writeln!(unit, "SocketUser={account}");
    }
    unit.push_str("\n[Install]\nWantedBy=sockets.target\n");
    Ok(Some(unit))
}

/// The first lines of a unit. The package leaves them out, because its files are not written by `service install`.
fn head(edit: &str) -> String {
    format!(
        "# Written by `queuectl service install`, which replaces this file when it runs again.\n\
         # `{edit}` adds settings of your own.\n"
    )
}

/// Exit codes 2 and 7 say that starting again cannot help: wrong usage, or data that this version cannot read.
const RESTART: &str = "\
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=2 7
";

/// How workers live and end.
const LIFE_OF_WORKERS: &str = "\
# The supervisor gives signs of life; a supervisor that hangs is replaced.
WatchdogSec=3min
# A stop lets the running jobs finish, however long they take. `systemctl kill` ends them.
KillMode=mixed
TimeoutStopSec=infinity
# Each job runs in a control group of its own. A job that runs out of memory does not end the service.
Delegate=yes
OOMPolicy=continue
";

/// What jobs cannot do that run as an account of their own. Control groups stay writable: see `Delegate=`.
fn sandbox(service: &Service) -> Result<String, ServiceError> {
    let writable = std::iter::once(&service.home).chain(&service.writable);
    let paths =
        writable.clone().map(|path| Ok(word(text(path)?))).collect::<Result<Vec<_>, ServiceError>>()?;
    let is_hidden = |path: &Path| HIDDEN_BY_PROTECT_HOME.iter().any(|folder| path.starts_with(folder));
    let needs_homes = writable.chain([&service.program]).any(|path| is_hidden(path));
    let protect_home = if needs_homes { "read-only" } else { "yes" };
    Ok(format!(
        "\n\
         # Jobs write in these directories and in a /tmp of their own, and gain no rights.\n\
         ProtectSystem=strict\n\
         ReadWritePaths={}\n\
         ProtectHome={protect_home}\n\
         PrivateTmp=yes\n\
         NoNewPrivileges=yes\n\
         CapabilityBoundingSet=\n\
         RestrictSUIDSGID=yes\n\
         ProtectKernelModules=yes\n\
         ProtectKernelTunables=yes\n\
         ProtectKernelLogs=yes\n",
        paths.join(" ")
    ))
}

/// A command as `ExecStart=` reads it. systemd replaces variables in arguments, but not in the path of the program.
fn command_line(words: &[String]) -> String {
    let mut words = words.iter();
    let program = words.next().map(|program| word(program));
    let arguments = words.map(|argument| word(&argument.replace('$', "$$")));
    program.into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// One word of a setting that takes several. `%` begins a specifier of systemd.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=,@%$".contains(c);
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '%' => escaped.push_str("%%"),
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    if !text.is_empty() && text.chars().all(is_plain) { escaped } else { format!("\"{escaped}\"") }
}

/// The value of a setting that is one line of text.
fn in_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>().replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(scope: Scope, account: Option<&str>) -> Service {
        Service {
            scope,
            name: "mail".parse().expect("a name"),
            program: "/usr/bin/queuectl".into(),
            home: "/var/lib/queuectl".into(),
            store: None,
            is_on_server: false,
            worker_flags: vec!["--count".to_owned(), "2".to_owned()],
            listen: vec!["127.0.0.1:7878".to_owned(), "unix:/run/q.sock".to_owned()],
            account: account.map(str::to_owned),
            writable: Vec::new(),
        }
    }

    fn lines(service: &Service) -> Vec<String> {
        unit(service).expect("a unit").lines().map(str::to_owned).collect()
    }

    fn has(lines: &[String], line: &str) -> bool {
        lines.iter().any(|found| found == line)
    }

    #[test]
    fn a_unit_of_the_machine_starts_at_boot_and_one_of_a_user_with_its_systemd() {
        let system = lines(&service(Scope::System, None));
        assert!(has(&system, "ExecStart=/usr/bin/queuectl --home /var/lib/queuectl worker run --count 2"));
        assert!(has(&system, "WantedBy=multi-user.target") && has(&system, "Type=notify"));
        assert!(has(&system, "Delegate=yes") && has(&system, "KillMode=mixed"));
        assert!(!system.iter().any(|line| line.contains("network")), "a file needs no network");
        let on_server = lines(&Service { is_on_server: true, ..service(Scope::System, None) });
        assert!(has(&on_server, "Wants=network-online.target"), "{on_server:?}");
        assert!(has(&on_server, "After=network-online.target postgresql.service"), "{on_server:?}");
        let user = lines(&service(Scope::User, None));
        assert!(has(&user, "WantedBy=default.target"));
        assert!(!user.iter().any(|line| line.starts_with("After=")), "a user's systemd knows no such unit");
    }

    #[test]
    fn a_dashboard_starts_with_its_first_client() {
        let mut service = service(Scope::System, Some("jobs"));
        assert_eq!(socket_unit(&service).expect("text"), None);
        service.name = service.name.of(ServiceKind::Dashboard);
        let unit = lines(&service);
        assert!(
            has(&unit, "ExecStart=/usr/bin/queuectl --home /var/lib/queuectl dashboard --quiet"),
            "{unit:?}"
        );
        assert!(has(&unit, "Requires=queuectl-dashboard-mail.socket") && has(&unit, "ProtectHome=yes"));
        assert!(has(&unit, "Also=queuectl-dashboard-mail.socket") && !has(&unit, "Delegate=yes"));
        let socket = socket_unit(&service).expect("text").expect("it has sockets");
        for line in ["ListenStream=127.0.0.1:7878", "ListenStream=/run/q.sock", "SocketUser=jobs"] {
            assert!(socket.lines().any(|found| found == line), "{line}: {socket}");
        }
    }

    #[test]
    fn only_an_account_of_its_own_gets_a_sandbox() {
        let without = lines(&service(Scope::System, None));
        assert!(!without.iter().any(|line| line.starts_with("Protect") || line.starts_with("NoNew")));
        let mut with_account = service(Scope::System, Some("jobs"));
        assert!(has(&lines(&with_account), "User=jobs") && has(&lines(&with_account), "ProtectHome=yes"));
        with_account.writable = vec!["/srv/my data".into(), "/home/ada/out".into()];
        let lines = lines(&with_account);
        assert!(has(&lines, "ReadWritePaths=/var/lib/queuectl \"/srv/my data\" /home/ada/out"), "{lines:?}");
        assert!(has(&lines, "ProtectHome=read-only"), "a directory that jobs use must not be hidden");
        assert!(!lines.iter().any(|line| line.starts_with("ProtectControlGroups")), "slots need groups");
    }

    #[test]
    fn a_sandbox_hides_temporary_files() {
        let sandboxed = service(Scope::System, Some("jobs"));
        assert_eq!(hidden_path(&sandboxed), None);
        for path in ["/tmp/q", "/var/tmp/q/bin"] {
            let home = Service { home: path.into(), ..sandboxed.clone() };
            let program = Service { program: path.into(), ..sandboxed.clone() };
            let writable = Service { writable: vec![path.into()], ..sandboxed.clone() };
            for service in [home, program, writable] {
                assert_eq!(hidden_path(&service), Some(Path::new(path)));
                assert_eq!(hidden_path(&Service { account: None, ..service }), None);
            }
        }
    }

    #[test]
    fn words_reach_the_program_as_they_are() {
        for (text, written) in [
            ("/a/b", "/a/b"),
            ("a b", "\"a b\""),
            ("", "\"\""),
            ("50%", "50%%"),
            ("say \"x\\\"", "\"say \\\"x\\\\\\\"\""),
            ("a\nb", "\"a\\x0ab\""),
            ("ä;", "\"ä;\""),
        ] {
            assert_eq!(word(text), written, "{text}");
        }
        let words = ["/opt/$x/queuectl", "--home", "/srv/$HOME"].map(str::to_owned);
        assert_eq!(command_line(&words), "/opt/$x/queuectl --home /srv/$$HOME");
    }
}
