//! The dashboard's server, through its sockets.

mod api;
mod attacks;
mod browser;
mod client;
mod document;
mod doors;
mod endings;
mod flows;
mod metrics;
mod pages;
mod postgres;
mod sick_store;
mod streams;
mod tls;
