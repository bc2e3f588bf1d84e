//! Other sites and other names of this machine, on every route of the table: what a browser could be brought to send.

use web::listed_routes;

use super::client::Server;
use super::doors::log_in;
use super::rich::unknown;
use crate::cli::harness::Home;

/// The header with the token of a session.
const TOKEN: &str = "Queuectl-Session-Token";

#[test]
fn every_route_refuses_a_foreign_host_and_a_foreign_origin() {
    let server = Server::start(Home::with_jobs(&["nope"]), &[]);
    let port = server.address.port();
    // A name that resolves to this machine comes with our port: that is how names are rebound.
    let hosts =
        ["evil.example".to_owned(), format!("evil.example:{port}"), format!("127.0.0.1.evil.example:{port}")];
    let other_port = format!("http://127.0.0.1:{}", port ^ 1);
    for route in listed_routes() {
        let (method, path) = (route.method, unknown(route.path));
        for host in &hosts {
            server.call(method, &path).with("Host", host).send().expects(421);
        }
        for (name, value) in [
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Origin", &other_port),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            let answer = server.call(method, &path).with(name, value).send();
            assert_eq!(answer.status, 403, "{method} {path} with {name}: {value}");
        }
    }
    assert_eq!(server.home.state_of("nope"), "pending");
}

#[test]
fn every_change_of_a_browser_needs_its_cookie_and_the_token_of_its_session() {
    let server = Server::start(Home::with_jobs(&["nope"]), &[]);
    let (cookie, token) = log_in(&server, &server.link);
    let events = || server.home.run(["events", "--json"]).ok().lines().len();
    let before = events();
    for route in listed_routes().filter(|route| route.method != "GET" && route.scope.is_some()) {
        let (method, path) = (route.method, unknown(route.path));
        let plain = || server.request(method, &path).with("Sec-Fetch-Site", "same-origin");
        let with_cookie = || plain().with("Cookie", &cookie);
        for (request, status) in [
            (with_cookie(), 403),
            (with_cookie().with(TOKEN, &token[1..]), 403),
            (with_cookie().with(TOKEN, ""), 403),
            (plain().with(TOKEN, &token), 401),
            (with_cookie().with(TOKEN, &token).with("Sec-Fetch-Site", "cross-site"), 403),
            (with_cookie().with(TOKEN, &token).with("Origin", "https://evil.example"), 403),
            (server.request(method, &path).with("Cookie", &cookie).with(TOKEN, &token), 403),
        ] {
            let answer = request.send();
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        }
    }
    assert_eq!(server.home.state_of("nope"), "pending");
    assert_eq!(events(), before, "nothing was changed");
}
