//! The dashboard's server: how long its answers take on a large store, what a bulk change through it costs, what it uses
//! while no client listens, while one does and while very many do, and how much it slows workers down.
//! The benchmark `pages` measures what a reader sees in chromium.

mod bulk;
mod drain;
mod idle;
mod log_view;
mod pages;
mod reads;
mod size;
mod streams;

use anyhow::Result;

use crate::Bench;
use crate::output::report::Report;
use crate::rig::browser;

pub(crate) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    reads::run(bench, report)?;
    bulk::run(bench, report)?;
    idle::run(bench, report)?;
    streams::run(bench, report)?;
    drain::run(bench, report)?;
    size::run(bench, report)?;
    report.note(
        "The history is written in every turn of a worker; what a turn costs is counted by `instructions`, and a drain by `drain`.",
    );
    Ok(())
}

/// The benchmark `pages`.
pub(crate) fn in_browser(bench: &Bench, report: &mut Report) -> Result<()> {
    if !browser::is_installed() {
        report.section("The pages in a browser");
        report.note("Not measured: chromium is not installed.");
        return Ok(());
    }
    pages::run(bench, report)?;
    log_view::run(bench, report)?;
    drain::in_browser(bench, report)
}
