//! `queuectl hook show`

use anstyle::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::facts::write_fact;
use crate::render::text::grouped;
use domain::hook::{HookEvent, Target, Trigger};
use domain::values::clock::Clock;
use ops::hook::{find, parse_name};
use store::{Hook, MAX_PENDING_COUNTED};

/// Show one hook: its event, target, pending deliveries, last error
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  queuectl hook show notify-dead\n  queuectl hook show notify-dead --json | jq .error"
)]
pub(super) struct Args {
    /// The hook's name
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let name = parse_name(&args.name)?;
    let store = context.store()?;
    let hook = find(store, &name)?;
    let (clock, bold) = (&context.clock(store.now()?), Style::new().bold());
    context.print(&hook, |out| {
        writeln!(out, "{bold}{}{bold:#}", hook.name)?;
        let facts = facts(&hook, clock);
        facts.iter().try_for_each(|(name, value)| write_fact(out, name, value, context.width()))
    })
}

/// The properties of a hook that are set, the most important first.
fn facts(hook: &Hook, clock: &Clock) -> Vec<(&'static str, String)> {
    let mut facts = vec![("on", when(hook)), ("target", target(hook))];
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    match &hook.target {
        Target::Command { cwd, .. } => say("cwd", cwd.clone()),
        Target::Url { secret, .. } => say("secret", secret.as_ref().map(|_| "yes".to_owned())),
    }
    say("pending", Some(pending(hook.pending)));
    say("last delivery", hook.delivered_at.map(|at| clock.moment(at)));
    say("failing since", hook.failing_since.map(|at| clock.moment(at)));
    say("last error", hook.error.clone());
    say("given up", (hook.gave_up > 0).then(|| format!("{} events", grouped(hook.gave_up))));
    say("added", Some(format!("{} by {}", clock.moment(hook.created_at), hook.created_by)));
    facts
}

/// The store stops counting at a maximum.
pub(super) fn pending(count: u64) -> String {
    let more = if count >= MAX_PENDING_COUNTED { " or more" } else { "" };
    format!("{}{more}", grouped(count))
}

/// As it was typed: `dlq-above 10 in mail`.
pub(super) fn when(hook: &Hook) -> String {
    let Trigger { events, queue, threshold, .. } = &hook.trigger;
    let threshold = threshold.map_or(String::new(), |threshold| format!(" {threshold}"));
    let queue = queue.as_ref().map_or(String::new(), |queue| format!(" in {queue}"));
    let events: Vec<String> = events.iter().map(HookEvent::name_in_flags).collect();
    format!("{}{threshold}{queue}", events.join(","))
}

pub(super) fn target(hook: &Hook) -> String {
    match &hook.target {
        Target::Command { line, .. } => line.clone(),
        Target::Url { url, .. } => url.as_str().to_owned(),
    }
}
