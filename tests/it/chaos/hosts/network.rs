//! A network of namespaces. Each lives as long as the process that holds it, and that as long as the test: nothing has a
//! name in the system, so nothing is left behind, however the test ends.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Of the server, on the bridge.
pub(super) const SERVER_IP: &str = "10.99.0.1";

pub(super) struct Namespace {
    holder: Child,
}

impl Namespace {
    fn new() -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", "ip link set lo up && echo up; exec cat"]);
        let quiet = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = quiet.spawn().ok()?;
        let mut said = String::new();
        let out = holder.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut said).expect("the holder prints a line");
        let namespace = Self { holder };
        (said == "up\n").then_some(namespace)
    }

    /// The words before a program that is to run in it.
    pub(super) fn enter(&self) -> Vec<OsString> {
        vec!["nsenter".into(), format!("--net=/proc/{}/ns/net", self.holder.id()).into()]
    }

    fn ip(&self, args: &str) -> bool {
        let mut words = self.enter().into_iter();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).arg("ip").args(args.split(' ')).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A hub with a bridge, and hosts that are joined to it.
pub(super) struct Network {
    pub(super) hub: Namespace,
    pub(super) hosts: Vec<Namespace>,
}

impl Network {
    /// `None` where that is not permitted, or the kernel lacks a part of it.
    pub(super) fn new(count: usize) -> Option<Self> {
        let hub = Namespace::new()?;
        let is_made = hub.ip("link add br0 type bridge")
            && hub.ip(&format!("addr add {SERVER_IP}/24 dev br0"))
            && hub.ip("link set br0 up");
        let hosts: Vec<Namespace> = (0..count).map(|_| Namespace::new()).collect::<Option<_>>()?;
        let are_joined = hosts.iter().enumerate().all(|(at, host)| {
            hub.ip(&format!("link add port{at} type veth peer name eth0 netns {}", host.holder.id()))
                && hub.ip(&format!("link set port{at} master br0 up"))
                && host.ip(&format!("addr add 10.99.0.{}/24 dev eth0", at + 10))
                && host.ip("link set eth0 up")
        });
        (is_made && are_joined).then_some(Self { hub, hosts })
    }

    /// Pulls the cable of a host, or plugs it in.
    pub(super) fn set_cable(&self, host: usize, state: &str) -> bool {
        self.hub.ip(&format!("link set port{host} {state}"))
    }
}
