//! The routes: one file per resource, each with its rows of the table.

pub(crate) mod actions;
pub(crate) mod batches;
pub(crate) mod causes;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod hooks;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod queues;
pub(crate) mod schedules;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod tokens;
pub(crate) mod workers;

use self::table::{Produces, Route};
use crate::doors::scope::Scope;

/// Every route. A new file adds its rows here.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    let tables: [&'static [Route]; 18] = [
        crate::pages::ROUTES,
        health::ROUTES,
        session::ROUTES,
        status::ROUTES,
        jobs::ROUTES,
        logs::ROUTES,
        causes::ROUTES,
        actions::ROUTES,
        queues::ROUTES,
        workers::ROUTES,
        schedules::ROUTES,
        batches::ROUTES,
        hooks::ROUTES,
        events::ROUTES,
        config::ROUTES,
        doctor::ROUTES,
        tokens::ROUTES,
        crate::stream::ROUTES,
    ];
    tables.into_iter().flatten()
}

/// What a row of the table promises to callers. Tests go through all of them, so that no route is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedRoute {
    /// In capital letters.
    pub method: &'static str,
    /// Parts in braces are parameters.
    pub path: &'static str,
    /// `None` needs neither a token nor a session.
    pub scope: Option<Scope>,
    /// Whether browsers show its answer.
    pub is_page: bool,
    /// Whether its answer ends only with the connection.
    pub is_stream: bool,
}

/// Answers below it are HTML, and no whole pages.
const PARTS_OF_PAGES: &str = "/live/";

/// The table of routes.
pub fn listed_routes() -> impl Iterator<Item = ListedRoute> {
    all().map(|route| ListedRoute {
        method: route.method.in_capitals(),
        path: route.path,
        scope: route.scope,
        is_page: route.produces.contains(&Produces::Html) && !route.path.starts_with(PARTS_OF_PAGES),
        is_stream: route.produces.contains(&Produces::Events),
    })
}
