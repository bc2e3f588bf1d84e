//! The client of a stream that one thread writes: a slow one is waited for, and a quiet one gets comments.

use std::time::{Duration, Instant};

use axum::body::Bytes;

use super::frame;
use crate::doors::limits::Place;
use crate::request::pieces::PieceSender;

const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// The receiving end.
pub(crate) struct Client {
    sender: PieceSender,
    sent_at: Instant,
    _place: Place,
}

impl Client {
    pub(crate) fn new(sender: PieceSender, place: Place) -> Self {
        Self { sender, sent_at: Instant::now(), _place: place }
    }

    /// Whether the client is still there. Waits until it has read what came before.
    pub(crate) fn send(&mut self, message: Bytes) -> bool {
        self.sent_at = Instant::now();
        self.sender.blocking_send(message).is_ok()
    }

    pub(crate) fn is_there(&mut self) -> bool {
        if self.sender.is_closed() {
            return false;
        }
        self.sent_at.elapsed() < COMMENT_INTERVAL || self.send(frame::comment())
    }

    /// How long it has got nothing.
    pub(crate) fn quiet_for(&self) -> Duration {
        self.sent_at.elapsed()
    }
}
