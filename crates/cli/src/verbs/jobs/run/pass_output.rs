//! Passes the output of a job on, and reacts to signals and to a closed pipe meanwhile.

use std::io;

use rustix::process::Signal;

use super::follow::EarlyExit;
use super::terminal::TerminalOutput;
use crate::failure::Failure;
use crate::render::text::rough_size;
use ops::jobs::logs::{Chunk, Piece};
use sys::signal::interrupts::Interrupts;

pub(super) trait PassOutput<'a> {
    fn terminal(&mut self) -> &mut TerminalOutput<'a>;
    fn interrupts(&self) -> &'a Interrupts;
    fn handle_signal(&mut self, signal: Signal) -> Result<(), EarlyExit>;
    fn handle_closed_output(&mut self) -> Result<(), EarlyExit>;
    fn reattach_hint(&self) -> String;

    fn write_pieces(&mut self, pieces: &[Piece]) -> Result<(), EarlyExit> {
        for piece in pieces {
            match piece {
                Piece::Output(chunk) => self.write_chunk(chunk)?,
                Piece::Cut { bytes } => self.terminal().note(&format!("[… {} cut …]", rough_size(*bytes))),
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self, chunk: &Chunk) -> Result<(), EarlyExit> {
        let interrupts = self.interrupts();
        let mut rest = chunk.bytes.as_slice();
        while !rest.is_empty() {
            match self.terminal().write(chunk.stream, rest, interrupts) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return self.handle_closed_output();
                }
                Err(error) => {
                    let failure: Failure = error.into();
                    return Err(failure.with_hint(self.reattach_hint()).into());
                }
            }
            if let Some(signal) = interrupts.take() {
                self.handle_signal(signal)?;
            }
        }
        Ok(())
    }
}
