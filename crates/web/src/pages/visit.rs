//! A visit to a page, by a browser that loads it or by the hub that keeps it current.

use std::cell::OnceCell;
use std::str::FromStr;
use std::sync::Arc;

use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::call::Call;
use crate::request::query::{Query, encode};
use crate::server::Server;
use domain::values::clock::{Clock, TimeFormat};
use domain::values::name::{JobId, NameError};
use domain::values::timestamp::Timestamp;
use jiff::tz::TimeZone;
use ops::OpError;
use ops::jobs::handle::{Handle, Resolution, resolve};
use ops::status::{Status, status};
use store::Store;

pub(crate) struct Visit<'a> {
    pub(crate) server: &'a Server,
    pub(crate) store: &'a dyn Store,
    pub(crate) params: &'a [(String, String)],
    pub(crate) query: &'a Query,
    /// What the visitor may do.
    pub(crate) scope: Scope,
    pub(crate) now: Timestamp,
    /// Whether a browser loads the page, which needs the sections that the stream does not send too.
    pub(crate) is_load: bool,
    status: OnceCell<Arc<Status>>,
}

impl<'a> Visit<'a> {
    pub(crate) fn new(
        server: &'a Server,
        store: &'a dyn Store,
        params: &'a [(String, String)],
        query: &'a Query,
        scope: Scope,
    ) -> Result<Self, Problem> {
        let now = store.now()?;
        Ok(Self { server, store, params, query, scope, now, is_load: false, status: OnceCell::new() })
    }

    pub(crate) fn of_call(call: &'a Call<'_>) -> Result<Self, Problem> {
        let scope = call.parts.caller.scope.unwrap_or(Scope::Read);
        let visit = Self::new(call.server, call.store()?, &call.parts.params, &call.parts.query, scope)?;
        Ok(Self { is_load: true, ..visit })
    }

    /// Read once for the frame and the page.
    pub(crate) fn status(&self) -> Result<&Status, Problem> {
        if let Some(known) = self.status.get() {
            return Ok(known);
        }
        // The pages show these times as elements, which a script shows in the zone of the reader.
        let found = status(self.store, &self.server.options.location.home, &TimeFormat::Full)?;
        Ok(self.status.get_or_init(|| Arc::new(found)))
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.now, TimeFormat::Short(TimeZone::UTC))
    }

    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The name in the path.
    pub(crate) fn name<T: FromStr<Err = NameError>>(&self, param: &str) -> Result<T, Problem> {
        let typed = self.param(param);
        let bad = |source| OpError::BadName { what: "name", typed: typed.to_owned(), source };
        typed.parse().map_err(|source| bad(source).into())
    }

    pub(crate) fn may_operate(&self) -> bool {
        self.scope >= Scope::Operate
    }

    pub(crate) fn may_administer(&self) -> bool {
        self.scope >= Scope::Admin
    }

    /// The URL of a page; `path` begins with a slash and is encoded.
    pub(crate) fn url(&self, path: &str) -> String {
        self.server.options.base_path.join(path)
    }

    /// The page of a job.
    pub(crate) fn job_url(&self, id: &JobId) -> String {
        self.url(&format!("/jobs/{}", encode(id.as_str())))
    }

    /// The list of jobs that match; the values are not encoded yet, and an empty one is no filter.
    pub(crate) fn jobs_url(&self, filters: &[(&str, &str)]) -> String {
        let given = filters.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = given.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        self.url(&format!("/jobs?{}", pairs.join("&")))
    }

    /// The job in the path: by its id or number.
    pub(crate) fn job(&self) -> Result<JobId, Problem> {
        let typed = self.param("id");
        let gone = || {
            Problem::not_found(format!("there is no job `{typed}`; it may have been removed"))
                .with_hint("the list of jobs has those that are there now")
        };
        let bad = |source| OpError::BadName { what: "id", typed: typed.to_owned(), source };
        let handle: Handle = typed.parse().map_err(bad)?;
        match resolve(self.store, &handle)? {
            Resolution::Job(id) => Ok(id),
            Resolution::Part { .. }
            | Resolution::Nothing(_)
            | Resolution::Ambiguous(_)
            | Resolution::NoNumber(_)
            | Resolution::NoJobs => Err(gone()),
        }
    }
}
