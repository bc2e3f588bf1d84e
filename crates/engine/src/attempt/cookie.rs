//! The environment variables by which a process of an attempt is recognised even after its parents have ended: the
//! command is started with them and its children inherit them.

use super::variables::WORKER_ID;
use domain::values::name::WorkerId;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookie<'a> {
    pub(crate) worker: &'a WorkerId,
    /// The variables that distinguish an attempt or a delivery from all others of the worker.
    pub(crate) owner: &'a [(&'static str, &'a str)],
}

impl Cookie<'_> {
    /// Whether a process with this environment (in the format of `/proc/PID/environ`) belongs to this attempt or
    /// delivery.
    pub(crate) fn is_in(&self, environ: &[u8]) -> bool {
        self.of_worker(environ) && self.owner.iter().all(|(name, value)| has(environ, name, value))
    }

    /// Whether it belongs to any attempt or delivery of this worker.
    pub(crate) fn of_worker(&self, environ: &[u8]) -> bool {
        names_worker(environ, self.worker.as_str())
    }
}

/// Whether a process with this environment belongs to any attempt or delivery of this worker.
pub(crate) fn names_worker(environ: &[u8], worker: &str) -> bool {
    has(environ, WORKER_ID, worker)
}

fn has(environ: &[u8], name: &str, value: &str) -> bool {
    let value_of = |entry| <[u8]>::strip_prefix(entry, name.as_bytes())?.strip_prefix(b"=");
    environ.split(|byte| *byte == 0).any(|entry| value_of(entry) == Some(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::variables::{ATTEMPT, DELIVERY, JOB_ID};

    fn is_in(owner: &[(&'static str, &str)], environ: &[u8]) -> bool {
        Cookie { worker: &"host-7.1".parse().expect("an id"), owner }.is_in(environ)
    }

    const ATTEMPT_OWNER: &[(&str, &str)] = &[(JOB_ID, "job1"), (ATTEMPT, "2")];

    #[test]
    fn an_attempt_is_recognised_by_all_three_variables() {
        let whole = "A=b\0QUEUECTL_JOB_ID=job1\0QUEUECTL_ATTEMPT=2\0QUEUECTL_WORKER_ID=host-7.1\0";
        assert!(is_in(ATTEMPT_OWNER, whole.as_bytes()));
        assert!(is_in(ATTEMPT_OWNER, whole.trim_end_matches('\0').as_bytes()), "cut off");
        for (from, to) in [
            ("job1", "job12"),
            ("job1", "job"),
            ("ATTEMPT=2", "ATTEMPT=20"),
            ("ATTEMPT=2", "ATTEMPT=02"),
            ("ATTEMPT=2\0", ""),
            ("host-7.1", "host-7.11"),
            ("host-7.1", "host-7"),
            ("QUEUECTL_JOB_ID", "XQUEUECTL_JOB_ID"),
            ("A=b\0QUEUECTL_JOB_ID", "A=b QUEUECTL_JOB_ID"),
            ("QUEUECTL_JOB_ID=", "QUEUECTL_JOB_ID"),
        ] {
            let other = whole.replace(from, to);
            assert_ne!(other, whole, "{from}");
            assert!(!is_in(ATTEMPT_OWNER, other.as_bytes()), "{other:?}");
        }
        assert!(!is_in(ATTEMPT_OWNER, b""));
    }

    #[test]
    fn a_delivery_is_recognised_by_its_name_and_is_not_an_attempt() {
        let delivery = &[(DELIVERY, "d-1")];
        assert!(is_in(delivery, b"QUEUECTL_DELIVERY=d-1\0QUEUECTL_WORKER_ID=host-7.1\0"));
        assert!(!is_in(delivery, b"QUEUECTL_DELIVERY=d-11\0QUEUECTL_WORKER_ID=host-7.1\0"));
        assert!(!is_in(ATTEMPT_OWNER, b"QUEUECTL_DELIVERY=d-1\0QUEUECTL_WORKER_ID=host-7.1\0"));
    }

    #[test]
    fn a_worker_is_recognised_by_one_variable() {
        assert!(is_in(&[], b"QUEUECTL_JOB_ID=other\0QUEUECTL_ATTEMPT=9\0QUEUECTL_WORKER_ID=host-7.1\0"));
        assert!(!is_in(&[], b"QUEUECTL_WORKER_ID=host-7.10\0"));
        assert!(!is_in(&[], b"X=QUEUECTL_WORKER_ID=host-7.1\0"));
    }
}
