//! The context that every verb runs in: where the store is, and how to print results.

use std::cell::OnceCell;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anstream::AutoStream;
use clap::ColorChoice;
use rustix::process::Signal;
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use super::failure::{Exit, Failure};
use super::render::table::Table;
use super::render::text::{printable, wrap_after_label};
use super::root::Global;
use domain::values::clock::{Clock, TimeFormat};
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::error::how_to_follow;
use ops::escape::write_json;
use ops::home::location;
use ops::home::location::{Location, LocationArgs, StoreAddress};
use ops::home::open;
use store::{Store, StoreError};
use sys::signal::interrupts::Interrupts;
use sys::zone;

#[derive(Debug)]
pub(super) struct Context {
    wanted: LocationArgs,
    location: OnceCell<Location>,
    store: OnceCell<Box<dyn Store>>,
    /// Results are written for a person, not for a program.
    pub(super) stdout_is_terminal: bool,
    pub(super) color: ColorChoice,
    pub(super) json: bool,
    pub(super) quiet: bool,
    times: Times,
}

/// Whose clock results show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    Utc,
    Local,
}

impl Times {
    fn of(global: &Global, stdout_is_terminal: bool) -> Self {
        if stdout_is_terminal && !global.json && !global.utc { Self::Local } else { Self::Utc }
    }
}

impl Context {
    pub(super) fn new(global: &Global) -> Self {
        let stdout_is_terminal = io::stdout().is_terminal();
        Self {
            wanted: LocationArgs { home: global.home.clone(), store: global.store.clone() },
            location: OnceCell::new(),
            store: OnceCell::new(),
            stdout_is_terminal,
            color: global.color,
            json: global.json,
            quiet: global.quiet,
            times: Times::of(global, stdout_is_terminal),
        }
    }

    /// Where home and store are, located on first use.
    pub(super) fn location(&self) -> Result<Location, Failure> {
        if let Some(location) = self.location.get() {
            return Ok(location.clone());
        }
        let location = location::locate(&self.wanted)?;
        if let Some(skipped) = &location.skipped_home {
            self.hint(&format!("{skipped}; ignoring it and using {}", location.home.display()))?;
        }
        if let (StoreAddress::Postgres(address), Some(_)) = (&location.store, &self.wanted.store)
            && address.has_password()
        {
            self.hint("other users can see the arguments of a command; keep the password in ~/.pgpass or QUEUECTL_STORE")?;
        }
        Ok(self.location.get_or_init(|| location).clone())
    }

    /// The `--home` and `--store` flags, for callers that locate them on their own.
    pub(super) fn location_flags(&self) -> &LocationArgs {
        &self.wanted
    }

    /// The store, opened on first use. A home that the user named must have a queue: only verbs that add something to a
    /// queue create one there, with [`Self::store_or_new`].
    pub(super) fn store(&self) -> Result<&dyn Store, Failure> {
        let is_new = self.store.get().is_none();
        let store = self.open_once(open::open_existing)?;
        if is_new && let Some(relocation) = store.relocation()? {
            self.hint(&format!("{relocation}; {}", how_to_follow(&relocation)))?;
        }
        Ok(store)
    }

    /// The store, opened on first use and created if it does not exist.
    pub(super) fn store_or_new(&self) -> Result<&dyn Store, Failure> {
        self.open_once(open::open)
    }

    /// As [`Self::store_or_new`], for workers, whose failure to register the user would not see.
    pub(super) fn store_for_workers(&self) -> Result<&dyn Store, Failure> {
        let store = self.store_or_new()?;
        if let Some(relocation) = store.relocation()? {
            return Err(StoreError::Relocated(relocation).into());
        }
        store.check_fitness_for_workers()?;
        Ok(store)
    }

    fn open_once(
        &self,
        open: fn(&Location) -> Result<Box<dyn Store>, OpError>,
    ) -> Result<&dyn Store, Failure> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        let store = open(&self.location()?)?;
        Ok(self.store.get_or_init(|| store).as_ref())
    }

    /// Called once, before the process exits: does the store's pending maintenance now instead of leaving it to the next
    /// process, and skips all destructors, because the kernel frees memory faster than we could.
    pub(super) fn leave(self) {
        if let Some(store) = self.store.get() {
            store.tidy();
        }
        std::mem::forget(self);
    }

    /// Standard output, for data; coloured as `--color` says.
    pub(super) fn out(&self) -> impl Write + use<> {
        io::BufWriter::new(results(self.color))
    }

    /// Standard error, for hints, warnings and progress.
    pub(super) fn notes(&self) -> impl Write + use<> {
        notes(self.color)
    }

    /// Whether to show progress on standard error.
    pub(super) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Columns of the terminal; unlimited where standard output is not a terminal.
    pub(super) fn width(&self) -> usize {
        if !self.stdout_is_terminal {
            return usize::MAX;
        }
        size_of_terminal(io::stdout()).columns
    }

    /// Rows of the terminal; unlimited where standard output is not a terminal.
    pub(super) fn height(&self) -> usize {
        if self.stdout_is_terminal { size_of_terminal(io::stdout()).rows } else { usize::MAX }
    }

    /// Whether results are coloured.
    pub(super) fn has_colors(&self) -> bool {
        color_of(self.color, &io::stdout()) != anstream::ColorChoice::Never
    }

    /// How results show times: on a terminal by the local clock, else in UTC.
    pub(super) fn time_format(&self) -> TimeFormat {
        match self.times {
            Times::Utc => TimeFormat::Full,
            Times::Local => TimeFormat::Short(zone::local()),
        }
    }

    /// Whether times are shown by the local clock.
    #[cfg(feature = "tui")]
    pub(super) fn shows_local_time(&self) -> bool {
        self.times == Times::Local
    }

    /// Shows times to people.
    pub(super) fn clock(&self, now: Timestamp) -> Clock {
        Clock::new(now, self.time_format())
    }

    pub(super) fn print_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        write_json(&mut out, value, self.stdout_is_terminal)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Prints a result: as JSON, or as `write` does, or not at all.
    pub(super) fn print(
        &self,
        json: &impl Serialize,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.json || self.quiet {
            return if self.json { self.print_json(json) } else { Ok(()) };
        }
        let mut out = self.out();
        write(&mut out)?;
        Ok(out.flush()?)
    }

    /// Prints a list: as JSON, or as a table, or a hint if it is empty.
    pub(super) fn print_list<'a, J: Serialize + From<&'a T>, T>(
        &self,
        items: &'a [T],
        if_empty: &str,
        table: impl FnOnce(&'a [T]) -> Table,
    ) -> Result<(), Failure> {
        if items.is_empty() && !self.json {
            return self.hint(if_empty);
        }
        let json: Vec<J> = items.iter().filter(|_| self.json).map(J::from).collect();
        self.print(&json, |out| table(items).write(out, self.width()))
    }

    /// Tells a person on the terminal something that a program does not need to know.
    pub(super) fn note(&self, note: &str) -> Result<(), Failure> {
        if self.shows_progress() && !self.json {
            self.write_dimmed("", note)?;
        }
        Ok(())
    }

    /// Tells a person which home was used, if it was found above the current directory.
    pub(super) fn note_home(&self) -> Result<(), Failure> {
        let location = self.location()?;
        if self.shows_progress() && !self.json && location.is_found_above() {
            self.note(&home_line(&location.home))?;
        }
        Ok(())
    }

    /// Prints a hint on standard error.
    pub(super) fn hint(&self, hint: &str) -> Result<(), Failure> {
        if !self.quiet {
            self.write_dimmed("hint: ", hint)?;
        }
        Ok(())
    }

    /// In one write, so that the output of other processes does not get into the line.
    fn write_dimmed(&self, label: &str, message: &str) -> io::Result<()> {
        let is_plain = color_of(self.color, &io::stderr()) == anstream::ColorChoice::Never;
        let style = if is_plain { anstyle::Style::new() } else { anstyle::Style::new().dimmed() };
        let message = wrap_after_label(message, label.len(), width_of_notes());
        self.notes().write_all(format!("{style}{label}{message}{style:#}\n").as_bytes())
    }
}

/// Names a home.
pub(super) fn home_line(home: &Path) -> String {
    format!("Home: {}", printable(&home.display().to_string()))
}

/// Blocks these signals until the caller reads them from the result.
pub(super) fn catch(signals: &[Signal]) -> Result<Interrupts, Failure> {
    Interrupts::catch(signals)
        .map_err(|error| Failure::new(Exit::Failed, format!("failed to catch signals ({error})")))
}

/// Writes a value as JSON on one line.
pub(super) fn write_json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write_json(out, value, false)?;
    out.write_all(b"\n")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The size of a terminal; 80 by 24 where the terminal does not report one.
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

/// Columns of the terminal that shows errors and hints; unlimited where standard error is not a terminal.
pub(super) fn width_of_notes() -> usize {
    if io::stderr().is_terminal() { size_of_terminal(io::stderr()).columns } else { usize::MAX }
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
