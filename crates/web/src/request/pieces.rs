//! A body that is written piece by piece.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc;

/// Writes the pieces. It is closed when the client is gone.
pub(crate) type PieceSender = mpsc::Sender<Bytes>;

#[derive(Debug)]
pub(crate) struct Pieces(mpsc::Receiver<Bytes>);

/// At most `room` pieces wait for the client.
pub(crate) fn pieces(room: usize) -> (PieceSender, Pieces) {
    let (sender, receiver) = mpsc::channel(room);
    (sender, Pieces(receiver))
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
