//! Waits for keys, signals and data, and draws when something has changed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ratatui::backend::Backend;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::actions::{Actor, ActorOptions};
use crate::data::{Message, Question, Reader, Waker};
use crate::options::{TopError, TopOptions};
use crate::state::{Effect, Fixed, State};
use crate::terminal::{Session, parse};
use crate::theme::Theme;
use crate::views;
use domain::values::name::JobId;
use sys::failpoint;
use sys::signal::interrupts::{Interrupts, timespec};

/// The clock and the ages on the screen move this often.
const TICK: Duration = Duration::from_secs(1);

/// Shows the queue until the user quits, or until the signal that is returned. The caller has caught INT, TERM, HUP, TSTP and
/// WINCH.
pub fn run(options: TopOptions, interrupts: &Interrupts) -> Result<Option<Signal>, TopError> {
    let (waker, inbox, event) = Waker::new()?;
    let mut session = Session::open(options.has_mouse)?.ok_or(TopError::Background)?;
    let fixed = Fixed {
        title: options.title,
        is_read_only: options.is_read_only,
        theme: Theme { colors: options.colors, is_ascii: options.is_ascii },
        local: options.local_zone,
        complete: options.complete,
    };
    let size = session.screen.backend().size()?;
    let state = State::new(fixed, size, options.has_mouse, options.is_utc);
    let question = state.question();
    let actor_options = ActorOptions {
        location: options.location.clone(),
        is_read_only: options.is_read_only,
        by: options.by,
        program_flags: options.program_flags.clone(),
    };
    let actor = Actor::start(actor_options, waker.try_clone()?)?;
    let reader = Reader::start(options.location, question.clone(), waker)?;
    let mut top = Top {
        state,
        session: &mut session,
        interrupts,
        ended_by: None,
        reader,
        actor,
        question,
        program_flags: options.program_flags,
    };
    top.run(&inbox, &event)
}

/// What ended a wait.
enum Wait {
    Something,
    /// The terminal is gone.
    HungUp,
}

struct Top<'s> {
    state: State,
    session: &'s mut Session,
    interrupts: &'s Interrupts,
    /// The signal that ends this process.
    ended_by: Option<Signal>,
    reader: Reader,
    actor: Actor,
    /// What the reader was asked last.
    question: Question,
    program_flags: Vec<String>,
}

impl Top<'_> {
    fn run(&mut self, inbox: &Receiver<Message>, event: &OwnedFd) -> Result<Option<Signal>, TopError> {
        loop {
            self.draw()?;
            if let Wait::HungUp = self.wait(event) {
                return Ok(None);
            }
            while let Some(signal) = self.interrupts.take() {
                match signal {
                    Signal::WINCH => {}
                    Signal::TSTP => self.session.suspend()?,
                    // As the key: the user quits.
                    Signal::INT => return Ok(None),
                    signal => return Ok(Some(signal)),
                }
            }
            self.state.size = self.session.screen.backend().size()?;
            if !self.take_keys()? || self.ended_by.is_some() {
                return Ok(self.ended_by);
            }
            for message in inbox.try_iter() {
                self.state.receive(message);
            }
            self.ask();
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let state = &self.state;
        self.session.screen.draw(|frame| views::draw(state, frame.buffer_mut()))?;
        if cfg!(debug_assertions)
            && std::env::var_os("QUEUECTL_TOP_PANICS").is_some()
            && self.state.snapshot.is_some()
        {
            // A test looks at the terminal afterwards.
            panic!("the test asked for it");
        }
        failpoint::hit("top_drawn");
        Ok(())
    }

    /// Sleeps until a key, a signal or a message arrives, or the clock has moved.
    fn wait(&self, event: &OwnedFd) -> Wait {
        let mut descriptors = vec![
            PollFd::new(self.interrupts, PollFlags::IN),
            PollFd::from_borrowed_fd(event.as_fd(), PollFlags::IN),
        ];
        descriptors.extend(self.session.keyboard().map(|keyboard| PollFd::new(keyboard, PollFlags::IN)));
        // An interrupted sleep is only shorter.
        let _ = poll(&mut descriptors, Some(&timespec(TICK)));
        let terminal = descriptors.get(2).map(PollFd::revents);
        drop(descriptors);
        let mut count = [0; 8];
        let _ = rustix::io::read(event, &mut count);
        let is_gone = terminal.is_some_and(|ready| ready.intersects(PollFlags::HUP | PollFlags::ERR));
        if is_gone { Wait::HungUp } else { Wait::Something }
    }

    /// Takes the keys that were pressed; `false` if one of them quits, or the terminal is gone.
    fn take_keys(&mut self) -> io::Result<bool> {
        let Some(keyboard) = self.session.keyboard() else {
            return Ok(true);
        };
        let is_ready = poll(&mut [PollFd::new(keyboard, PollFlags::IN)], Some(&timespec(Duration::ZERO)));
        if is_ready != Ok(1) {
            return Ok(true);
        }
        let Ok(bytes) = keyboard.read() else {
            return Ok(false);
        };
        for input in parse(&bytes) {
            match self.state.input(&input) {
                None => {}
                Some(Effect::Quit) => return Ok(false),
                Some(effect) => self.perform(effect)?,
            }
        }
        Ok(true)
    }

    fn perform(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Quit => {}
            Effect::Do(action) => self.actor.order(action),
            Effect::RunLine(line) => self.actor.run_line(line),
            Effect::EndLine => self.actor.end_line(),
            // The terminal puts it on the clipboard, also over a remote connection.
            Effect::Copy(text) => self.session.write(&format!("\x1b]52;c;{}\x07", STANDARD.encode(text)))?,
            Effect::SetMouse(is_on) => {
                if self.session.has_mouse() != is_on {
                    self.session.set_mouse(is_on)?;
                }
            }
            Effect::Edit(id) => self.lend(&id, None)?,
            Effect::Page(id, attempt) => self.lend(&id, Some(attempt))?,
        }
        Ok(())
    }

    /// Lets another process have the terminal: the editor, or the pager with the log of an attempt.
    fn lend(&mut self, id: &JobId, attempt: Option<u32>) -> io::Result<()> {
        let flags = &self.program_flags;
        let (what, mut command) = match attempt {
            None => {
                let mut command = Command::new("/proc/self/exe");
                command.args(flags).args(["edit", "--", id.as_str()]);
                ("edit", command)
            }
            Some(attempt) => {
                let mut command = Command::new("sh");
                // The pager may be a line for a shell, as in `LESS=-S less`. The exit code of the pipe is that of the pager.
                let script = r#"program=$1; shift; "$program" "$@" 2>&1 | sh -c "${PAGER:-less -R}""#;
                command.args(["-c", script, "sh"]).arg(std::env::current_exe()?).args(flags);
                command.args(["logs", "--attempt", &attempt.to_string(), "--", id.as_str()]);
                ("the pager", command)
            }
        };
        let ended = self.session.lend(|| command.status());
        self.forget_interrupts();
        match ended {
            Ok(status) if status.success() => self.state.say(format!("{what} ended")),
            Ok(status) => self.state.fail(format!("{what} failed ({status})")),
            Err(error) => self.state.fail(format!("{what} cannot be started ({error})")),
        }
        Ok(())
    }

    /// Ctrl-C in the other program was not for this one. Other signals end this one too.
    fn forget_interrupts(&mut self) {
        while let Some(signal) = self.interrupts.take() {
            let is_end = !matches!(signal, Signal::INT | Signal::WINCH | Signal::TSTP);
            self.ended_by = self.ended_by.or(is_end.then_some(signal));
        }
    }

    /// Asks the reader for what the screen needs now.
    fn ask(&mut self) {
        let question = self.state.question();
        if question != self.question {
            self.reader.ask(question.clone());
            self.question = question;
        }
    }
}
