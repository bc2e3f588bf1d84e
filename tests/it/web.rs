//! The dashboard's server, through its sockets.

mod accessibility;
mod api;
mod attacks;
mod browser;
mod changes;
mod client;
mod conditional;
mod cursors;
mod document;
mod doors;
mod endings;
mod flows;
mod foreign;
mod generated_client;
mod half_open;
mod hostile_pages;
mod log_windows;
mod metrics;
mod pages;
mod postgres;
mod rich;
mod schemas;
mod secrets;
mod sick_store;
mod streams;
mod tls;
