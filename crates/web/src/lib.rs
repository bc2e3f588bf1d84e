//! The dashboard's HTTP server and API.
//!
//! A request passes the doors (`doors/`: host, origin, user, token or session, scope, limits), then axum routes it by
//! the table in `routes/`, and its handler calls `ops` on a thread of the blocking pool, with a store from `pool.rs`.
//! The table also yields the OpenAPI document. HTTP is parsed by hyper, with explicit limits, in `listen/`.
//!
//! tokio stays inside this crate: [`run`] blocks until a signal ends the server.

mod actions;
mod base_path;
mod doors;
mod http_metrics;
mod listen;
mod openapi;
mod pages;
mod parts;
mod pool;
mod problem;
mod request;
mod routes;
mod server;
mod stream;

pub use axum::http::HeaderName;
pub use base_path::{BasePath, BasePathError};
pub use doors::host::{HostName, HostNameError};
pub use doors::login::{RunningServer, new_link, running};
pub use doors::scope::Scope;
pub use doors::tokens;
pub use listen::address::{ListenAddress, ListenAddressError};
pub use listen::tls::TlsFiles;
pub use openapi::document;
pub use routes::{ListedRoute, listed_routes};
pub use server::{Ready, ServeError, ServerOptions, Surface, run};
