//! The pages: each is a function from a visit to a view, whose sections the stream sends again when they differ.
//!
//! Pages only read. What changes something is a button that calls the API, as every other client does.

mod batches;
mod dead;
mod frame;
pub(crate) mod job;
mod jobs;
pub(crate) mod live;
mod manage;
pub(crate) mod overview;
pub(crate) mod queues;
mod schedules;
pub(crate) mod view;
pub(crate) mod visit;
mod workers;

pub(crate) use self::frame::trouble;
use self::frame::trouble::wants_page;

use self::frame::{assets, login};
use self::manage::{enqueue, events, hooks, settings};
use self::view::View;
use self::visit::Visit;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::filter::FILTER;
use crate::request::query::Param;
use crate::routes::table::{Method, Produces, Route};
use axum::http::StatusCode;

/// A page: its path, what its query may have, and the function that shows it.
pub(crate) struct Page {
    path: &'static str,
    query: &'static [&'static [Param]],
    show: fn(&Visit<'_>) -> Result<View, Problem>,
}

pub(crate) const PAGES: &[Page] = &[
    Page { path: "/", query: &[overview::PARAMS], show: overview::show },
    Page { path: "/jobs", query: &[FILTER, jobs::PARAMS], show: jobs::show },
    Page { path: "/jobs/{id}", query: &[job::PARAMS], show: job::show },
    Page { path: "/dead", query: &[dead::PARAMS], show: dead::show },
    Page { path: "/queues", query: &[], show: queues::show },
    Page { path: "/workers", query: &[], show: workers::show },
    Page { path: "/schedules", query: &[schedules::PARAMS], show: schedules::show },
    Page { path: "/batches", query: &[], show: batches::show },
    Page { path: "/hooks", query: &[], show: hooks::show },
    Page { path: "/events", query: &[events::PARAMS], show: events::show },
    Page { path: "/settings", query: &[settings::PARAMS], show: settings::show },
    Page { path: "/enqueue", query: &[enqueue::PARAMS], show: enqueue::show },
    Page { path: "/dead/{cause}", query: &[dead::cause::PARAMS], show: dead::cause::show },
    Page { path: "/queues/{queue}", query: &[queues::queue::PARAMS], show: queues::queue::show },
    Page { path: "/workers/{worker}", query: &[], show: workers::worker::show },
    Page { path: "/schedules/{schedule}", query: &[], show: schedules::schedule::show },
    Page { path: "/batches/{batch}", query: &[], show: batches::batch::show },
    Page { path: "/hooks/{hook}", query: &[], show: hooks::hook::show },
];

pub(crate) const ROUTES: &[Route] = &[
    route(&PAGES[0]).about("The overview."),
    route(&PAGES[1]).about("The jobs that match."),
    route(&PAGES[2]).about("A job, with its attempts and output."),
    route(&job::PAGES[0]).about("The output of a job."),
    route(&job::PAGES[1]).about("The jobs around a job as a graph."),
    route(&job::PAGES[2]).about("How the outputs of two attempts differ."),
    route(&PAGES[3]).about("The dead jobs by cause."),
    route(&PAGES[4]).about("The queues."),
    route(&PAGES[5]).about("The workers."),
    route(&PAGES[6]).about("The schedules."),
    route(&PAGES[7]).about("The batches."),
    route(&PAGES[8]).about("The hooks."),
    route(&PAGES[9]).about("The event log."),
    route(&PAGES[10]).about("The settings."),
    route(&PAGES[11]).about("The form that enqueues a job."),
    route(&PAGES[12]).about("A cause of death, and the retry of one of its jobs before the others."),
    route(&PAGES[13]).about("A queue."),
    route(&PAGES[14]).about("A worker."),
    route(&PAGES[15]).about("A schedule."),
    route(&PAGES[16]).about("A batch."),
    route(&PAGES[17]).about("A hook."),
    Route::stream("/live", Scope::Read, live::start).about("What changes on pages.").takes(&[live::PARAMS]),
    Route::get("/live/now", Scope::Read, live::now)
        .about("The sections of a page, for a browser that cannot have the stream.")
        .takes(&[live::PARAMS])
        .producing(&[Produces::Html]),
    Route::stream("/live/log", Scope::Read, job::follow::start)
        .about("The lines of an attempt as they are printed.")
        .takes(&[job::follow::PARAMS]),
    Route::get("/live/rows", Scope::Read, job::follow::rows)
        .about("A window on the lines of an attempt.")
        .takes(&[job::follow::PARAMS])
        .producing(&[Produces::Html]),
    Route::open(Method::Get, "/login", login::show)
        .about("Logs a browser in with the code in the fragment.")
        .producing(&[Produces::Html]),
    Route::open(Method::Get, "/a/{hash}/{file}", assets::serve)
        .about("Styles and scripts of the pages.")
        .producing(&[]),
];

const fn route(page: &Page) -> Route {
    Route::get(page.path, Scope::Read, show).takes(page.query).producing(&[Produces::Html])
}

fn all() -> impl Iterator<Item = &'static Page> {
    PAGES.iter().chain(job::PAGES)
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let page = all().find(|page| page.path == call.parts.route.path);
    let page = page.ok_or_else(|| Problem::not_found("there is no such page"))?;
    let visit = Visit::of_call(call)?;
    match (page.show)(&visit) {
        Ok(view) => Ok(frame::answer(call, &visit, &view)),
        // The frame stays, so the reader can open other pages.
        Err(problem) if problem.status == StatusCode::NOT_FOUND && wants_page(&call.parts.headers) => {
            Ok(frame::missing(call, &visit, problem))
        }
        Err(problem) => Err(problem),
    }
}
