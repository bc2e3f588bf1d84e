//! The stream of pages: the hub shows a page again when the store changes, and sends the sections that differ. One tab of
//! a browser has the stream for all of them, because HTTP/1.1 allows few connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::view::{Section, View};
use super::visit::Visit;
use super::{Page, frame};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::{Call, Parts};
use crate::request::pieces::pieces;
use crate::request::query::{Param, Query, TEXT, decode};
use crate::server::Server;
use crate::stream::topic::Topic;
use crate::stream::{EVENTS, MAX_BEHIND, MAX_TOPICS, enter};
use axum::http::StatusCode;
use store::Store;

pub(super) const PARAMS: &[Param] =
    &[Param::new("page", TEXT, "The path and query of a page; several with a space between them")];

/// A page as one visitor sees it. Visitors who may do the same share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchedPage {
    /// The path and the query, without the base path.
    url: String,
    scope: Scope,
}

#[expect(clippy::needless_pass_by_value, reason = "the handler of another stream keeps the parts")]
pub(super) fn start(server: &Arc<Server>, parts: Parts) -> Result<Answer, Problem> {
    let typed = parts.query.get("page").unwrap_or("/");
    let page = |url: &str| WatchedPage::new(server, url, parts.caller.scope);
    let pages: Vec<WatchedPage> = typed.split(' ').map(page).collect();
    let mut known: Vec<Topic> = Vec::new();
    // A page of one tab must not keep the other tabs from theirs.
    for page in &pages {
        match page.find() {
            Ok(_) => known.push(Topic::Page(page.clone())),
            Err(problem) if pages.len() == 1 => return Err(problem),
            Err(_) => {}
        }
    }
    known.truncate(MAX_TOPICS);
    let place = enter(server)?;
    let (sender, body) = pieces(MAX_BEHIND);
    server.hub.join(server, known, sender, place);
    Ok(Answer::pieces(EVENTS, body))
}

/// The same sections once.
pub(super) fn now(call: &Call<'_>) -> Result<Answer, Problem> {
    let typed = call.query().get("page").unwrap_or("/");
    let page = WatchedPage::new(call.server, typed, call.parts.caller.scope);
    let sections = page.read(call.server, call.store()?)?;
    let html: Vec<&str> = sections.values().map(String::as_str).collect();
    Ok(Answer::text(StatusCode::OK, frame::HTML, html.concat()))
}

type Params = Vec<(String, String)>;

impl WatchedPage {
    fn new(server: &Server, url: &str, scope: Option<Scope>) -> Self {
        let url = server.options.base_path.strip(url).to_owned();
        Self { url, scope: scope.unwrap_or(Scope::Read) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn find(&self) -> Result<(&'static Page, Params, Query), Problem> {
        let (path, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let page = super::all().find(|page| super::route(page).matches(path));
        let page = page.ok_or_else(|| Problem::not_found("there is no such page"))?;
        let named = page.path.split('/').zip(path.split('/')).filter_map(|(own, given)| {
            let name = own.strip_prefix('{')?.strip_suffix('}')?;
            Some((name.to_owned(), decode(given, false)?))
        });
        Ok((page, named.collect(), Query::parse(query, page.query)?))
    }

    /// Its sections as they are now. A page that is gone says so in its notice.
    pub(crate) fn read(
        &self,
        server: &Server,
        store: &dyn Store,
    ) -> Result<BTreeMap<String, String>, Problem> {
        let (page, params, query) = self.find()?;
        let visit = Visit::new(server, store, &params, &query, self.scope)?;
        match (page.show)(&visit) {
            Ok(view) => Ok(fragments(&visit, &view)),
            Err(problem) if problem.doubts_store => Err(problem),
            Err(problem) => {
                let Section { id, .. } = frame::notice(None);
                Ok([(id.to_owned(), frame::notice(Some(&problem)).markup().into_string())].into())
            }
        }
    }
}

fn fragments(visit: &Visit<'_>, view: &View) -> BTreeMap<String, String> {
    let around = frame::live_sections(visit, view.place);
    let around = around.iter().map(|section| (section.id.to_owned(), section.markup().into_string()));
    view.fragments().into_iter().chain(around).collect()
}
