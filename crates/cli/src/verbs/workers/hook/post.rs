//! The hidden verb with which queuectl starts itself to post one event.

use std::io::{Read, Write};
use sys::program::ExitCode;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use engine::{Request, post as send_request};
use ops::error::without_os_codes;
use sys::clock::{Clock, SystemClock};

/// Post the event on standard input
#[derive(Debug, clap::Args)]
pub(crate) struct PostArgs {}

/// No event is larger.
const MAX_BYTES: u64 = 16 << 20;

pub(crate) fn post(_: &PostArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text)?;
    let request: Request = serde_json::from_str(&text)
        .map_err(|_| Failure::usage("this command is internal; use `queuectl hook add --url`"))?;
    match send_request(&request, SystemClock.wall_millis() / 1000) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The worker records the last line as the error.
        Err(error) => {
            writeln!(context.notes(), "{}", without_os_codes(&error.to_string()))?;
            Ok(Exit::Failed.into())
        }
    }
}
