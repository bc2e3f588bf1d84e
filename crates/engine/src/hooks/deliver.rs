//! Delivering an event to a hook: from a delivery to a hook process, and to its result.
//!
//! The shell runs a command. An event for a URL is posted by this program in a separate process: so the worker can end
//! it at any moment, and a receiver's response never reaches the worker. A hook process is started, watched and ended like
//! the command of an attempt, but it has no slot, no record and no lease.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use super::webhook::Request;
use crate::attempt::capture::Capture;
use crate::attempt::child::{Cause, Child, Start, Supervision};
use crate::attempt::command;
use crate::attempt::command::{CommandLine, Context, Invocation, Plan, SpawnProblem};
use crate::attempt::cookie::Cookie;
use crate::attempt::input::readable;
use crate::attempt::outcome_of;
use crate::attempt::slot_records::RecordLock;
use crate::attempt::variables;
use crate::orphans::containment::SlotGroup;
use crate::orphans::reparented::{OrphanFilter, Orphans};
use crate::supervisor::pool::SELF;
use crate::worker::dispatcher::SlotBell;
use domain::hook::Target;
use domain::hook::variables::{event_of, variables_of};
use domain::job::outcome::{Outcome, error_line};
use domain::text::escape;
use store::{Delivery, DeliveryResult};
use sys::cgroup::Bounds;
use sys::process::ChildExit;
use sys::process::spawn::Limits;

/// How long a hook's command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the posting process may take; its own, shorter timeout gives a better message.
const POST_PROCESS_TIMEOUT: Duration = Duration::from_secs(20);

/// The tools with which the calling thread supervises a hook process.
#[derive(Debug)]
pub(crate) struct Lane<'a> {
    pub(crate) context: &'a Context,
    pub(crate) orphans: &'a Orphans,
    /// `None` if this process runs no attempts.
    pub(crate) record_lock: Option<RecordLock<'a>>,
    pub(crate) group: Option<SlotGroup<'a>>,
    /// Rings when the delivery must stop.
    pub(crate) bell: &'a SlotBell,
}

/// The command of a hook, and its input.
#[derive(Debug)]
struct HookProcess {
    plan: Plan,
    /// Its standard input.
    input: Vec<u8>,
    timeout: Duration,
}

/// How a hook process ended, and the last line that it printed.
#[derive(Debug)]
struct HookResult {
    cause: Option<Cause>,
    ended: ChildExit,
    last_line: Option<String>,
}

/// Delivers an event to a hook, and returns the result.
pub(crate) fn deliver(delivery: &Delivery, mut lane: Lane<'_>) -> DeliveryResult {
    let not_started = |problem: String| failed(Outcome::SpawnError, Some(&problem));
    let process = match hook_process(delivery, lane.context) {
        Ok(process) => process,
        Err(problem) => return not_started(problem.to_string()),
    };
    match lane.run(&process, &delivery.name) {
        Ok(result) => sent(&delivery.target, &result),
        Err(error) => not_started(command::start_problem(&process.plan, &error)),
    }
}

impl Lane<'_> {
    fn run(&mut self, process: &HookProcess, delivery: &str) -> io::Result<HookResult> {
        let input = readable(&process.input)?;
        if let Some(group) = &mut self.group {
            group.prepare(Bounds::default())?;
        }
        let child = Child::start(Start {
            plan: &process.plan,
            input: Some(input.as_fd()),
            record: None,
            limits: Limits::default(),
            group: self.group.as_ref().and_then(SlotGroup::group),
        })?;
        self.orphans.add_leader(child.pid);
        let supervision = Supervision {
            timeout: Some(process.timeout),
            kill_grace: Duration::ZERO,
            bell: self.bell,
            orphans: self.orphans,
            filter: OrphanFilter {
                leader: child.pid,
                cookie: Cookie { worker: &self.context.worker_id, owner: &[(variables::DELIVERY, delivery)] },
                record_lock: self.record_lock.as_ref(),
                group: self.group.as_ref(),
            },
            limits: None,
            report: None,
        };
        let mut capture = Capture::of_last_line();
        let (cause, ended) = child.run(supervision, &mut capture);
        Ok(HookResult { cause, ended: ended?, last_line: capture.finish().last_error_line })
    }
}

fn failed(outcome: Outcome, message: Option<&str>) -> DeliveryResult {
    DeliveryResult::Failed(error_line(outcome, message).unwrap_or_default())
}

fn sent(target: &Target, result: &HookResult) -> DeliveryResult {
    let last_line = result.last_line.as_deref();
    match (result.cause, target) {
        (Some(Cause::Interrupt(_)), _) => DeliveryResult::GivenBack,
        (Some(Cause::Timeout | Cause::LimitExceeded(_)), _) => failed(Outcome::Timeout, last_line),
        (None, _) if result.ended.status.success() => DeliveryResult::Delivered,
        // The posting process has printed the whole error.
        (None, Target::Url { .. }) if last_line.is_some() => {
            DeliveryResult::Failed(last_line.unwrap_or_default().to_owned())
        }
        (None, _) => failed(outcome_of(result.ended.status), last_line),
    }
}

fn hook_process(delivery: &Delivery, context: &Context) -> Result<HookProcess, SpawnProblem> {
    let own = [
        (variables::HOOK, delivery.hook.as_str().as_bytes()),
        (variables::DELIVERY, delivery.name.as_bytes()),
    ];
    let event = variables_of(&delivery.payload);
    let event = event.iter().map(|(name, value)| (*name, value.as_bytes()));
    let own: Vec<(&str, &[u8])> = own.into_iter().chain(event).collect();
    let added = BTreeMap::new();
    let command = CommandLine { line: "", cwd: None, environment: None, added: &added, own: &own };
    match &delivery.target {
        Target::Command { line, cwd, environment } => {
            let (cwd, environment) = (cwd.as_deref(), environment.as_deref());
            let plan = CommandLine { line, cwd, environment, ..command }.prepare(context)?;
            let input = format!("{}\n", delivery.payload).into_bytes();
            Ok(HookProcess { plan, input, timeout: COMMAND_TIMEOUT })
        }
        Target::Url { url, secret } => {
            let request = Request {
                url: url.as_str().to_owned(),
                secret: secret.as_ref().map(|secret| secret.reveal().to_owned()),
                event: event_of(&delivery.payload),
                delivery: delivery.name.clone(),
                body: delivery.payload.clone(),
            };
            let invocation = Invocation {
                program: SELF.to_owned(),
                argv: vec![c"queuectl".to_owned(), c"__post".to_owned()],
                envp: command.envp(context, Path::new("/"))?,
                cwd: c"/".to_owned(),
            };
            let input = escape::to_json(&request).expect("strings serialize to JSON").into_bytes();
            Ok(HookProcess { plan: Plan::of(invocation), input, timeout: POST_PROCESS_TIMEOUT })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;
    use crate::worker::dispatcher::Interrupt;
    use domain::job::environment::Environment;
    use sys::process::cstr_array::CstrArray;

    fn run(script: &str, timeout: Duration, bell: &SlotBell) -> HookResult {
        let mut envp = CstrArray::default();
        envp.push(&[b"PATH=/usr/bin:/bin"]).expect("no NUL");
        let script = CString::new(script).expect("no NUL");
        let plan = Plan::of(command::in_shell(script, envp, c"/".to_owned()));
        let process = HookProcess { plan, input: b"an event".to_vec(), timeout };
        let context = Context {
            worker_id: "w".parse().expect("a name"),
            home: "/".into(),
            store: None,
            own_environment: Environment::capture([]),
        };
        let orphans = Orphans::new().expect("children are listed");
        let mut lane = Lane { context: &context, orphans: &orphans, record_lock: None, group: None, bell };
        lane.run(&process, "d-1").expect("it runs")
    }

    #[test]
    fn it_reads_the_event_and_its_last_line_is_kept() {
        let bell = SlotBell::new().expect("a bell");
        let result = run("cat; echo; echo no luck >&2; exit 3", Duration::from_secs(60), &bell);
        assert_eq!((result.cause, result.ended.status.code()), (None, Some(3)));
        assert_eq!(result.last_line.as_deref(), Some("no luck"));
        let result = run("echo bad luck >&2; cat", Duration::from_secs(60), &bell);
        assert_eq!(result.last_line.as_deref(), Some("an event"));
    }

    #[test]
    fn a_hook_process_that_does_not_end_is_killed_at_its_time_limit() {
        let bell = SlotBell::new().expect("a bell");
        let result = run("trap '' TERM; echo here; sleep 600", Duration::from_millis(50), &bell);
        assert_eq!(result.cause, Some(Cause::Timeout));
    }

    #[test]
    fn a_stopped_hook_process_is_killed_at_once() {
        let bell = SlotBell::new().expect("a bell");
        bell.ring(Interrupt::ReleaseAtOnce);
        let result = run("sleep 600", Duration::from_secs(600), &bell);
        assert!(matches!(result.cause, Some(Cause::Interrupt(_))), "{result:?}");
    }
}
