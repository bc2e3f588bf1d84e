//! `queuectl graph`

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::resolve_or_latest;
use crate::flags::whole_number::whole_number;
use crate::render::table::{truncate, truncate_middle};
use crate::render::text::{jobs, printable, state_style};
use domain::job::graph::{Branch, Direction, Graph, Node};
use domain::job::handle::JobHandle;
use domain::job::life::StateName;
use ops::OpError;
use ops::json::GraphJson;

/// Show what a job depends on and what depends on it
///
/// A job that appears a second time is marked with (*), without its subtree.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl graph deploy
  queuectl graph deploy --dot | dot -Tsvg > deploy.svg
  queuectl graph deploy --json | jq -r '.nodes[] | select(.state == \"dead\") | .id'")]
pub(crate) struct Args {
    /// The job's number or id, or a unique part of its id [default on a terminal: the latest job]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Print the graph in the DOT language of Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// Show at most this many jobs, the nearest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1_000, allow_negative_numbers = true,
          value_parser = whole_number::<u32>(1..=MAX_JOBS))]
    limit: u32,
}

const MAX_JOBS: i128 = 1_000_000;

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    if args.id.is_none() && !context.stdout_is_terminal {
        return Err(Failure::usage("no job given").with_hint("give its number or id"));
    }
    let id = resolve_or_latest(context, args.id.as_deref())?;
    let found = context.store()?.graph(&id, args.limit as usize)?;
    let graph = found.ok_or(OpError::NoSuchJob(id))?;
    let names = if context.json || args.dot { Vec::new() } else { names(context, &graph)? };
    context.print(&GraphJson::from(&graph), |out| {
        if args.dot { write_dot(out, &graph) } else { write_trees(out, &graph, &names, context.width()) }
    })?;
    if graph.is_cut {
        let shown = jobs(graph.nodes.len() as u64);
        context.hint(&format!("only {shown} are shown; use a larger --limit to see more"))?;
    }
    Ok(())
}

/// How a tree names a job: before its state, and after it.
type Name = (String, String);

/// The name of each job. People see its number and its command, programs its id.
fn names(context: &Context, graph: &Graph) -> Result<Vec<Name>, Failure> {
    let store = context.store()?;
    let name = |node: &Node| {
        if !context.stdout_is_terminal {
            return Ok((node.id.to_string(), String::new()));
        }
        let handle = JobHandle { id: node.id.clone(), number: node.number }.short();
        let label = store.find(&node.id)?.map(|job| printable(job.label()).into_owned());
        Ok((handle, label.unwrap_or_default()))
    };
    graph.nodes.iter().map(name).collect()
}

fn write_trees(out: &mut dyn Write, graph: &Graph, names: &[Name], width: usize) -> io::Result<()> {
    writeln!(out, "{}", describe(&graph.nodes[0], &names[0], width))?;
    for (direction, heading) in [(Direction::Up, "depends on"), (Direction::Down, "needed by")] {
        let tree = graph.tree(direction);
        if !tree.is_empty() {
            let bold = Style::new().bold();
            writeln!(out, "{bold}{heading}{bold:#}")?;
        }
        for branch in &tree {
            writeln!(out, "{}", truncate(&line(graph, branch, names, width), width))?;
        }
    }
    Ok(())
}

/// One line of the tree.
fn line(graph: &Graph, branch: &Branch, names: &[Name], width: usize) -> String {
    let (last, above) = branch.more.split_last().expect("every branch has its own level");
    let mut text: String = above.iter().map(|more| if *more { "│   " } else { "    " }).collect();
    text.push_str(if *last { "├── " } else { "└── " });
    let mut mark = String::new();
    if branch.is_repeated {
        mark.push_str(" (*)");
    }
    if branch.is_too_deep {
        mark.push_str(" … (too deep to show)");
    }
    let room = width.saturating_sub(text.width() + mark.width());
    text + &describe(&graph.nodes[branch.node], &names[branch.node], room) + &mark
}

/// The narrowest command that still says something. Deeper in a tree, the line is cut at its end.
const MIN_LABEL_WIDTH: usize = 12;

/// A job and its state, with the middle of a long command left out.
fn describe(node: &Node, (name, label): &Name, width: usize) -> String {
    let style = node.state.map_or_else(|| Style::new().dimmed(), state_style);
    let state = state_of(node);
    let gap = if label.is_empty() { "" } else { "  " };
    let room = width.saturating_sub(name.width() + 2 + state.width() + gap.width());
    let label = truncate_middle(label, room.max(MIN_LABEL_WIDTH));
    format!("{name}  {style}{state}{style:#}{gap}{label}")
}

fn state_of(node: &Node) -> &'static str {
    node.state.map_or("removed", StateName::name)
}

/// Arrows point in the order of execution. Ids need no escaping: they contain no quotes or backslashes.
fn write_dot(out: &mut dyn Write, graph: &Graph) -> io::Result<()> {
    writeln!(out, "digraph jobs {{\n  rankdir = LR;\n  node [shape = box, style = filled];")?;
    for node in &graph.nodes {
        let (id, state, color) = (&node.id, state_of(node), color(node.state));
        writeln!(out, "  \"{id}\" [label = \"{id}\\n{state}\", fillcolor = \"{color}\"];")?;
    }
    for edge in &graph.edges {
        let [first, then] = [edge.depends_on, edge.job].map(|place| &graph.nodes[place].id);
        writeln!(out, "  \"{first}\" -> \"{then}\";")?;
    }
    Ok(writeln!(out, "}}")?)
}

/// The terminal's colours, pale enough for black text.
fn color(state: Option<StateName>) -> &'static str {
    match state {
        Some(StateName::Pending) => "white",
        Some(StateName::Processing) => "lightcyan",
        Some(StateName::Completed) => "palegreen",
        Some(StateName::Failed) => "khaki",
        Some(StateName::Dead) => "lightsalmon",
        Some(StateName::Cancelled) => "gray85",
        None => "gray95",
    }
}
