//! Requests with a condition: every answer has a version, which a client need not get twice, and no change is made to
//! another version than the client knows.

use web::listed_routes;

use super::rich::Rich;
use super::schemas::document;

#[test]
fn every_read_has_a_version_that_is_not_sent_again() {
    let (server, rich) = Rich::start();
    // Parts of pages need a page or a job in their query.
    let reads = listed_routes().filter(|route| {
        let is_part = route.is_page || route.path.starts_with("/live/");
        route.method == "GET" && !route.is_stream && !is_part && route.scope.is_some()
    });
    let (mut confirmed, mut all) = (0, 0);
    for route in reads {
        let path = rich.filled(route.path);
        let first = server.call("GET", &path).send().expects(200);
        let tag = first.header("ETag").unwrap_or_else(|| panic!("{path} has no version"));
        assert!(tag.starts_with("W/\""), "{path}: {tag}");
        let again = server.call("GET", &path).with("If-None-Match", tag).send();
        match again.status {
            304 => assert_eq!(again.body, "", "{path}"),
            // Some answers have a time in them that passes.
            200 => assert_ne!(again.body, first.body, "{path} is sent again"),
            status => panic!("{path}: {status}"),
        }
        server.call("GET", &path).with("If-None-Match", "W/\"another\"").send().expects(200);
        (confirmed, all) = (confirmed + u32::from(again.status == 304), all + 1);
    }
    assert!(confirmed >= 20 && all >= 30, "{confirmed} of {all}");
}

#[test]
fn every_change_that_takes_a_version_refuses_another_one() {
    let (server, rich) = Rich::start();
    let mut guarded = 0;
    for route in listed_routes().filter(|route| route.method != "GET") {
        let operation = &document()["paths"][route.path][route.method.to_lowercase()];
        if operation["responses"]["412"].is_null() {
            continue;
        }
        guarded += 1;
        let path = rich.filled(route.path);
        let before = server.get(&path);
        let request = server.call(route.method, &path).with("If-Match", "W/\"another\"");
        let request = match &operation["requestBody"] {
            body if body.is_null() => request,
            _ => request.json(&serde_json::json!({ "value": "90s" })),
        };
        request.send().expects(412);
        assert_eq!(server.get(&path), before, "{} {path}", route.method);
    }
    assert!(guarded >= 7, "{guarded}");
}
