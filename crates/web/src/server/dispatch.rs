//! From a parsed request to its handler, by the table of routes.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};

use super::{Server, Surface};
use crate::base_path::BasePath;
use crate::doors::caller;
use crate::doors::peer::Peer;
use crate::doors::scope::Scope;
use crate::listen::crowd::Seat;
use crate::pages::trouble;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::body;
use crate::request::call::{Call, Parts};
use crate::request::conditional;
use crate::request::query::Query;
use crate::routes;
use crate::routes::table::{Handler, Method, Produces, Route};

pub(super) fn router(base: &BasePath, surface: Surface) -> Router {
    let routes = routes::all().filter(|route| match surface {
        Surface::Whole => true,
        Surface::Metrics => route.scope == Some(Scope::Metrics),
    });
    let table = routes.fold(Router::new(), |router, route| {
        let handle = move |request: Request| dispatch(route, request);
        router.route(&base.join(route.path), on(filter(route.method), handle))
    });
    table.fallback(no_route).method_not_allowed_fallback(no_method)
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

async fn no_route(request: Request) -> Answer {
    let problem = Problem::not_found(format!("there is nothing at `{}`", request.uri().path()));
    let Some(server) = request.extensions().get::<Arc<Server>>() else {
        return problem.into();
    };
    match server.options.surface {
        Surface::Whole if trouble::wants_page(request.headers()) => trouble::page(server, problem),
        Surface::Whole => problem.with_hint("`/api/v1/openapi.json` lists what there is").into(),
        Surface::Metrics => problem.with_hint("this server answers at `/metrics` alone").into(),
    }
}

async fn no_method(request: Request) -> Answer {
    let (method, path) = (request.method(), request.uri().path());
    let detail = format!("`{path}` does not take {method}");
    let server = request.extensions().get::<Arc<Server>>();
    let below = server.map_or(path, |server| server.options.base_path.strip(path));
    let allowed: Vec<&str> = routes::all()
        .filter(|route| route.matches(below))
        .flat_map(|route| match route.method {
            Method::Get => &["GET", "HEAD"][..],
            Method::Post => &["POST"],
            Method::Put => &["PUT"],
            Method::Patch => &["PATCH"],
            Method::Delete => &["DELETE"],
        })
        .copied()
        .collect();
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail).with_allowed(&allowed.join(", ")).into()
}

async fn dispatch(route: &'static Route, request: Request) -> Response {
    let extensions = request.extensions();
    let server = extensions.get::<Arc<Server>>().map(Arc::clone);
    let peer = extensions.get::<Arc<Peer>>().map(Arc::clone);
    let answer = match (server, peer) {
        (Some(server), Some(peer)) => {
            let answered = handle(Arc::clone(&server), &peer, route, request).await;
            answered.unwrap_or_else(|problem| match route.produces {
                [Produces::Html] => trouble::page(&server, problem),
                _ => problem.into(),
            })
        }
        (_, None) | (None, _) => Problem::crashed().into(),
    };
    let mut response = answer.into_response();
    response.extensions_mut().insert(route);
    response
}

async fn handle(
    server: Arc<Server>,
    peer: &Peer,
    route: &'static Route,
    request: Request,
) -> Result<Answer, Problem> {
    let (mut head, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut head, &())
        .await
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "malformed", "the path is not valid UTF-8"))?;
    let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let identified = caller::identify(&server, peer, &head.headers, route.method.changes());
    let caller = match route.scope {
        Some(scope) => identified.and_then(|caller| caller.require(scope).map(|()| caller))?,
        // A stale cookie must not keep a browser from logging in again.
        None => identified.unwrap_or_default(),
    };
    if route.is_login {
        server.attempts.check(peer.address())?;
    }
    check_accept(&head.headers, route.produces)?;
    let query = Query::parse(head.uri.query().unwrap_or_default(), route.query)?;
    let body = read_body(route, &head.headers, body).await?;
    if let Some(seat) = head.extensions.get::<Arc<Seat>>() {
        seat.set_busy(true);
    }
    let (headers, address) = (head.headers, peer.address());
    let parts = Parts { arrived: Instant::now(), route, params, query, headers, body, caller, address };
    match route.handler {
        Handler::Whole(run) => run_blocking(server, parts, run).await,
        Handler::Stream(start) => start(&server, parts),
    }
}

async fn read_body(
    route: &Route,
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<axum::body::Bytes, Problem> {
    if !route.method.changes() {
        return Ok(axum::body::Bytes::new());
    }
    let bytes = body::read(body, route.max_body).await?;
    if route.body.is_none() && !bytes.is_empty() {
        return Err(Problem::invalid("this takes no body"));
    }
    if !bytes.is_empty() {
        body::check_type(headers)?;
    }
    Ok(bytes)
}

/// Runs a handler on a thread that may block. A panic there is the end of its request only.
async fn run_blocking(
    server: Arc<Server>,
    parts: Parts,
    run: fn(&Call<'_>) -> Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let change = if parts.route.method.changes() {
        Some(Arc::clone(&server.changes).acquire_owned().await)
    } else {
        None
    };
    let place = Arc::clone(&server.requests).acquire_owned().await;
    let task = tokio::task::spawn_blocking(move || {
        let _places = (change, place);
        let call = Call::new(&server, &parts);
        let answered = check_version(&call).and_then(|()| run(&call));
        if let Err(problem) = &answered {
            call.return_store(problem);
        }
        match parts.route.method {
            Method::Get => answered.map(|answer| conditional::tagged(answer, &parts.headers)),
            Method::Post | Method::Put | Method::Patch | Method::Delete => answered,
        }
    });
    task.await.unwrap_or_else(|_| Err(Problem::crashed()))
}

/// `If-Match` on a change names the version that `GET` of the same path has answered with.
fn check_version(call: &Call<'_>) -> Result<(), Problem> {
    let (route, headers) = (call.parts.route, &call.parts.headers);
    if !route.method.changes() || !conditional::is_guarded(headers) {
        return Ok(());
    }
    let current = routes::all().find(|other| other.method == Method::Get && other.path == route.path);
    match current.map(|current| current.handler) {
        Some(Handler::Whole(read)) => conditional::check_match(headers, &read(call)?),
        Some(Handler::Stream(_)) | None => Err(Problem::invalid("`If-Match` cannot be checked here")),
    }
}

/// Refuses a client that accepts nothing of what the route produces.
fn check_accept(headers: &HeaderMap, produces: &[Produces]) -> Result<(), Problem> {
    let mut accepted = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .peekable();
    let suits = |range: &str| {
        let main = range.strip_suffix("/*");
        let is_within =
            |kind: &str| main.is_some_and(|main| main == "*" || kind.split('/').next() == Some(main));
        produces.iter().map(|kind| kind.name()).any(|kind| range == kind || is_within(kind))
    };
    if produces.is_empty() || accepted.peek().is_none() || accepted.any(suits) {
        return Ok(());
    }
    let kinds: Vec<&str> = produces.iter().map(|kind| kind.name()).collect();
    let detail = format!("this is available as {} only", kinds.join(" and "));
    Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", detail))
}
