//! One connection: hyper with explicit limits.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::crowd::Seat;
use crate::doors::host::AllowedHosts;
use crate::doors::peer::{Peer, PeerKind};
use crate::server::Server;

/// The request line and the headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// How long a client may take to send them, and how long a connection may wait for the next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to accept a part of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream of bytes from a client.
#[derive(Debug)]
pub(crate) enum Io {
    Tcp(TcpStream),
    Socket(UnixStream),
}

/// What the connections of one listener have in common.
#[derive(Clone)]
pub(crate) struct Entrance {
    pub(crate) hosts: Arc<AllowedHosts>,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves a connection until it ends, or until the server stops.
pub(crate) async fn serve(server: Arc<Server>, entrance: Entrance, io: Io, kind: PeerKind, seat: Seat) {
    let io = Patient { io, blocked: None };
    match entrance.tls.clone() {
        None => serve_http(server, entrance, io, kind, seat).await,
        Some(acceptor) => {
            if let Ok(Ok(io)) = timeout(HEAD_TIMEOUT, acceptor.accept(io)).await {
                serve_http(server, entrance, io, kind, seat).await;
            }
        }
    }
}

async fn serve_http<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    server: Arc<Server>,
    entrance: Entrance,
    io: I,
    kind: PeerKind,
    seat: Seat,
) {
    let (peer, seat) = (Arc::new(Peer::new(kind)), Arc::new(seat));
    let service = service_fn(|request: Request<Incoming>| {
        let (server, peer, seat) = (Arc::clone(&server), Arc::clone(&peer), Arc::clone(&seat));
        let hosts = Arc::clone(&entrance.hosts);
        async move {
            let mut request = request.map(Body::new);
            // The seat is busy when the body has arrived: one that never does locks out no other client.
            request.extensions_mut().insert(Arc::clone(&seat));
            let response = server.answer(&hosts, &peer, request).await;
            Ok::<Response<Body>, Infallible>(response.map(|body| Body::new(Attended { body, seat })))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .half_close(false);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    let mut stopping = server.stopping();
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // An error of a connection concerns only its client.
            _ = &mut connection => return,
            () = seat.closed() => return,
            () = stopping.wait(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The body of an answer; when it has been written or dropped, the connection waits for the next request.
struct Attended {
    body: Body,
    seat: Arc<Seat>,
}

impl hyper::body::Body for Attended {
    type Data = <Body as hyper::body::Body>::Data;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.seat.set_busy(false);
    }
}

/// Gives up on a client that accepts nothing for [`WRITE_TIMEOUT`].
struct Patient {
    io: Io,
    blocked: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn unless_blocked<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.blocked = None;
            return poll;
        }
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIMEOUT)));
        blocked.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Io::Socket(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Io::Socket(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        self.unless_blocked(context, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Io::Socket(stream) => Pin::new(stream).poll_flush(context),
        };
        self.unless_blocked(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Io::Socket(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
