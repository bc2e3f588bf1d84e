//! How much larger the dashboard and `top` make the program: it is built without each of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::output::report::{Bar, Report, Unit};
use crate::rig::sample::Sample;
use crate::{Bench, REPOSITORY};

const MAX_WEB_MEGABYTES: f64 = 1.5;
const MAX_TOP_MEGABYTES: f64 = 0.4;
const BYTES_PER_MEGABYTE: f64 = 1024.0 * 1024.0;

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    report.section("Size of the program by feature");
    if bench.quick {
        report.note("Not measured: building the program three times takes too long for a quick run.");
        return Ok(());
    }
    let without = megabytes(bench, "postgres")?;
    for (what, feature, most) in [
        ("the dashboard: more megabytes", "dashboard", MAX_WEB_MEGABYTES),
        ("`top`: more megabytes", "tui", MAX_TOP_MEGABYTES),
    ] {
        let more = megabytes(bench, &format!("postgres,{feature}"))? - without;
        report.line(what, &Sample::of(more), Unit::Megabytes, Bar::AtMost(most));
    }
    report.line("without both", &Sample::of(without), Unit::Megabytes, Bar::None);
    Ok(())
}

/// The size of the program with these features alone.
fn megabytes(bench: &Bench, features: &str) -> Result<f64> {
    bench.progress(&format!("building with {features}"));
    let target = bench.workspace.path().join("features");
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--no-default-features",
        "--features",
        features,
    ]);
    build.arg("--target-dir").arg(&target).current_dir(Path::new(REPOSITORY));
    ensure!(build.status()?.success(), "failed to build with {features}");
    let bytes = fs::metadata(target.join("release/queuectl"))?.len();
    Ok(f64::from(u32::try_from(bytes)?) / BYTES_PER_MEGABYTE)
}
