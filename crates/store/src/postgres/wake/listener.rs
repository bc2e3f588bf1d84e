//! The session on which a worker listens. Nothing reads it but the worker itself, when its descriptor becomes readable.
//!
//! The worker watches `orders`, an epoll of ours that holds the socket of the session, or a timer while there is none. The
//! descriptor for work is an event that is set when a hint of work was read.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::event::epoll;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage};

use super::sender::{Heard, ReadyJobs, own_channel};
use super::{Hearing, event, name_sleeper};
use crate::postgres::connect::Connection;
use crate::postgres::identifier::literal;
use crate::postgres::session::{last_value, quoted};
use crate::postgres::{Address, ConnectError, ConnectOptions, Connected, Target, connect};
use crate::{OrderHints, Result, StoreError, Wake};
use domain::values::name::WorkerId;
use sys::clock;
use sys::clock::boot_timer::BootTimer;

/// A worker does nothing else while it opens this session.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// A hint to look that is not passed on.
const LOOK: u8 = 1;

/// How a worker reaches the server to listen.
pub(crate) struct Way {
    pub(crate) address: Address,
    /// That of the queue, which is also the name of the channel.
    pub(crate) schema: String,
    /// Of the queue, if the address is another than that of the store: it may lead elsewhere.
    pub(crate) store_id: Option<String>,
}

impl Way {
    /// Fails if it leads nowhere, or to another queue.
    pub(crate) fn check(&self) -> Result<()> {
        self.judge(Ear::open(self, None, &mut VecDeque::new()).map(drop))
    }

    /// A session that cannot be opened now is opened later, unless it has an address of its own, which may be wrong.
    fn judge(&self, opened: Result<(), Deafness>) -> Result<()> {
        match opened {
            Err(Deafness::Unreachable(error)) if self.store_id.is_some() => {
                Err(StoreError::Unreachable(error))
            }
            Err(Deafness::OtherQueue) => Err(StoreError::NotAllowed {
                problem: "the address behind `listen` does not lead to the queue of this store".to_owned(),
                advice: "name the server and the database of the queue in it, past the pooler",
            }),
            Ok(()) | Err(Deafness::Unreachable(_) | Deafness::NoSession) => Ok(()),
        }
    }
}

/// Asks for the id of the queue in a schema.
pub(crate) fn store_id(schema: &str) -> String {
    format!("select store_id from {}.meta", quoted(schema))
}

pub(crate) struct Listener {
    way: Way,
    hearing: Arc<Hearing>,
    state: Mutex<State>,
    orders: OwnedFd,
    work: OwnedFd,
    retry: BootTimer,
}

#[derive(Default)]
struct State {
    ear: Option<Ear>,
    failures: u32,
    /// Heard, and not yet understood.
    payloads: VecDeque<String>,
    hops: Option<u8>,
    hints: OrderHints,
}

/// A session that listens.
struct Ear {
    runtime: Runtime,
    client: Client,
    connection: Connection,
    descriptor: OwnedFd,
}

/// Why a worker does not hear.
#[derive(Debug)]
enum Deafness {
    Unreachable(Box<ConnectError>),
    NoSession,
    /// The session is with another queue, or with none.
    OtherQueue,
}

impl Deafness {
    fn of(error: &tokio_postgres::Error) -> Self {
        if error.code() == Some(&SqlState::UNDEFINED_TABLE) { Self::OtherQueue } else { Self::NoSession }
    }
}

impl Listener {
    /// Fails only if the way is wrong: see [`Way::judge`].
    pub(crate) fn open(way: Way, worker: &WorkerId) -> Result<Self> {
        let system = |error: rustix::io::Errno| StoreError::unavailable(error.into());
        let listener = Self {
            way,
            hearing: Arc::new(Hearing::new(worker.clone())),
            state: Mutex::default(),
            orders: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?,
            work: event()?,
            retry: BootTimer::new().map_err(StoreError::unavailable)?,
        };
        listener.watch(listener.retry.as_fd());
        let opened = listener.reopen(&mut listener.lock());
        listener.way.judge(opened)?;
        Ok(listener)
    }

    pub(crate) fn hearing(&self) -> Arc<Hearing> {
        Arc::clone(&self.hearing)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, descriptor: BorrowedFd<'_>) {
        // Without it the worker polls, because the session is not said to live.
        let _ = epoll::add(&self.orders, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN);
    }

    /// Listens again. The worker has to look for what it has not heard.
    fn reopen(&self, state: &mut State) -> Result<(), Deafness> {
        state.hints.has_orders = true;
        self.note_work(state, LOOK);
        let opened = Ear::open(&self.way, Some(&self.hearing.worker), &mut state.payloads).map(|ear| {
            self.watch(ear.descriptor.as_fd());
            state.ear = Some(ear);
            state.failures = 0;
            self.sleep_until(Duration::MAX);
            self.hearing.note_mark(false);
            self.hearing.set_lives(true);
        });
        if opened.is_err() {
            state.failures = state.failures.saturating_add(1);
            let pause = FIRST_RETRY.saturating_mul(1 << state.failures.min(7)).min(LAST_RETRY);
            self.sleep_until(clock::since_boot_with_sleep() + pause.mul_f64(0.5 + fastrand::f64() / 2.0));
        }
        opened
    }

    fn sleep_until(&self, at: Duration) {
        // The kernel's limit is far beyond the life of a machine.
        let _ = self.retry.set(at.min(Duration::from_secs(u64::from(u32::MAX))));
    }

    /// Reads what has arrived.
    fn read(&self, state: &mut State) {
        let Some(ear) = &mut state.ear else {
            // It tries again later.
            let _ = self.reopen(state);
            return;
        };
        self.sleep_until(Duration::MAX);
        if !ear.read(&mut state.payloads) {
            let _ = epoll::delete(&self.orders, &ear.descriptor);
            state.ear = None;
            self.hearing.set_lives(false);
            self.sleep_until(clock::since_boot_with_sleep() + FIRST_RETRY);
            state.hints.has_orders = true;
            self.note_work(state, LOOK);
        }
        while let Some(payload) = state.payloads.pop_front() {
            match Heard::parse(&payload, &self.hearing.worker) {
                Some(Heard::Work { hops }) => {
                    self.hearing.note_hint();
                    if self.hearing.has_room() {
                        self.note_work(state, hops);
                    } else {
                        self.name_another(state, hops);
                    }
                }
                Some(Heard::Orders) => state.hints.has_orders = true,
                Some(Heard::Reader { job }) => state.hints.readers.push(job),
                None => {}
            }
        }
    }

    fn note_work(&self, state: &mut State, hops: u8) {
        state.hops = state.hops.max(Some(hops));
        // It fails if the event is set very often, and then it is set.
        let _ = rustix::io::write(&self.work, &1_u64.to_ne_bytes());
    }

    fn name_another(&self, state: &mut State, hops: u8) {
        if let Some(ear) = &mut state.ear {
            // This session has no settings of its own.
            let sql = format!(
                "set local search_path = {}, pg_temp; {}",
                quoted(&self.way.schema),
                name_sleeper(&self.way.schema, &ReadyJobs::Anywhere, hops, Some(&self.hearing.worker)),
            );
            ear.send(&sql, &mut state.payloads);
        }
    }
}

impl Wake for Listener {
    fn work(&self) -> BorrowedFd<'_> {
        self.work.as_fd()
    }

    fn take_work(&self) -> Option<u8> {
        let mut state = self.lock();
        let _ = rustix::io::read(&self.work, &mut [0; 8]);
        state.hops.take()
    }

    fn pass_on(&self, hops: u8) {
        let mut state = self.lock();
        self.name_another(&mut state, hops);
        if !state.payloads.is_empty() {
            // They are in memory now, and no longer make the socket readable.
            self.sleep_until(Duration::ZERO);
        }
    }

    fn orders(&self) -> BorrowedFd<'_> {
        self.orders.as_fd()
    }

    fn take_orders(&self) -> OrderHints {
        let mut state = self.lock();
        self.read(&mut state);
        std::mem::take(&mut state.hints)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hearing.set_lives(false);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("hearing", &self.hearing).finish_non_exhaustive()
    }
}

impl Ear {
    /// Listens to what concerns all workers, and this one.
    fn open(way: &Way, worker: Option<&WorkerId>, payloads: &mut VecDeque<String>) -> Result<Self, Deafness> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|_| Deafness::NoSession)?;
        let options = ConnectOptions { target: Target::Primary, session_settings: String::new() };
        let opening = async {
            let mut address = way.address.clone();
            address.connect_timeout = address.connect_timeout.min(OPEN_TIMEOUT);
            let Connected { client, mut connection, descriptor, .. } =
                connect(&address, &options).await.map_err(|error| Deafness::Unreachable(Box::new(error)))?;
            let mut listen = format!("listen {}; ", quoted(&way.schema));
            if let Some(worker) = worker {
                let own = format!("select {}", own_channel(&way.schema, &literal(worker.as_str())));
                let own = last_value(&ask(&client, &mut connection, payloads, &own).await?);
                listen.extend(own.map(|own| format!("listen {}; ", quoted(&own))));
            }
            listen.push_str(&store_id(&way.schema));
            let answer = ask(&client, &mut connection, payloads, &listen).await?;
            if way.store_id.is_some() && way.store_id != last_value(&answer) {
                return Err(Deafness::OtherQueue);
            }
            Ok((client, connection, descriptor))
        };
        let opened = runtime.block_on(async { tokio::time::timeout(OPEN_TIMEOUT, opening).await });
        let (client, connection, descriptor) = opened.map_err(|_| Deafness::NoSession)??;
        Ok(Self { runtime, client, connection, descriptor })
    }

    /// Reads what has arrived, without waiting. Returns whether the session is still there.
    fn read(&mut self, payloads: &mut VecDeque<String>) -> bool {
        let Self { runtime, connection, .. } = self;
        runtime.block_on(async {
            // The runtime learns only between two turns that the socket is readable.
            tokio::task::yield_now().await;
            poll_fn(|context| Poll::Ready(carry(connection, context, payloads))).await
        })
    }

    /// Sends statements without waiting for an answer.
    fn send(&mut self, sql: &str, payloads: &mut VecDeque<String>) {
        let Self { runtime, client, connection, .. } = self;
        runtime.block_on(async {
            let mut request = pin!(client.simple_query(sql));
            poll_fn(|context| {
                let _ = request.as_mut().poll(context);
                // The next read finds out if the session is lost.
                let _ = carry(connection, context, payloads);
                Poll::Ready(())
            })
            .await;
        });
    }
}

/// Asks and waits for the answer.
async fn ask(
    client: &Client,
    connection: &mut Connection,
    payloads: &mut VecDeque<String>,
    sql: &str,
) -> Result<Vec<SimpleQueryMessage>, Deafness> {
    let mut asking = pin!(client.simple_query(sql));
    poll_fn(|context| {
        if !carry(connection, context, payloads) {
            return Poll::Ready(Err(Deafness::NoSession));
        }
        asking.as_mut().poll(context).map_err(|error| Deafness::of(&error))
    })
    .await
}

/// Lets the session make progress. Returns whether it is still there.
fn carry(connection: &mut Connection, context: &mut Context<'_>, payloads: &mut VecDeque<String>) -> bool {
    loop {
        match connection.poll_message(context) {
            Poll::Ready(Some(Ok(AsyncMessage::Notification(heard)))) => {
                payloads.push_back(heard.payload().to_owned());
            }
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(_)) | None) => return false,
            Poll::Pending => return true,
        }
    }
}
