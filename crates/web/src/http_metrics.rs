//! Numbers of the server itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;

use crate::routes::table::Route;
use crate::server::Server;
use domain::metrics::histogram::{Histogram, WAIT_BOUNDS};
use ops::metrics::exposition::{Exposition, Kind};
use sys::process::own_usage::{OwnUsage, own_usage};

/// The label of requests that match no route.
const NO_ROUTE: &str = "none";

#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    counts: Mutex<Counts>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    /// By the method and the path of the route, and the status.
    requests: BTreeMap<(String, u16), u64>,
    durations: BTreeMap<String, Histogram>,
}

impl HttpMetrics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, route: Option<&Route>, status: StatusCode, duration: Duration) {
        let label = route.map_or_else(|| NO_ROUTE.to_owned(), Route::label);
        let mut counts = self.lock();
        *counts.requests.entry((label.clone(), status.as_u16())).or_default() += 1;
        counts.durations.entry(label).or_default().record(duration, &WAIT_BOUNDS);
    }
}

/// The families of the server, to stand after those of the store.
pub(crate) fn text(server: &Server) -> String {
    let counts = server.metrics.lock().clone();
    let mut out = Exposition::default();
    out.family(Kind::Counter, "queuectl_http_requests_total", "HTTP requests.", |samples| {
        for ((route, status), count) in &counts.requests {
            samples.add(&[("route", route), ("status", &status.to_string())], count);
        }
    });
    let about = "Time until the answer to a request began.";
    out.family(Kind::Histogram, "queuectl_http_request_duration_seconds", about, |samples| {
        for (route, histogram) in &counts.durations {
            samples.histogram(("route", route), histogram, &WAIT_BOUNDS);
        }
    });
    out.family(Kind::Gauge, "queuectl_http_streams", "Open streams.", |samples| {
        samples.add(&[], server.streams.used());
    });
    process(&mut out, own_usage());
    out.into_text()
}

/// The families that every program has.
fn process(out: &mut Exposition, usage: OwnUsage) {
    let mut gauge = |name, about, value: Option<u64>| {
        out.family(Kind::Gauge, name, about, |samples| {
            if let Some(value) = value {
                samples.add(&[], value);
            }
        });
    };
    gauge("process_resident_memory_bytes", "Resident memory.", usage.resident_bytes);
    gauge("process_virtual_memory_bytes", "Virtual memory.", usage.virtual_bytes);
    gauge("process_open_fds", "Open file descriptors.", usage.open_files);
    gauge("process_max_fds", "Limit of open file descriptors.", usage.max_open_files);
    let mut seconds = |kind, name, about, value: Option<f64>| {
        out.family(kind, name, about, |samples| {
            if let Some(value) = value {
                samples.add(&[], format!("{value:.2}"));
            }
        });
    };
    let started = usage.started_at_seconds;
    seconds(Kind::Gauge, "process_start_time_seconds", "When the process started.", started);
    seconds(Kind::Counter, "process_cpu_seconds_total", "CPU time of the process.", usage.cpu_seconds);
}
