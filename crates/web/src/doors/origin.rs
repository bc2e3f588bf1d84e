//! Requests that a page of another site makes a browser send.

use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::host::AllowedHosts;
use crate::problem::Problem;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a foreign `Origin`, and a request that the browser says comes from another site.
pub(crate) fn check(headers: &HeaderMap, hosts: &AllowedHosts) -> Result<(), Problem> {
    let is_own = |value: &HeaderValue| {
        let origin = value.to_str().unwrap_or_default();
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        host.is_some_and(|host| hosts.allows(host))
    };
    let is_foreign = match fetch_site(headers) {
        FetchSite::Absent | FetchSite::Own => false,
        FetchSite::Foreign => true,
    };
    if is_foreign || !headers.get_all(ORIGIN).iter().all(is_own) {
        return Err(Problem::forbidden("the request comes from a page of another site"));
    }
    Ok(())
}

/// A session belongs to a browser, and every current browser says where its requests come from.
pub(crate) fn check_session(headers: &HeaderMap) -> Result<(), Problem> {
    match fetch_site(headers) {
        FetchSite::Own => Ok(()),
        FetchSite::Absent | FetchSite::Foreign => {
            Err(Problem::forbidden("the browser does not say that the request comes from this site")
                .with_hint("a program uses a token: `queuectl dashboard token add`"))
        }
    }
}

enum FetchSite {
    Absent,
    Own,
    Foreign,
}

fn fetch_site(headers: &HeaderMap) -> FetchSite {
    let mut sent = headers.get_all(FETCH_SITE).iter().peekable();
    if sent.peek().is_none() {
        return FetchSite::Absent;
    }
    if sent.all(|value| value == "same-origin" || value == "none") {
        FetchSite::Own
    } else {
        FetchSite::Foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_site_may_be_the_origin() {
        let hosts = AllowedHosts::new(Some("127.0.0.1:7878".parse().expect("an address")), &[], false);
        let headers = |name: HeaderName, value: &str| -> HeaderMap {
            [(name, value.parse().expect("a value"))].into_iter().collect()
        };
        for origin in ["http://localhost:7878", "http://127.0.0.1:7878"] {
            assert!(check(&headers(ORIGIN, origin), &hosts).is_ok(), "{origin}");
        }
        for origin in ["null", "", "http://evil.example", "localhost:7878", "http://localhost", "file://"] {
            assert!(check(&headers(ORIGIN, origin), &hosts).is_err(), "{origin}");
        }
        for (site, is_fine) in
            [("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false)]
        {
            assert_eq!(check(&headers(FETCH_SITE, site), &hosts).is_ok(), is_fine, "{site}");
            assert_eq!(check_session(&headers(FETCH_SITE, site)).is_ok(), is_fine, "{site}");
        }
        assert!(check(&HeaderMap::new(), &hosts).is_ok() && check_session(&HeaderMap::new()).is_err());
    }
}
