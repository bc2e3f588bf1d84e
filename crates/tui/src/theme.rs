//! Colours and signs. Every state has a sign and a word besides its colour.

use ratatui::style::{Color, Modifier, Style};

use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::timestamp::Timestamp;

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    None,
    /// Those of the terminal's own theme.
    Sixteen,
    /// Chosen to be readable on light and on dark.
    True,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) colors: Colors,
    pub(crate) is_ascii: bool,
}

/// What a text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Accent,
    Warning,
    Error,
    Good,
    Scheduled,
    Blocked,
    Running,
    /// What a command writes to standard error.
    ErrorOutput,
    /// Less important than the rest.
    Quiet,
}

impl Theme {
    /// Of the 16 colours, plain blue cannot be read on black, and yellow hardly on white: yellow is for signs and short
    /// words only.
    pub(crate) fn style(self, role: Role) -> Style {
        let (basic, exact) = match role {
            Role::Accent | Role::Running => (Color::LightBlue, (0x2f, 0x7f, 0xd6)),
            Role::Warning => (Color::Yellow, (0xb0, 0x70, 0x00)),
            Role::Error => (Color::Red, (0xd6, 0x45, 0x3b)),
            Role::Good => (Color::Green, (0x1f, 0x8f, 0x5f)),
            Role::Scheduled => (Color::Magenta, (0x8a, 0x63, 0xd2)),
            Role::Blocked => (Color::Yellow, (0x96, 0x72, 0x4e)),
            Role::ErrorOutput => (Color::Magenta, (0xb0, 0x70, 0x00)),
            Role::Quiet => (Color::DarkGray, (0x75, 0x7d, 0x85)),
        };
        match self.colors {
            Colors::None if role == Role::Quiet => Style::new(),
            Colors::None if role == Role::Error => Style::new().add_modifier(Modifier::BOLD),
            Colors::None => Style::new(),
            Colors::Sixteen => Style::new().fg(basic),
            Colors::True => Style::new().fg(Color::Rgb(exact.0, exact.1, exact.2)),
        }
    }

    pub(crate) fn title() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The row under the cursor, the current tab. One colour throughout: reversed, each cell would get a background of its
    /// own.
    pub(crate) fn chosen() -> Style {
        Style::new().fg(Color::Reset).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    pub(crate) fn state(self, state: StateName) -> Style {
        match state {
            StateName::Pending => Style::new(),
            StateName::Processing => self.style(Role::Running),
            StateName::Completed => self.style(Role::Good),
            StateName::Failed => self.style(Role::Warning),
            StateName::Dead => self.style(Role::Error),
            StateName::Cancelled => self.style(Role::Quiet),
        }
    }

    pub(crate) fn sign(self, state: StateName) -> &'static str {
        let (sign, ascii) = match state {
            StateName::Pending => ("○", "."),
            StateName::Processing => ("▶", ">"),
            StateName::Completed => ("✓", "v"),
            StateName::Failed => ("↻", "~"),
            StateName::Dead => ("✕", "x"),
            StateName::Cancelled => ("⊘", "-"),
        };
        if self.is_ascii { ascii } else { sign }
    }

    /// As [`Self::sign`]; a pending job that waits for a time or for other jobs has a sign of its own.
    pub(crate) fn sign_of(self, job: &Job, now: Timestamp) -> (&'static str, Style) {
        match &job.life.state {
            State::Pending { blocked_by: 1.. } => (self.pick("◫", "#"), self.style(Role::Blocked)),
            State::Pending { .. } if job.life.due_at > now => {
                (self.pick("◷", "@"), self.style(Role::Scheduled))
            }
            state @ (State::Pending { .. }
            | State::Processing(_)
            | State::Completed { .. }
            | State::Failed
            | State::Dead { .. }
            | State::Cancelled { .. }) => (self.sign(state.name()), self.state(state.name())),
        }
    }

    /// The sign, or its replacement in ASCII.
    pub(crate) fn pick(self, sign: &'static str, ascii: &'static str) -> &'static str {
        if self.is_ascii { ascii } else { sign }
    }
}
