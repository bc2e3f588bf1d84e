//! `queuectl enqueue`

pub(crate) mod lines;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use self::lines::JsonInput;
use crate::context::Context;
use crate::failure::{Failure, unless_cut_off};
use crate::flags::caller::CallerFlags;
use crate::flags::each::{EachFlags, EachSource};
use crate::flags::job::JobFlags;
use crate::render::text::printable;
use crate::verbs::jobs::autostart::autostart;
use crate::verbs::jobs::ignored_input;
use crate::verbs::jobs::start_hints::hint_not_starting;
use crate::verbs::jobs::typed_command::{
    HOW_TO_QUOTE_JSON, bad_json, begins_json, given_command, looks_like_split_json,
};

use domain::job::Job;
use domain::job::handle::JobHandle;
use domain::job::spec::JobSpec;
use domain::values::name::{BatchName, JobId, QueueName};
use ops::OpError;
use ops::jobs::enqueue::each::EachSpec;
use ops::jobs::enqueue::lines::LineFormat;
use ops::jobs::enqueue::{Caller, Enqueuer};
use ops::json::EnqueuedJson;
use ops::queues::similar_queue;
use store::{EnqueueResult, Store, StoreError};

/// Add jobs to the queue
///
/// Prints the id of each job once it is stored and synced to disk. Give the job as a command, as flags, or as JSON (an
/// object, or an array of objects), which flags can complete. A file or stream contains one JSON object per line, or one
/// JSON document; with --each, every line or argument is filled into the command to make one job.
///
/// The first word that is neither a flag nor JSON begins the command. One word, or a first word with a blank, is a line
/// for the shell; several words are a program and its arguments.
#[derive(Debug, clap::Args)]
#[command(override_usage = "queuectl enqueue [OPTIONS] COMMAND... | JSON | -")]
#[command(after_help = "Examples:
  queuectl enqueue convert \"a b.png\" out.jpg
  queuectl enqueue '{\"id\":\"job1\",\"command\":\"sleep 2\"}' --priority high
  queuectl enqueue -c \"make && make test\" --name nightly -Q ci --max-retries 0
  queuectl enqueue --file jobs.jsonl --batch nightly
  ls *.png | queuectl enqueue --each - convert {} small/{}
  queuectl enqueue --each ffmpeg -i {} {.}.mp4 ::: *.mkv
  sort data.csv | queuectl enqueue --stdin ./import --table people
  generate-jobs | queuectl enqueue -")]
pub(crate) struct Args {
    /// Jobs as JSON, an object or an array; - reads JSON lines from standard input
    #[arg(value_name = "JSON", num_args = 1)]
    job: Vec<String>,
    /// The command and its arguments, used exactly as given
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
    /// A file with jobs as JSON: one per line, or one document; the whole file is checked before any job is stored
    #[arg(short, long, value_name = "FILE", help_heading = "Many jobs")]
    file: Option<PathBuf>,
    #[command(flatten)]
    each: EachFlags,
    /// Add the jobs to this batch
    #[arg(long, value_name = "NAME", help_heading = "Many jobs")]
    batch: Option<BatchName>,
    #[command(flatten)]
    flags: JobFlags,
    #[command(flatten)]
    caller: CallerFlags,
}

/// Where the jobs come from.
enum Input {
    One(Box<JobSpec>),
    Batch(Vec<JobSpec>),
    File(PathBuf),
    Stream,
    Each(EachSource, Box<EachSpec>),
}

impl Input {
    /// Whether standard input contains the jobs, or the lines to make them from.
    fn is_stdin(&self) -> bool {
        match self {
            Self::Stream => true,
            Self::Each(source, _) => source.is_stdin(),
            Self::One(_) | Self::Batch(_) | Self::File(_) => false,
        }
    }

    /// The queue given for one job, or for every line.
    fn queue(&self) -> Option<QueueName> {
        match self {
            Self::One(request) => request.queue.clone(),
            Self::Each(_, each) => each.request.queue.clone(),
            Self::Batch(_) | Self::File(_) | Self::Stream => None,
        }
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let (is_dry_run, start) = (args.each.dry_run, args.flags.start_time());
    let batch = args.batch.clone();
    let caller_flags = args.caller.clone();
    let input = resolve(context, args)?;
    if let (true, Input::Each(source, each)) = (is_dry_run, &input) {
        lines::preview(context, source, LineFormat::Each(each))?;
        return Ok(());
    }
    if !matches!(input, Input::One(_)) {
        caller_flags.refuse_stdin()?;
    }
    let caller = Caller { batch, ..caller_flags.caller(context)? };
    let reads_stdin = caller_flags.passes_input() || input.is_stdin();
    let store = context.store_or_new()?;
    let mut enqueuer = Enqueuer::new(store, caller)?;
    let queue = input.queue().filter(|_| !context.quiet);
    let similar_queue = queue.as_ref().map(|queue| similar_queue(store, queue)).transpose()?.flatten();
    let queues = match input {
        Input::One(request) => {
            let queues = vec![request.queue.clone()];
            let answers = enqueuer.enqueue(vec![*request])?;
            for answer in &answers {
                print_one(context, store, answer)?;
            }
            queues_of_unfinished(store, queues, &answers)
        }
        Input::Batch(requests) => {
            // A program may well have no jobs to enqueue.
            if requests.is_empty() && context.stdout_is_terminal {
                context.hint("no jobs given: the array is empty")?;
            }
            enqueue_batch(context, store, &mut enqueuer, requests)?
        }
        Input::File(path) => match lines::enqueue_json_file(context, &mut enqueuer, &path)? {
            JsonInput::Document(requests) => enqueue_batch(context, store, &mut enqueuer, requests)?,
            JsonInput::Lines(queues) => queues,
        },
        Input::Stream => match lines::enqueue_json_stream(context, &mut enqueuer)? {
            JsonInput::Document(requests) => enqueue_batch(context, store, &mut enqueuer, requests)?,
            JsonInput::Lines(queues) => queues,
        },
        Input::Each(source, each) => {
            lines::enqueue_each(context, &mut enqueuer, &source, LineFormat::Each(&each))?
        }
    };
    if queues.is_empty() {
        return Ok(());
    }
    if !reads_stdin {
        ignored_input::warn(context)?;
    }
    if let Some(missing) = enqueuer.missing_cwd() {
        context.hint(&format!(
            "{}; the job fails if it is still missing then",
            printable(&missing.to_string())
        ))?;
    }
    start.map_or(Ok(()), |start| start.confirm(context))?;
    if !enqueuer.settings().autostart || autostart(context, store, &queues)? {
        unless_cut_off(hint_not_starting(context, store, &queues))?;
    }
    if let (Some(queue), Some(other)) = (queue, similar_queue) {
        context.hint(&format!("queue `{queue}` is new; did you mean `{other}`?"))?;
    }
    Ok(())
}

fn enqueue_batch(
    context: &Context,
    store: &dyn Store,
    enqueuer: &mut Enqueuer<'_>,
    requests: Vec<JobSpec>,
) -> Result<BTreeSet<QueueName>, Failure> {
    let queues = requests.iter().map(|request| request.queue.clone()).collect();
    let answers = enqueuer.enqueue(requests)?;
    print_batch(context, store, &answers)?;
    Ok(queues_of_unfinished(store, queues, &answers))
}

/// The queues of the jobs that still have to run.
fn queues_of_unfinished(
    store: &dyn Store,
    queues: Vec<Option<QueueName>>,
    answers: &[EnqueueResult],
) -> BTreeSet<QueueName> {
    let mut unfinished = BTreeSet::new();
    for (queue, answer) in queues.into_iter().zip(answers) {
        match answer {
            EnqueueResult::Created(_) => {
                unfinished.insert(queue.unwrap_or_else(QueueName::default_queue));
            }
            EnqueueResult::Existing(id) => {
                unfinished.extend(queue_of_unfinished(store, id));
            }
        }
    }
    unfinished
}

/// The queue of a job that still has to run, as far as the store still answers. It may have been removed since.
fn queue_of_unfinished(store: &dyn Store, id: &JobId) -> Option<QueueName> {
    let job = store.summary(id).ok().flatten();
    job.filter(|job| !job.state.is_finished()).map(|job| job.queue)
}

/// One source of jobs may be given. Flags complete the JSON of an argument.
fn resolve(context: &Context, args: Args) -> Result<Input, Failure> {
    refuse_split_json(&args)?;
    if args.each.is_given() {
        return resolve_each(context, args);
    }
    let Args { job, words, file, mut flags, .. } = args;
    let json = one_argument(job)?;
    let command = given_command(context, flags.command.take(), &words)?;
    let is_alone = command.is_none() && flags == JobFlags::default();
    match (json.as_deref(), file) {
        (None, None) => {
            let command = command.ok_or_else(|| {
                Failure::usage("no job given")
                    .with_hint("try `queuectl enqueue echo hi`; --help shows the other forms")
            })?;
            Ok(one(flags.into_spec(context, command)?))
        }
        (Some("-"), None) if is_alone => Ok(Input::Stream),
        (None, Some(file)) if is_alone => {
            Ok(if file.as_os_str() == "-" { Input::Stream } else { Input::File(file) })
        }
        (Some(json), None) if json != "-" => parse_json(json, &flags.into_partial_spec(context, command)?),
        (Some(_), _) | (None, Some(_)) => Err(given_in_several_ways()),
    }
}

fn given_in_several_ways() -> Failure {
    Failure::usage("the job is given in more than one way").with_hint(
        "give it as JSON, which flags can complete, as flags with --command or words after --, or with --file",
    )
}

/// A shell takes unquoted JSON apart at its commas: `{"id":"a","command":"b"}` arrives as `id:a` and `command:b`.
fn refuse_split_json(args: &Args) -> Result<(), Failure> {
    let words = args.flags.command.iter().chain(&args.job).chain(&args.words);
    if looks_like_split_json(words.map(String::as_str)) {
        return Err(Failure::usage("this looks like JSON without its quotes").with_hint(HOW_TO_QUOTE_JSON));
    }
    Ok(())
}

fn resolve_each(context: &Context, args: Args) -> Result<Input, Failure> {
    let Args { job, words, file, each, flags, .. } = args;
    if !job.is_empty() || file.is_some() {
        return Err(Failure::usage("--each cannot be combined with JSON or --file")
            .with_hint("write `queuectl enqueue --each FILE COMMAND {}`"));
    }
    let (source, each) = each.resolve(context, flags, words)?;
    Ok(Input::Each(source, Box::new(each)))
}

/// The argument that contains JSON.
fn one_argument(mut typed: Vec<String>) -> Result<Option<String>, Failure> {
    if typed.len() > 1 {
        let is_object = |word: &String| {
            serde_json::from_str::<serde_json::Value>(word).is_ok_and(|json| json.is_object())
        };
        if typed.iter().all(is_object) {
            return Err(Failure::usage("too many arguments: several jobs are one JSON array")
                .with_hint(format!("write '[{}]'", typed.join(","))));
        }
        let failure = Failure::usage("too many arguments: a job as JSON is one argument");
        let is_json = typed.iter().any(|word| begins_json(word));
        return Err(failure.with_hint(if is_json {
            HOW_TO_QUOTE_JSON.to_owned()
        } else {
            format!("to enqueue a command, write `queuectl enqueue -- {}`", typed.join(" "))
        }));
    }
    Ok(typed.pop())
}

fn one(request: JobSpec) -> Input {
    Input::One(Box::new(request))
}

/// The jobs of this JSON, each completed by the fields that were given as flags.
fn parse_json(json: &str, flags: &JobSpec) -> Result<Input, Failure> {
    let complete = |spec: JobSpec| {
        let completed = if *flags == JobSpec::default() { Ok(spec) } else { spec.merge(flags) };
        completed.map_err(OpError::from)
    };
    match json.trim_start().chars().next() {
        None => Err(Failure::usage("the job is empty").with_hint("try `queuectl enqueue echo hi`")),
        Some('{') if flags.command.is_some() => {
            let spec = JobSpec::from_json_without_command(json).map_err(|error| bad_json(json, error))?;
            Ok(one(complete(spec)?))
        }
        Some('{') => {
            let spec = serde_json::from_str(json).map_err(|error| bad_json(json, error))?;
            Ok(one(complete(spec)?))
        }
        Some('[') => {
            let specs: Vec<JobSpec> = serde_json::from_str(json).map_err(|error| bad_json(json, error))?;
            if flags.id.is_some() && specs.len() > 1 {
                return Err(Failure::usage("--id cannot be combined with an array of several jobs"));
            }
            Ok(Input::Batch(specs.into_iter().map(complete).collect::<Result<_, _>>()?))
        }
        Some(_) => Err(Failure::usage(format!("`{json}` is not a JSON object or array"))
            .with_hint(format!("to enqueue a command, write `queuectl enqueue -- {json}`"))),
    }
}

pub(crate) fn print_one(context: &Context, store: &dyn Store, answer: &EnqueueResult) -> Result<(), Failure> {
    if context.json {
        let job = readable(store, answer.id())?;
        return context.print_json(&shown(job.as_ref(), answer));
    }
    print_ids(context, std::slice::from_ref(answer))
}

fn print_batch(context: &Context, store: &dyn Store, answers: &[EnqueueResult]) -> Result<(), Failure> {
    if !context.json {
        return print_ids(context, answers);
    }
    let jobs: Result<Vec<_>, Failure> = answers.iter().map(|answer| readable(store, answer.id())).collect();
    let jobs = jobs?;
    let shown: Vec<_> = jobs.iter().zip(answers).map(|(job, answer)| shown(job.as_ref(), answer)).collect();
    context.print_json(&shown)
}

/// An enqueued job, unless the caller may only enqueue or is cut off from the store. The job is stored, so that is no
/// failure.
fn readable(store: &dyn Store, id: &JobId) -> Result<Option<Job>, Failure> {
    match store.find(id) {
        Err(StoreError::NotAllowed { .. } | StoreError::Unreachable(_) | StoreError::Unavailable { .. }) => {
            Ok(None)
        }
        found => Ok(Some(found?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?)),
    }
}

/// What `--json` prints for an enqueued job.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum AnswerJson<'a> {
    Readable(Box<EnqueuedJson<'a>>),
    /// The caller may only enqueue, or is cut off from the store.
    Unreadable {
        id: &'a JobId,
        existing: bool,
    },
}

fn shown<'a>(job: Option<&'a Job>, answer: &'a EnqueueResult) -> AnswerJson<'a> {
    let existing = !answer.is_created();
    match job {
        Some(job) => AnswerJson::Readable(Box::new(EnqueuedJson { job: job.into(), existing })),
        None => AnswerJson::Unreadable { id: answer.id(), existing },
    }
}

fn print_ids(context: &Context, answers: &[EnqueueResult]) -> Result<(), Failure> {
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    for answer in answers {
        if !context.stdout_is_terminal {
            writeln!(out, "{}", answer.id())?;
            continue;
        }
        let number = context.store()?.summary(answer.id()).ok().flatten().map(|job| job.number);
        let handle = JobHandle { id: answer.id().clone(), number }.short();
        match answer {
            EnqueueResult::Created(_) => writeln!(out, "Job {handle} enqueued")?,
            EnqueueResult::Existing(_) => writeln!(out, "Job {handle} already exists")?,
        }
    }
    Ok(out.flush()?)
}
