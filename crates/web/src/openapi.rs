//! The OpenAPI document, from the table of routes and the schemas beside this file.

use serde_json::{Map, Value, json};

use crate::base_path::BasePath;
use crate::doors::scope::Scope;
use crate::routes;
use crate::routes::table::{Method, Produces, Route};

/// Statuses that every route behind the doors can have.
const COMMON: [u16; 6] = [400, 401, 403, 421, 429, 503];

/// The document of a server without a base path.
pub fn document() -> String {
    document_at(&BasePath::default())
}

pub(crate) fn document_at(base: &BasePath) -> String {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all().filter(|route| route.is_of_api()) {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.name()] = operation(route);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "queuectl",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs shell commands in the background and never loses one.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": base.or_root() }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "`queuectl dashboard token add`" },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "queuectl-PORT",
                    "description": "A browser; every change also sends the session's token in Queuectl-Session-Token.",
                },
            },
        },
    });
    document.sort_all_objects();
    format!("{document:#}\n")
}

fn schemas() -> Value {
    serde_json::from_str(include_str!("openapi/schemas.json")).expect("a test parses the schemas")
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.about,
        "parameters": parameters(route),
        "responses": responses(route),
    });
    if let Some(schema) = route.body {
        operation["requestBody"] = json!({
            "required": !route.is_body_optional,
            "content": { "application/json": { "schema": reference(schema) } },
        });
    }
    match route.scope {
        Some(scope) => {
            operation["security"] = json!([{ "token": [] }, { "session": [] }]);
            operation["x-scope"] = json!(scope.name());
        }
        None => operation["security"] = json!([]),
    }
    operation
}

/// `getJobsById`: the method and the parts of the path.
fn operation_id(route: &Route) -> String {
    let path = route.path.strip_prefix("/api/v1").unwrap_or(route.path);
    let mut id = route.method.name().to_owned();
    for part in path.split(['/', '.']).filter(|part| !part.is_empty()) {
        let name = part.trim_matches(['{', '}']);
        id.push_str(if part.starts_with('{') { "By" } else { "" });
        let mut letters = name.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.push_str(letters.as_str());
    }
    id
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = route.query.iter().flat_map(|group| group.iter()).map(|param| {
        let schema: Value = serde_json::from_str(param.schema).expect("a test parses the schemas");
        json!({ "name": param.name, "in": "query", "description": param.about, "schema": schema })
    });
    let header = |name: &str, about: &str| json!({ "name": name, "in": "header", "description": about, "schema": { "type": "string" } });
    let mut all: Vec<Value> = in_path.chain(in_query).collect();
    if route.method == Method::Get && route.scope.is_some() {
        all.push(header("If-None-Match", "Answer with 304 if this is the present version"));
    }
    if route.failures.contains(&412) {
        all.push(header("If-Match", "Change only this version"));
    }
    if route.path == "/api/v1/jobs" && route.method == Method::Post {
        all.push(header("Idempotency-Key", "A repeated request with the same key finds the same jobs"));
    }
    all
}

fn responses(route: &Route) -> Value {
    let mut all: Map<String, Value> = Map::new();
    all.insert(route.status.to_string(), success(route));
    // What was found, instead of something new.
    let may_find = matches!((route.path, route.status), ("/api/v1/jobs", 201) | ("/api/v1/actions", 202));
    if may_find {
        all.insert("200".to_owned(), success(route));
    }
    if route.method == Method::Get && route.scope.is_some_and(|scope| scope >= Scope::Read) {
        all.insert("304".to_owned(), json!({ "description": "Not changed" }));
    }
    let common = COMMON.iter().filter(|_| route.scope.is_some());
    for status in common.chain(route.failures) {
        let content = json!({ "application/problem+json": { "schema": reference("Problem") } });
        let description = describe(*status);
        all.insert(status.to_string(), json!({ "description": description, "content": content }));
    }
    Value::Object(all)
}

fn success(route: &Route) -> Value {
    let mut content = Map::new();
    for kind in route.produces {
        let schema = match (kind, route.answer) {
            (Produces::Json, Some(schema)) => reference(schema),
            (Produces::Json | Produces::Text | Produces::Html | Produces::Events, _) => {
                json!({ "type": "string" })
            }
        };
        content.insert(kind.name().to_owned(), json!({ "schema": schema }));
    }
    let mut response = json!({ "description": describe(route.status) });
    if !content.is_empty() {
        response["content"] = Value::Object(content);
    }
    response
}

fn describe(status: u16) -> &'static str {
    let status = axum::http::StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("Answer")
}

/// A schema by its name; `Name[]` is an array.
fn reference(name: &str) -> Value {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match name.strip_suffix("[]") {
        Some(element) => json!({ "type": "array", "items": to(element) }),
        None => to(name),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_an_id_of_its_own_and_known_schemas() {
        let document: Value = serde_json::from_str(&document()).expect("JSON");
        let known = schemas();
        let mut ids = BTreeSet::new();
        for route in routes::all() {
            assert!(!route.is_of_api() || ids.insert(operation_id(route)), "{}", operation_id(route));
            assert!(route.about.ends_with('.') && route.path.starts_with('/'), "{}", route.path);
        }
        let text = document.to_string();
        for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(known.get(name).is_some(), "there is no schema {name}");
        }
        assert!(ids.contains("getStream"), "{ids:?}");
    }
}
