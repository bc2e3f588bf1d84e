//! The program in the background, with its output read line by line from two pipes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::Call;

/// Longer than any successful operation takes.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Background {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Background {
    pub(crate) fn start(call: Call) -> Self {
        Self::start_through(call.interruptible())
    }

    /// Starts a call that already goes through another command.
    pub(crate) fn start_through(mut call: Call) -> Self {
        let mut child = call.spawn();
        drop(child.stdin.take());
        let stdout = lines(child.stdout.take().expect("stdout is a pipe"));
        let stderr = lines(child.stderr.take().expect("stderr is a pipe"));
        Self { child, stdout, stderr }
    }

    /// The next line on standard output.
    #[track_caller]
    pub(crate) fn prints(&self) -> String {
        self.stdout.recv_timeout(STEP_TIMEOUT).expect("a line on stdout")
    }

    /// The next line on standard error.
    #[track_caller]
    pub(crate) fn says(&self) -> String {
        self.stderr.recv_timeout(STEP_TIMEOUT).expect("a line on stderr")
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it gets the signal");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// Whether it has installed handlers for the signals that would end it.
    pub(crate) fn waits(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap_or("0");
        u64::from_str_radix(blocked, 16).is_ok_and(|set| set != 0)
    }

    /// Whether it sleeps until a time, and waits for nothing else.
    pub(crate) fn is_asleep(&self) -> bool {
        let function =
            std::fs::read_to_string(format!("/proc/{}/wchan", self.child.id())).unwrap_or_default();
        function.contains("nanosleep")
    }

    /// Whether a signal has stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
    }

    /// Waits for its end, and returns it with the unread lines: from stdout, then from stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>) {
        let rest = [&self.stdout, &self.stderr].into_iter().flat_map(|lines| {
            std::iter::from_fn(|| match lines.recv_timeout(STEP_TIMEOUT) {
                Ok(line) => Some(line),
                Err(error) => {
                    assert_eq!(error, std::sync::mpsc::RecvTimeoutError::Disconnected, "it does not end");
                    None
                }
            })
        });
        let rest = rest.collect();
        (self.child.wait().expect("it ends"), rest)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the end of a program whose output is not read.
pub(crate) fn end_of(mut child: Child) -> ExitStatus {
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("it is a child");
    let timeout = Timespec::try_from(STEP_TIMEOUT).expect("a short time");
    let ended =
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)).expect("it can be waited for");
    if ended == 0 {
        let _ = child.kill();
    }
    let status = child.wait().expect("it ends");
    assert_eq!(ended, 1, "it does not end");
    status
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            if sender.send(line.expect("it is text")).is_err() {
                return;
            }
        }
    });
    receiver
}
