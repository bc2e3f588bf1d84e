//! The server: what it is started with, what its requests share, and its end.

mod dispatch;
mod run;

pub use run::{Ready, ServeError, run};

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, Request, Response};
use axum::response::IntoResponse;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};

use crate::actions::Actions;
use crate::base_path::BasePath;
use crate::doors::headers;
use crate::doors::host::{AllowedHosts, HostName};
use crate::doors::limits::{Attempts, Gauge, MAX_CHANGES, MAX_REQUESTS, PerCaller};
use crate::doors::login::Codes;
use crate::doors::origin;
use crate::doors::peer::Peer;
use crate::doors::session::Sessions;
use crate::doors::tokens::TokenFile;
use crate::http_metrics::HttpMetrics;
use crate::listen::address::ListenAddress;
use crate::listen::tls::TlsFiles;
use crate::pages::job::lines::LogIndexes;
use crate::pages::queues::trends::LastTrends;
use crate::pool::Pool;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::routes::doctor::LastDiagnosis;
use crate::routes::table::Route;
use crate::stream::hub::Hub;
use domain::values::timestamp::Timestamp;
use ops::home::location::{Location, LocationArgs};
use sys::clock::{Clock, SystemClock};

/// Searches of one caller that run at once.
const MAX_SEARCHES: usize = 2;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// With absolute paths.
    pub location: Location,
    /// As they were given, for `doctor`.
    pub location_args: LocationArgs,
    /// Ignored if systemd passes sockets.
    pub listen: Vec<ListenAddress>,
    /// Whether other machines may connect.
    pub allow_remote: bool,
    pub tls: Option<TlsFiles>,
    /// A proxy in front ends TLS and may run as another user.
    pub behind_proxy: bool,
    pub hosts: Vec<HostName>,
    /// No scope permits more than reading.
    pub read_only: bool,
    pub base_path: BasePath,
    /// The header in which a proxy names the user that it has authenticated.
    pub user_header: Option<HeaderName>,
    pub max_streams: usize,
    pub surface: Surface,
}

/// Which routes a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Whole,
    /// `/metrics` alone; no browser can log in.
    Metrics,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) options: ServerOptions,
    pub(crate) pool: Pool,
    pub(crate) tokens: TokenFile,
    pub(crate) sessions: Sessions,
    pub(crate) codes: Codes,
    pub(crate) attempts: Attempts,
    pub(crate) metrics: HttpMetrics,
    pub(crate) searches: PerCaller,
    pub(crate) actions: Actions,
    pub(crate) streams: Gauge,
    pub(crate) hub: Arc<Hub>,
    pub(crate) diagnosis: LastDiagnosis,
    pub(crate) trends: LastTrends,
    pub(crate) log_indexes: LogIndexes,
    requests: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    router: Router,
    /// The port in the name of the cookie: browsers send cookies to every port of a host.
    cookie_port: u16,
    stop: watch::Sender<bool>,
}

impl Server {
    fn new(options: ServerOptions, cookie_port: u16) -> std::io::Result<Self> {
        let home = &options.location.home;
        Ok(Self {
            pool: Pool::new(options.location.clone()),
            tokens: TokenFile::new(home),
            sessions: Sessions::default(),
            codes: Codes::new()?,
            attempts: Attempts::default(),
            metrics: HttpMetrics::default(),
            searches: PerCaller::new(MAX_SEARCHES),
            actions: Actions::default(),
            streams: Gauge::new(options.max_streams),
            hub: Arc::new(Hub::default()),
            diagnosis: LastDiagnosis::default(),
            trends: LastTrends::default(),
            log_indexes: LogIndexes::default(),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            changes: Arc::new(Semaphore::new(MAX_CHANGES)),
            router: dispatch::router(&options.base_path, options.surface),
            cookie_port,
            stop: watch::Sender::new(false),
            options,
        })
    }

    /// Answers a request that hyper has parsed.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        hosts: &AllowedHosts,
        peer: &Arc<Peer>,
        mut request: Request<Body>,
    ) -> Response<Body> {
        let began = Instant::now();
        let mut response = if let Err(problem) = self.pass(hosts, peer, &request) {
            Answer::from(problem).into_response()
        } else {
            request.extensions_mut().insert(Arc::clone(self));
            request.extensions_mut().insert(Arc::clone(peer));
            let router = TowerToHyperService::new(self.router.clone());
            router.call(request).await.unwrap_or_else(|never| match never {})
        };
        headers::add(response.headers_mut());
        let route = response.extensions_mut().remove::<&'static Route>();
        self.metrics.record(route, response.status(), began.elapsed());
        response
    }

    /// The doors before routing.
    fn pass(&self, hosts: &AllowedHosts, peer: &Peer, request: &Request<Body>) -> Result<(), Problem> {
        hosts.check(request)?;
        origin::check(request.headers(), hosts)?;
        if self.options.behind_proxy { Ok(()) } else { peer.check_user() }
    }

    pub(crate) fn cookie_name(&self) -> String {
        format!("queuectl-{}", self.cookie_port)
    }

    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.stop.subscribe())
    }
}

/// Learns that the server stops.
#[derive(Clone, Debug)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Returns when the server stops.
    pub(crate) async fn wait(&mut self) {
        // The sender lives as long as the server.
        let _ = self.0.wait_for(|is_stopping| *is_stopping).await;
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.0.borrow()
    }
}

/// The time of this machine.
pub(crate) fn wall_now() -> Timestamp {
    Timestamp::from_millis(SystemClock.wall_millis())
}
