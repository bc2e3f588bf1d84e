//! `queuectl metrics`

#[cfg(feature = "dashboard")]
mod listen;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::{grouped, rough};
use domain::values::clock::Clock;
use domain::values::name::QueueName;
use ops::escape::write_json;
use ops::metrics::recent::{Figures, MetricsJson, Recent, recent};
use ops::metrics::{measure, output, prometheus};

/// Show rates, waiting and run times, also for Prometheus
///
/// On a terminal it summarizes the last hour: rates, success rate, waiting and run times, and the job that waits the
/// longest. Lost, cancelled and released attempts are left out of the success rate and the run times. In a pipe it writes
/// all metrics as Prometheus reads them; --format chooses.
///
/// With --listen it serves the metrics at `/metrics`, and nothing else, until a signal ends it. The rules of `dashboard` hold:
/// Prometheus sends a token of the scope metrics (`queuectl dashboard token add`).
///
/// Workers count as they work, so the numbers are exact and survive restarts and pruning. The history behind them is kept
/// for as long as the setting retain_metrics says.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl metrics
  queuectl metrics --queue mail
  queuectl metrics --json | jq .all.success_rate
  queuectl metrics --format prometheus
  queuectl metrics --output /var/lib/prometheus/node-exporter/queuectl.prom
  queuectl metrics --listen 127.0.0.1:9464")]
pub(crate) struct Args {
    /// The format of the output; without it, text on a terminal and prometheus elsewhere
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Write to this file, which is replaced as a whole; the format is prometheus unless --format says otherwise
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this queue
    #[arg(short = 'Q', long, value_name = "QUEUE", value_parser = |text: &str| text.parse::<QueueName>())]
    queue: Option<QueueName>,
    #[cfg(feature = "dashboard")]
    #[command(flatten)]
    listen: listen::ListenArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Prometheus,
    Json,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    #[cfg(feature = "dashboard")]
    if args.listen.is_given()? {
        return listen::run(&args.listen, context);
    }
    let format = chosen_format(args, context)?;
    let file = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let to_file = file.is_some();
    let mut text = Vec::new();
    match format {
        Format::Text => write_text(&mut text, args, context, to_file)?,
        Format::Prometheus => {
            let metrics = measure(context.store()?, &context.location()?, args.queue.as_ref())?;
            text.extend(prometheus::text(&metrics).bytes());
        }
        Format::Json => {
            let store = context.store()?;
            let recent = recent(store, args.queue.as_ref())?;
            let json = MetricsJson::new(&recent, &store.total_metrics()?);
            write_json(&mut text, &json, context.stdout_is_terminal && !to_file)?;
            text.push(b'\n');
        }
    }
    if let Some(file) = file {
        return Ok(output::write_file(file, &text)?);
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

fn chosen_format(args: &Args, context: &Context) -> Result<Format, Failure> {
    match args.format {
        Some(Format::Text | Format::Prometheus) if context.json => {
            Err(Failure::usage("--json cannot be combined with another --format"))
        }
        Some(format) => Ok(format),
        None if context.json => Ok(Format::Json),
        None if context.stdout_is_terminal && args.output.is_none() => Ok(Format::Text),
        None => Ok(Format::Prometheus),
    }
}

fn write_text(out: &mut Vec<u8>, args: &Args, context: &Context, to_file: bool) -> Result<(), Failure> {
    let store = context.store()?;
    let recent = recent(store, args.queue.as_ref())?;
    if recent.queues.is_empty() {
        return context.hint("no queues yet; a queue is created when it is first used");
    }
    let width = if to_file { usize::MAX } else { context.width() };
    let mut styled = Vec::new();
    write_summary(&mut styled, &recent, &context.clock(recent.now), width)?;
    if to_file {
        out.extend(anstream::adapter::strip_bytes(&styled).into_vec());
    } else {
        out.extend(styled);
    }
    Ok(())
}

fn write_summary(out: &mut dyn Write, recent: &Recent, clock: &Clock, width: usize) -> io::Result<()> {
    let all = recent.of_all();
    let bold = Style::new().bold();
    let title = match &recent.queues[..] {
        [queue] => format!("Queue {} in the last hour", queue.queue.name),
        queues => format!("{} queues in the last hour", queues.len()),
    };
    writeln!(out, "{bold}{title}{bold:#} (since {})", clock.time(recent.since))?;
    writeln!(out)?;
    for (name, value, more) in facts(recent, &all) {
        writeln!(out, "{}", format!("  {name:<10}{value:>12}   {more}").trim_end())?;
    }
    if recent.queues.len() > 1 {
        writeln!(out)?;
        table(recent).write(out, width)?;
    }
    Ok(())
}

/// Each with its name, its main number, and the rest.
fn facts(recent: &Recent, all: &Figures) -> [(&'static str, String, String); 7] {
    let activity = &all.activity;
    let rate = |count| format!("{}/min", decimal(recent.per_minute(count)));
    let times = |p95: Option<Duration>| p95.map_or_else(String::new, |p95| format!("p95 {}", short(p95)));
    let p50 = |p50: Option<Duration>| p50.map_or_else(|| "-".to_owned(), |p50| format!("p50 {}", short(p50)));
    let oldest = all.oldest.map_or_else(|| "-".to_owned(), rough);
    [
        ("enqueued", rate(all.enqueued), count(all.enqueued, "job")),
        ("started", rate(activity.started), count(activity.started, "attempt")),
        ("finished", rate(activity.finished()), finished(activity.finished(), activity.died)),
        ("success", percent(activity.success_rate()), failures(activity.failed(), activity.retries())),
        ("waited", p50(all.waited(0.5)), times(all.waited(0.95))),
        ("ran", p50(all.ran(0.5)), times(all.ran(0.95))),
        ("oldest", oldest, longest_waiting(recent)),
    ]
}

/// The last hour in one line; `None` if no attempt started in it.
pub(super) fn hour_line(recent: &Recent) -> Option<String> {
    let all = recent.of_all();
    let activity = &all.activity;
    if activity.started == 0 {
        return None;
    }
    let rate = decimal(recent.per_minute(activity.finished()));
    let quantiles = |what: &str, times: [Option<Duration>; 2]| match times {
        [Some(p50), Some(p95)] => format!("; {what} p50 {}, p95 {}", short(p50), short(p95)),
        [_, _] => String::new(),
    };
    let waited = quantiles("waited", [0.5, 0.95].map(|fraction| all.waited(fraction)));
    let ran = quantiles("ran", [0.5, 0.95].map(|fraction| all.ran(fraction)));
    let dead = if activity.died == 0 { String::new() } else { format!(", {} dead", grouped(activity.died)) };
    let finished = count(activity.finished(), "job");
    Some(format!("Last hour: {finished} finished ({rate}/min){dead}{waited}{ran}"))
}

/// Where the job is that waits the longest.
fn longest_waiting(recent: &Recent) -> String {
    let oldest = recent.queues.iter().filter(|queue| queue.oldest_ready_at.is_some());
    match oldest.min_by_key(|queue| queue.oldest_ready_at) {
        Some(queue) => format!("waiting in queue {}", queue.queue.name),
        None => "no job is waiting".to_owned(),
    }
}

fn finished(jobs: u64, died: u64) -> String {
    let red = AnsiColor::Red.on_default().bold();
    let died = if died == 0 { String::new() } else { format!(", {red}{} dead{red:#}", grouped(died)) };
    format!("{}{died}", count(jobs, "job"))
}

fn failures(failed: u64, retries: u64) -> String {
    if failed == 0 {
        return String::new();
    }
    format!("{} failed, {} retried", count(failed, "attempt"), grouped(retries))
}

fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

const COLUMNS: [&str; 12] = [
    "QUEUE", "ENQUEUED", "STARTED", "FINISHED", "SUCCESS", "RETRIES", "DEAD", "WAIT P50", "WAIT P95",
    "RUN P50", "RUN P95", "OLDEST",
];
/// The first to leave out on a narrow terminal.
const OPTIONAL: [&str; 5] = ["WAIT P50", "RUN P50", "STARTED", "RETRIES", "ENQUEUED"];

fn table(recent: &Recent) -> Table {
    let mut table = Table::new(&COLUMNS)
        .with_numbers(&COLUMNS[1..])
        .with_optional_columns(&OPTIONAL)
        .with_whole_columns(&["QUEUE"]);
    for queue in &recent.queues {
        let figures = recent.of(queue);
        let activity = &figures.activity;
        let rate = |count: u64| quiet_if(count == 0, &format!("{}/m", decimal(recent.per_minute(count))));
        let number = |count: u64, style| match count {
            0 => quiet_if(true, "0"),
            count => Cell::styled(&grouped(count), style),
        };
        let time =
            |time: Option<Duration>| time.map_or_else(|| quiet_if(true, "-"), |time| short(time).into());
        table.row(vec![
            queue.queue.name.as_str().into(),
            rate(figures.enqueued),
            rate(activity.started),
            rate(activity.finished()),
            success(activity.success_rate()),
            number(activity.retries(), AnsiColor::Yellow.on_default()),
            number(activity.died, AnsiColor::Red.on_default().bold()),
            time(figures.waited(0.5)),
            time(figures.waited(0.95)),
            time(figures.ran(0.5)),
            time(figures.ran(0.95)),
            figures.oldest.map_or_else(|| quiet_if(true, "-"), |oldest| rough(oldest).into()),
        ]);
    }
    table
}

fn quiet_if(is_quiet: bool, text: &str) -> Cell {
    Cell::styled(text, if is_quiet { Style::new().dimmed() } else { Style::new() })
}

/// Coloured by how good it is.
fn success(rate: Option<f64>) -> Cell {
    let style = match rate {
        None => Style::new().dimmed(),
        Some(rate) if rate >= GOOD => AnsiColor::Green.on_default(),
        Some(rate) if rate >= FAIR => AnsiColor::Yellow.on_default(),
        Some(_) => AnsiColor::Red.on_default(),
    };
    Cell::styled(&percent(rate), style)
}

/// Success rates that need no attention, and some.
const GOOD: f64 = 0.95;
const FAIR: f64 = 0.8;

/// Rounded down, so that 100 % means that nothing failed.
fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{}%", (rate * 1_000.0).floor() / 10.0))
}

/// Three digits where they say something: `0.35`, `12.4`, `1,240`.
fn decimal(number: f64) -> String {
    if number >= 100.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive rate for people"
        )]
        return grouped(number.round() as u64);
    }
    let text = if number >= 10.0 { format!("{number:.1}") } else { format!("{number:.2}") };
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// A duration in few characters: `3ms`, `1.2s`, `4m10s`.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if !(1.0..10.0).contains(&seconds) {
        return rough(duration);
    }
    format!("{}s", (seconds * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        for (number, text) in [
            (0.0, "0"),
            (0.016_666, "0.02"),
            (0.5, "0.5"),
            (3.0, "3"),
            (12.44, "12.4"),
            (99.96, "100"),
            (1_240.4, "1,240"),
        ] {
            assert_eq!(decimal(number), text);
        }
        for (rate, text) in [(None, "-"), (Some(1.0), "100%"), (Some(0.999_9), "99.9%"), (Some(0.5), "50%")] {
            assert_eq!(percent(rate), text);
        }
        for (millis, text) in [(0, "0ms"), (999, "1s"), (1_240, "1.2s"), (10_400, "10s"), (250_000, "4m10s")]
        {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }
}
