//! Delivering an event to a hook: from a delivery to a hook process, and to its result.
//!
//! The shell runs a command. An event for a URL is posted by this program in a separate process: so the worker can end
//! it at any moment, and a receiver's response never reaches the worker.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::process;
use super::process::{Ending, HookProcess, HookResult, HookSupervision};
use super::webhook::Request;
use crate::attempt::command;
use crate::attempt::command::{Context, Invocation};
use crate::attempt::cookie::{Cookie, CookieOwner};
use crate::attempt::outcome_of;
use crate::attempt::variables;
use crate::attempt::variables::Variables;
use domain::hook::Target;
use domain::job::environment::Environment;
use domain::job::outcome::{Outcome, error_line};
use store::{Delivery, DeliveryResult};
use sys::process::cstr_array::{CstrArray, NulByte};

/// How long a hook's command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the posting process may take; its own, shorter timeout gives a better message.
const POST_PROCESS_TIMEOUT: Duration = Duration::from_secs(20);
/// This program, even if its file was replaced by a newer version.
const SELF: &std::ffi::CStr = c"/proc/self/exe";

/// Delivers an event to a hook, and returns the result.
pub(crate) fn deliver(
    delivery: &Delivery,
    context: &Context,
    supervision: HookSupervision<'_>,
) -> DeliveryResult {
    let process = match hook_process(delivery, context) {
        Ok(process) => process,
        Err(problem) => return failed(Outcome::SpawnError, Some(&problem)),
    };
    match process::run(&process, supervision) {
        Ok(result) => sent(&delivery.target, &result),
        Err(error) => failed(Outcome::SpawnError, Some(&spawn_error(&process, &error))),
    }
}

/// If the cause is the folder, an error that names it is more helpful.
fn spawn_error(process: &HookProcess, error: &std::io::Error) -> String {
    let folder = Path::new(std::ffi::OsStr::from_bytes(process.invocation.cwd.as_bytes()));
    command::check_cwd(folder).err().map_or(error.to_string(), |problem| problem.to_string())
}

fn failed(outcome: Outcome, message: Option<&str>) -> DeliveryResult {
    DeliveryResult::Failed(error_line(outcome, message).unwrap_or_default())
}

fn sent(target: &Target, result: &HookResult) -> DeliveryResult {
    let last_line = result.last_line.as_deref();
    match (result.ending, target) {
        (Ending::Stopped, _) => DeliveryResult::GivenBack,
        (Ending::TimedOut, _) => failed(Outcome::Timeout, last_line),
        (Ending::Ended(status), _) if status.success() => DeliveryResult::Delivered,
        // The posting process has printed the whole error.
        (Ending::Ended(_), Target::Url { .. }) if last_line.is_some() => {
            DeliveryResult::Failed(last_line.unwrap_or_default().to_owned())
        }
        (Ending::Ended(status), _) => failed(outcome_of(status), last_line),
    }
}

fn hook_process(delivery: &Delivery, context: &Context) -> Result<HookProcess, String> {
    let cookie = Cookie {
        worker: context.worker_id.clone(),
        owner: CookieOwner::Delivery { name: delivery.name.clone() },
    };
    match &delivery.target {
        Target::Command { line, cwd, environment } => {
            let base = environment.as_deref().unwrap_or(&context.own_environment);
            let invocation = in_shell(delivery, context, line, cwd.as_deref(), base)?;
            let input = format!("{}\n", delivery.payload).into_bytes();
            Ok(HookProcess { invocation, input, cookie, limit: COMMAND_TIMEOUT })
        }
        Target::Url { url, secret } => {
            let request = Request {
                url: url.as_str().to_owned(),
                secret: secret.as_ref().map(|secret| secret.reveal().to_owned()),
                event: delivery.trigger.event().name().to_owned(),
                delivery: delivery.name.clone(),
                body: delivery.payload.clone(),
            };
            let invocation = Invocation {
                program: SELF.to_owned(),
                argv: vec![c"queuectl".to_owned(), c"__post".to_owned()],
                envp: envp(delivery, context, &context.own_environment, Path::new("/"))?,
                cwd: c"/".to_owned(),
            };
            Ok(HookProcess {
                invocation,
                input: request.to_json().into_bytes(),
                cookie,
                limit: POST_PROCESS_TIMEOUT,
            })
        }
    }
}

fn in_shell(
    delivery: &Delivery,
    context: &Context,
    line: &str,
    cwd: Option<&str>,
    base: &Environment,
) -> Result<Invocation, String> {
    let folder = command::folder(cwd, &Variables { base, added: &BTreeMap::new() });
    let has_nul = |_| "its command or its cwd contains a NUL byte".to_owned();
    let cwd = CString::new(folder.as_os_str().as_bytes()).map_err(has_nul)?;
    let line = CString::new(line).map_err(has_nul)?;
    Ok(command::in_shell(line, envp(delivery, context, base, &folder)?, cwd))
}

/// The environment in which the hook was added, and the variables that identify the delivery.
fn envp(delivery: &Delivery, context: &Context, base: &Environment, cwd: &Path) -> Result<CstrArray, String> {
    let variables = Variables { base, added: &BTreeMap::new() };
    let mut own = vec![
        (variables::HOOK, delivery.hook.as_str().as_bytes()),
        (variables::DELIVERY, delivery.name.as_bytes()),
        (variables::PWD, cwd.as_os_str().as_bytes()),
    ];
    own.extend(context.variables());
    variables.to_envp(&own).map_err(|NulByte| "its environment contains a NUL byte".to_owned())
}
