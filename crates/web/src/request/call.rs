//! A request that passed the doors, with everything that its handler needs.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;

use super::body;
use super::query::Query;
use crate::doors::caller::Caller;
use crate::doors::scope::Scope;
use crate::pool::{Access, PooledStore};
use crate::problem::Problem;
use crate::routes::table::Route;
use crate::server::Server;
use domain::values::name::{JobId, NameError};
use ops::OpError;
use ops::jobs::handle::{Handle, Resolution, resolve};
use store::Store;

/// The parts of a request, on their way to the thread that handles it.
#[derive(Debug)]
pub(crate) struct Parts {
    /// When the request had arrived.
    pub(crate) arrived: Instant,
    pub(crate) route: &'static Route,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) caller: Caller,
    /// The address of the client; `None` on a socket file.
    pub(crate) address: Option<IpAddr>,
}

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) parts: &'a Parts,
    store: OnceCell<PooledStore<'a>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(server: &'a Arc<Server>, parts: &'a Parts) -> Self {
        Self { server, parts, store: OnceCell::new() }
    }

    /// A store, taken from the pool on first use.
    pub(crate) fn store(&self) -> Result<&dyn Store, Problem> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        let access = if self.parts.route.method.changes() { Access::Write } else { Access::Read };
        let store = self.server.pool.take(access, self.parts.arrived)?;
        Ok(self.store.get_or_init(|| store).as_ref())
    }

    /// Returns the store of a request that has failed.
    pub(crate) fn return_store(mut self, problem: &Problem) {
        if let Some(store) = self.store.take() {
            store.leave_after(problem);
        }
    }

    /// Who changes something, for the event log.
    pub(crate) fn by(&self) -> &str {
        &self.parts.caller.by
    }

    pub(crate) fn query(&self) -> &Query {
        &self.parts.query
    }

    /// The decoded part of the path with this name.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.parts.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The name in the path.
    pub(crate) fn name<T: FromStr<Err = NameError>>(&self, param: &str) -> Result<T, Problem> {
        let typed = self.param(param);
        let bad = |source| OpError::BadName { what: "name", typed: typed.to_owned(), source };
        typed.parse().map_err(|source| bad(source).into())
    }

    /// The job in the path: its id, or its number.
    pub(crate) fn job(&self) -> Result<JobId, Problem> {
        let typed = self.param("id");
        let bad = |source| OpError::BadName { what: "id", typed: typed.to_owned(), source };
        let handle: Handle = typed.parse().map_err(bad)?;
        match resolve(self.store()?, &handle)? {
            Resolution::Job(id) => Ok(id),
            // A part of an id is for people who type.
            Resolution::Part { typed, .. } => Err(OpError::NoSuchJob(typed).into()),
            Resolution::Nothing(id) => Err(OpError::NoSuchJob(id).into()),
            Resolution::Ambiguous(_) | Resolution::NoNumber(_) | Resolution::NoJobs => {
                Err(Problem::not_found(format!("there is no job `{typed}`")))
            }
        }
    }

    /// The JSON body.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        body::parse(&self.parts.body)
    }

    /// The JSON body, or the default if there is none.
    pub(crate) fn body_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        if self.parts.body.is_empty() { Ok(T::default()) } else { self.body() }
    }

    /// Refuses a caller with a smaller scope, for a part of a request that needs more than its route.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Problem> {
        self.parts.caller.require(scope)
    }

    /// The path of a resource of the API.
    pub(crate) fn path(&self, resource: &str) -> String {
        self.server.options.base_path.join(&format!("/api/v1{resource}"))
    }
}
