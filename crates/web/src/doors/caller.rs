//! Who sends a request: a token, a session, or a user that a proxy has authenticated.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::origin;
use super::peer::Peer;
use super::scope::Scope;
use super::secret::{SecretHash, is_equal};
use crate::problem::Problem;
use crate::server::{Server, wall_now};
use domain::text::hostile::printable;
use ops::error::chain;
use sys::process::user;

/// The header that carries a session's token.
pub(crate) const SESSION_TOKEN: HeaderName = HeaderName::from_static("queuectl-session-token");
/// The longest name of a user from a proxy.
const MAX_USER_CHARS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// For the event log.
    pub(crate) by: String,
    /// `None` permits only what needs no scope.
    pub(crate) scope: Option<Scope>,
    pub(crate) session: Option<SecretHash>,
}

/// A caller that showed nothing.
impl Default for Caller {
    fn default() -> Self {
        Self { by: "anonymous".to_owned(), scope: None, session: None }
    }
}

impl Caller {
    /// The caller whose limits count.
    pub(crate) fn key(&self) -> String {
        match self.session {
            Some(session) => format!("session {session:?}"),
            None => self.by.clone(),
        }
    }

    pub(crate) fn require(&self, scope: Scope) -> Result<(), Problem> {
        match self.scope {
            None => Err(Problem::unauthenticated("this needs a token or a session")),
            Some(own) if own < scope => {
                Err(Problem::forbidden(format!("this needs the scope {}, not {}", scope.name(), own.name())))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Finds out who sends the request. A change by a session must also show the session's token.
pub(crate) fn identify(
    server: &Server,
    peer: &Peer,
    headers: &HeaderMap,
    changes: bool,
) -> Result<Caller, Problem> {
    let caller = if headers.contains_key(AUTHORIZATION) {
        by_token(server, peer, headers)?
    } else if let Some(cookie) = cookie(headers, &server.cookie_name()) {
        by_session(server, headers, cookie, changes)?
    } else {
        by_proxy(server, peer, headers).unwrap_or_default()
    };
    let cap = if server.options.read_only { Scope::Read } else { Scope::Admin };
    Ok(Caller { scope: caller.scope.map(|scope| scope.min(cap)), ..caller })
}

fn by_token(server: &Server, peer: &Peer, headers: &HeaderMap) -> Result<Caller, Problem> {
    server.attempts.check(peer.address())?;
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let bearer = sent.next().and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let found = match bearer.filter(|_| sent.next().is_none()) {
        Some(token) => server.tokens.find(token, wall_now()).map_err(|error| {
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "tokens_refused", chain(&error));
            problem.with_hint("the file must belong to the user of the server, with mode 0600")
        })?,
        None => None,
    };
    let Some(token) = found else {
        server.attempts.record(peer.address());
        return Err(Problem::unauthenticated("the token is not valid"));
    };
    Ok(Caller { by: format!("token:{}", token.name), scope: Some(token.scope), session: None })
}

fn by_session(server: &Server, headers: &HeaderMap, cookie: &str, changes: bool) -> Result<Caller, Problem> {
    // A cookie of an earlier process is no attack, so it is not counted.
    let session = server.sessions.find(cookie);
    let session = session.ok_or_else(|| Problem::unauthenticated("the session has ended; log in again"))?;
    origin::check_session(headers)?;
    let shown = headers.get(&SESSION_TOKEN).map(HeaderValue::as_bytes).unwrap_or_default();
    if changes && !is_equal(shown, session.token.as_bytes()) {
        return Err(Problem::forbidden("a change needs the token of the session")
            .with_hint(format!("send it in the header `{SESSION_TOKEN}`")));
    }
    let by = format!("{} via dashboard", user::name());
    Ok(Caller { by, scope: Some(Scope::Admin), session: Some(session.key) })
}

/// A proxy on this machine, or on the socket, says which user it has authenticated.
fn by_proxy(server: &Server, peer: &Peer, headers: &HeaderMap) -> Option<Caller> {
    let name = server.options.user_header.as_ref().filter(|_| peer.is_local())?;
    let mut sent = headers.get_all(name).iter();
    let user = sent.next()?.to_str().ok()?.trim();
    let is_fine = !user.is_empty() && sent.next().is_none() && user.chars().count() <= MAX_USER_CHARS;
    let by = format!("{} via proxy", printable(user));
    is_fine.then_some(Caller { by, scope: Some(Scope::Admin), session: None })
}

/// The value of a cookie, if it is sent exactly once.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut found = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    let value = found.next()?;
    found.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others_and_not_if_it_is_sent_twice() {
        let headers =
            |value: &str| -> HeaderMap { [(COOKIE, value.parse().expect("a value"))].into_iter().collect() };
        assert_eq!(cookie(&headers("a=1; queuectl-7878=x; b=2"), "queuectl-7878"), Some("x"));
        assert_eq!(cookie(&headers("queuectl-7878=x; queuectl-7878=y"), "queuectl-7878"), None);
        assert_eq!(cookie(&headers("queuectl-78780=x"), "queuectl-7878"), None);
    }
}
