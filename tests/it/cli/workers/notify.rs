//! The supervisor of `worker run` reports to the service manager that `NOTIFY_SOCKET` names: sd_notify(3).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use rustix::process::Signal;

use crate::cli::harness::Home;
use crate::cli::harness::background::{Background, STEP_TIMEOUT};
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome};

/// What systemd does with the messages of a service.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Self {
        Self::with(UnixDatagram::bind(path).expect("a socket"))
    }

    fn with(socket: UnixDatagram) -> Self {
        socket.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
        Self(socket)
    }

    /// The lines of the next message.
    #[track_caller]
    fn next(&self) -> Vec<String> {
        let mut buffer = [0; 512];
        let count = self.0.recv(&mut buffer).expect("a message");
        String::from_utf8_lossy(&buffer[..count]).lines().map(str::to_owned).collect()
    }

    /// Waits for a message with this line, and returns the whole message.
    #[track_caller]
    fn hears(&self, line: &str) -> Vec<String> {
        std::iter::repeat_with(|| self.next())
            .take(1_000)
            .find(|message| message.iter().any(|found| found == line))
            .unwrap_or_else(|| panic!("no message says {line}"))
    }
}

#[test]
fn a_service_says_that_it_is_ready_alive_and_stopping() {
    let home = WorkingHome::new();
    let socket = home.folder().join("notify");
    let manager = Manager::at(&socket);
    home.run(["enqueue", "--id", "a", "--", "sh", "-c", UNTIL_GO]).ok();
    let call = home.call(["worker", "run", "-q", "--count", "2"]);
    let run = Background::start(call.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "100000"));
    let ready = manager.hears("READY=1");
    assert!(ready[1].starts_with("STATUS=2 workers up, "), "{ready:?}");
    manager.hears("WATCHDOG=1");
    manager.hears("WATCHDOG=1");
    home.wait_for_state("a", "processing");
    run.signal(Signal::TERM);
    assert_eq!(manager.hears("STOPPING=1")[1], "STATUS=Stopping: the workers finish their jobs");
    manager.hears("WATCHDOG=1");
    home.go();
    assert!(run.end().0.success());
    assert_eq!(home.state_of("a"), "completed");
}

#[test]
fn the_status_line_counts_running_jobs() {
    let home = WorkingHome::new();
    let socket = home.folder().join("notify");
    let manager = Manager::at(&socket);
    let call = home.call(["worker", "run", "-q"]);
    let run = Background::start(call.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "100000"));
    assert_eq!(manager.hears("READY=1")[1], "STATUS=1 worker up, 0 jobs running");
    home.run(["enqueue", "--id", "a", "--", "sh", "-c", UNTIL_GO]).ok();
    manager.hears("STATUS=1 worker up, 1 job running");
    home.go();
    manager.hears("STATUS=1 worker up, 0 jobs running");
    run.signal(Signal::TERM);
    assert!(run.end().0.success());
}

#[test]
fn no_job_gets_the_socket_of_the_service_manager() {
    let home = Home::new();
    let name = format!("queuectl-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let manager = Manager::with(UnixDatagram::bind_addr(&address).expect("a socket"));
    home.run(["enqueue", "--id", "a", "--no-env-capture", "--", "sh", "-c", "env"]).ok();
    let call = home.call(["worker", "run", "-q", "--until-empty"]);
    let run = Background::start(call.env("NOTIFY_SOCKET", format!("@{name}")).env("WATCHDOG_USEC", "100000"));
    manager.hears("READY=1");
    assert!(run.end().0.success());
    home.run(["logs", "a"]).ok().shows("QUEUECTL_JOB_ID=a").shows_no("NOTIFY_SOCKET").shows_no("WATCHDOG");
}

#[test]
fn without_a_listener_the_workers_run_as_ever() {
    let home = Home::with_jobs(&["a"]);
    for socket in ["/nowhere/notify", "not-an-address"] {
        home.call(["worker", "run", "-q", "--until-empty"]).env("NOTIFY_SOCKET", socket).run().ok();
    }
    assert_eq!(home.state_of("a"), "completed");
}
