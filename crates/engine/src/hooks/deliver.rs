//! Telling a hook something: from a delivery to an errand, and to what came of it.
//!
//! A command is run by the shell. What goes to an address is posted by this program, called as a process of its own: so it
//! can be ended at any moment, and nothing that a receiver sends back touches the worker.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::process;
use super::process::{Ending, Errand, Returned, Watch};
use super::webhook::Envelope;
use crate::attempt::command;
use crate::attempt::command::{Context, Prepared};
use crate::attempt::cookie::{Bearer, Cookie};
use crate::attempt::outcome_of;
use crate::attempt::variables;
use crate::attempt::variables::Variables;
use domain::hook::Target;
use domain::job::environment::Environment;
use domain::job::outcome::{Outcome, error_line};
use store::{Delivery, DeliveryResult};
use sys::process::cstr_array::{CstrArray, NulByte};

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// How long posting may take; it has a limit of its own, with better words.
const POST_LIMIT: Duration = Duration::from_secs(20);
/// This program, also when its file was replaced by a newer version.
const SELF: &std::ffi::CStr = c"/proc/self/exe";

/// Tells a hook, and says what came of it.
pub(crate) fn deliver(delivery: &Delivery, context: &Context, watch: Watch<'_>) -> DeliveryResult {
    let errand = match errand(delivery, context) {
        Ok(errand) => errand,
        Err(problem) => return failed(Outcome::SpawnError, Some(&problem)),
    };
    match process::run(&errand, watch) {
        Ok(returned) => sent(&delivery.target, &returned),
        Err(error) => failed(Outcome::SpawnError, Some(&why(&errand, &error))),
    }
}

/// If it is the folder, an error that names it says more.
fn why(errand: &Errand, error: &std::io::Error) -> String {
    let folder = Path::new(std::ffi::OsStr::from_bytes(errand.prepared.cwd.as_bytes()));
    command::check_cwd(folder).err().map_or(error.to_string(), |problem| problem.to_string())
}

fn failed(outcome: Outcome, said: Option<&str>) -> DeliveryResult {
    DeliveryResult::Failed(error_line(outcome, said).unwrap_or_default())
}

fn sent(target: &Target, returned: &Returned) -> DeliveryResult {
    let said = returned.last_line.as_deref();
    match (returned.ending, target) {
        (Ending::Stopped, _) => DeliveryResult::GivenBack,
        (Ending::TookTooLong, _) => failed(Outcome::Timeout, said),
        (Ending::Ended(status), _) if status.success() => DeliveryResult::Delivered,
        // It has said what there is to say.
        (Ending::Ended(_), Target::Url { .. }) if said.is_some() => {
            DeliveryResult::Failed(said.unwrap_or_default().to_owned())
        }
        (Ending::Ended(status), _) => failed(outcome_of(status), said),
    }
}

fn errand(delivery: &Delivery, context: &Context) -> Result<Errand, String> {
    let cookie =
        Cookie { worker: context.worker_id.clone(), of: Bearer::Delivery { name: delivery.name.clone() } };
    match &delivery.target {
        Target::Command { line, cwd, environment } => {
            let base = environment.as_deref().unwrap_or(&context.own_environment);
            let prepared = in_shell(delivery, context, line, cwd.as_deref(), base)?;
            let input = format!("{}\n", delivery.payload).into_bytes();
            Ok(Errand { prepared, input, cookie, limit: COMMAND_LIMIT })
        }
        Target::Url { url, secret } => {
            let envelope = Envelope {
                url: url.as_str().to_owned(),
                secret: secret.as_ref().map(|secret| secret.reveal().to_owned()),
                event: delivery.trigger.event().name().to_owned(),
                delivery: delivery.name.clone(),
                body: delivery.payload.clone(),
            };
            let prepared = Prepared {
                program: SELF.to_owned(),
                argv: vec![c"queuectl".to_owned(), c"__post".to_owned()],
                envp: envp(delivery, context, &context.own_environment, Path::new("/"))?,
                cwd: c"/".to_owned(),
            };
            Ok(Errand { prepared, input: envelope.to_json().into_bytes(), cookie, limit: POST_LIMIT })
        }
    }
}

fn in_shell(
    delivery: &Delivery,
    context: &Context,
    line: &str,
    cwd: Option<&str>,
    base: &Environment,
) -> Result<Prepared, String> {
    let folder = command::folder(cwd, &Variables { base, added: &BTreeMap::new() });
    let has_nul = |_| "its command or its cwd contains a NUL byte".to_owned();
    let cwd = CString::new(folder.as_os_str().as_bytes()).map_err(has_nul)?;
    let line = CString::new(line).map_err(has_nul)?;
    Ok(command::in_shell(line, envp(delivery, context, base, &folder)?, cwd))
}

/// What says whose it is, besides what whoever added the hook had in their environment.
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
