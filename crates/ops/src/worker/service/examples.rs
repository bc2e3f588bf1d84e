//! The same service for machines without systemd, as examples to adapt.

use super::{Service, ServiceError, text};
use domain::text::shell::quote_words;
use sys::process::user;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub manager: &'static str,
    /// Where the text belongs.
    pub file: String,
    pub text: String,
}

/// One example for each of the service managers that are common besides systemd.
pub fn examples(service: &Service) -> Result<Vec<Example>, ServiceError> {
    let command = service.command_that_listens()?;
    let (program, arguments) = (quote_words(&command[..1]), quote_words(&command[1..]));
    let line = quote_words(&command);
    let home = text(&service.home)?;
    let (name, what) = (service.name.to_string(), service.description());
    let user = service.account.clone().unwrap_or_else(user::name);
    Ok(vec![
        Example {
            manager: "OpenRC",
            file: format!("/etc/init.d/{name}"),
            text: format!(
                "#!/sbin/openrc-run\n\
                 description=\"{what}\"\n\
                 supervisor=supervise-daemon\n\
                 command={program}\n\
                 command_args={}\n\
                 command_user={user}\n\
                 # A stop lets the running jobs finish, for at most an hour.\n\
                 retry=\"TERM/3600/KILL/10\"\n\
                 depend() {{\n\
                 \x20   need localmount\n\
                 \x20   after net postgresql\n\
                 }}\n",
                quote_words(&[arguments])
            ),
        },
        Example {
            manager: "runit",
            file: format!("/etc/sv/{name}/run"),
            text: format!("#!/bin/sh\nexec 2>&1\nexec chpst -u {user} {line}\n"),
        },
        Example {
            manager: "supervisord",
            file: format!("/etc/supervisor/conf.d/{name}.conf"),
            text: format!(
                "[program:{name}]\n\
                 command={}\n\
                 user={user}\n\
                 directory={}\n\
                 ; A stop lets the running jobs finish, for at most an hour.\n\
                 stopsignal=TERM\n\
                 stopwaitsecs=3600\n\
                 redirect_stderr=true\n",
                line.replace('%', "%%"),
                home.replace('%', "%%")
            ),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::service::{Scope, ServiceKind, ServiceName};

    #[test]
    fn every_example_runs_the_same_command() {
        let service = Service {
            scope: Scope::System,
            name: ServiceName::default(),
            program: "/usr/bin/queuectl".into(),
            home: "/srv/my queue".into(),
            store: None,
            is_on_server: false,
            worker_flags: vec!["--count".to_owned(), "2".to_owned()],
            listen: vec!["127.0.0.1:7878".to_owned()],
            account: Some("jobs".to_owned()),
            writable: Vec::new(),
        };
        let dashboard =
            Service { name: ServiceName::default().of(ServiceKind::Dashboard), ..service.clone() };
        for Example { text, .. } in examples(&dashboard).expect("examples") {
            assert!(text.contains("dashboard --quiet --listen 127.0.0.1:7878"), "{text}");
        }
        let examples = examples(&service).expect("examples");
        let managers: Vec<&str> = examples.iter().map(|example| example.manager).collect();
        assert_eq!(managers, ["OpenRC", "runit", "supervisord"]);
        for Example { text, .. } in examples {
            assert!(text.contains("worker run --count 2"), "{text}");
            assert!(!text.contains("--listen"), "workers do not listen: {text}");
            assert!(text.contains("/srv/my queue") && text.contains("jobs"), "{text}");
        }
    }
}
