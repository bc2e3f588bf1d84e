//! What a verb works with: the store, where to print, and how.

use std::cell::OnceCell;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use anstream::AutoStream;
use clap::ColorChoice;
use rustix::process::Signal;
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use super::failure::{Exit, Failure};
use super::root::Global;
use ops::escape::write_json;
use ops::home::location;
use ops::home::location::{Location, LocationArgs};
use store::Store;
use sys::signal::interrupts::Interrupts;

#[derive(Debug)]
pub(super) struct Context {
    wanted: LocationArgs,
    location: OnceCell<Location>,
    store: OnceCell<Box<dyn Store>>,
    /// A person reads the results: standard output is a terminal.
    pub(super) person_reads: bool,
    pub(super) color: ColorChoice,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl Context {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            wanted: LocationArgs { home: global.home.clone(), store: global.store.clone() },
            location: OnceCell::new(),
            store: OnceCell::new(),
            person_reads: io::stdout().is_terminal(),
            color: global.color,
            json: global.json,
            quiet: global.quiet,
        }
    }

    /// Where home and store are, looked for when it is first asked.
    pub(super) fn location(&self) -> Result<Location, Failure> {
        if let Some(location) = self.location.get() {
            return Ok(location.clone());
        }
        let location = location::locate(&self.wanted)?;
        if let Some(passed) = &location.skipped_home {
            self.hint(&format!("{passed}; it is passed over, and {} is used", location.home.display()))?;
        }
        Ok(self.location.get_or_init(|| location).clone())
    }

    /// What was said about where things are, for those who look there themselves.
    pub(super) fn wanted(&self) -> &LocationArgs {
        &self.wanted
    }

    /// The store, opened when it is first asked for.
    pub(super) fn store(&self) -> Result<&dyn Store, Failure> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        let store = location::open(&self.location()?)?;
        Ok(self.store.get_or_init(|| store).as_ref())
    }

    /// The end of a process that did one thing: what the next one would have to do is done, and the rest is left to
    /// the kernel, which forgets it faster than we could free it.
    pub(super) fn leave(self) {
        if let Some(store) = self.store.get() {
            store.tidy();
        }
        std::mem::forget(self);
    }

    /// Standard output, for data. Colour goes where somebody can see it.
    pub(super) fn out(&self) -> impl Write + use<> {
        io::BufWriter::new(results(self.color))
    }

    /// Standard error, for hints, warnings and progress.
    pub(super) fn notes(&self) -> impl Write + use<> {
        notes(self.color)
    }

    /// Whether a person sees the progress.
    pub(super) fn person_watches(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Columns of the terminal; unlimited in a pipe.
    pub(super) fn width(&self) -> usize {
        if !self.person_reads {
            return usize::MAX;
        }
        size_of_terminal(io::stdout()).columns
    }

    /// Whether results have colours.
    pub(super) fn has_colors(&self) -> bool {
        color_of(self.color, &io::stdout()) != anstream::ColorChoice::Never
    }

    pub(super) fn print_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        write_json(&mut out, value, self.person_reads)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Something worth knowing beside the result.
    pub(super) fn hint(&self, hint: &str) -> Result<(), Failure> {
        if !self.quiet {
            let style = anstyle::Style::new().dimmed();
            writeln!(self.notes(), "{style}hint: {hint}{style:#}")?;
        }
        Ok(())
    }
}

/// Lets signals wait until they are asked for.
pub(super) fn catch(signals: &[Signal]) -> Result<Interrupts, Failure> {
    Interrupts::catch(signals)
        .map_err(|error| Failure::new(Exit::Failed, format!("failed to catch signals ({error})")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What is usual where a terminal does not say.
pub(super) fn size_of_terminal(terminal: impl AsFd) -> Size {
    let (columns, rows) = tcgetwinsize(terminal).map_or((0, 0), |size| (size.ws_col, size.ws_row));
    Size {
        columns: if columns == 0 { 80 } else { columns.into() },
        rows: if rows == 0 { 24 } else { rows.into() },
    }
}

pub(super) fn results(color: ColorChoice) -> impl Write {
    AutoStream::new(io::stdout(), color_of(color, &io::stdout()))
}

pub(super) fn notes(color: ColorChoice) -> impl Write {
    AutoStream::new(io::stderr(), color_of(color, &io::stderr()))
}

fn color_of(choice: ColorChoice, stream: &impl anstream::stream::RawStream) -> anstream::ColorChoice {
    match choice {
        ColorChoice::Auto => AutoStream::choice(stream),
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
}
