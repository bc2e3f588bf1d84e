//! Every answer that a test gets is compared with the OpenAPI document: its status, and its body with the schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::client::Response;

/// Statuses of the server itself, which belong to no route: the host, the user, the path or the form of the request.
const OF_THE_SERVER: [u16; 12] = [400, 403, 404, 405, 406, 408, 413, 414, 415, 421, 422, 431];
/// Conditions of the store that every route can meet.
const OF_THE_STORE: [u16; 3] = [500, 503, 507];

pub(super) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&web::document()).expect("JSON"))
}

/// A reference to a schema by its name; `Name[]` is an array.
pub(super) fn reference(name: &str) -> Value {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match name.strip_suffix("[]") {
        Some(element) => json!({ "type": "array", "items": to(element) }),
        None => to(name),
    }
}

/// What in a value does not fit a schema of the document.
pub(super) fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let validator = validator(schema);
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// A schema with everything that it refers to, compiled once in a process.
fn validator(schema: &Value) -> Arc<Validator> {
    static COMPILED: Mutex<Option<HashMap<String, Arc<Validator>>>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = compiled.get_or_insert_default().entry(schema.to_string()).or_insert_with(|| {
        let mut schema = schema.clone();
        schema["components"] = document()["components"].clone();
        Arc::new(jsonschema::draft202012::new(&schema).expect("a valid schema"))
    });
    Arc::clone(known)
}

/// The template of a path, without a base path and a query.
fn template(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.find("/api/v1/").map_or(path, |at| &path[at..]);
    let suits = |template: &&String| {
        let (own, given) = (template.split('/'), path.split('/'));
        own.clone().count() == given.clone().count()
            && own.zip(given).all(|(own, given)| own == given || own.starts_with('{'))
    };
    document()["paths"].as_object().expect("paths").keys().find(suits).map(String::as_str)
}

/// Asserts that an answer is as the document says.
#[track_caller]
pub(super) fn check(method: &str, path: &str, answer: &Response) {
    let kind = answer.header("Content-Type").unwrap_or_default();
    let fits = |schema: &Value| {
        let errors = errors(schema, &answer.json());
        assert!(errors.is_empty(), "{method} {path} {}: {errors:#?}\n{}", answer.status, answer.body);
    };
    if kind == "application/problem+json" && method != "HEAD" {
        fits(&reference("Problem"));
        assert_eq!(answer.json()["status"], answer.status, "{method} {path}: {}", answer.body);
    }
    let Some(template) = template(path) else { return };
    let operation = &document()["paths"][template][method.to_lowercase()];
    // A broken connection has no status.
    if operation.is_null() || answer.status == 0 {
        return;
    }
    let response = &operation["responses"][answer.status.to_string()];
    let is_general = OF_THE_SERVER.contains(&answer.status) || OF_THE_STORE.contains(&answer.status);
    assert!(!response.is_null() || is_general, "{method} {template}: {} is not documented", answer.status);
    // With `columns`, a job has only some of its fields.
    let is_partial = path.contains("columns=");
    let schema = &response["content"]["application/json"]["schema"];
    if kind == "application/json" && answer.status < 300 && !is_partial {
        assert!(!schema.is_null(), "{method} {template} {}: JSON is not documented", answer.status);
        fits(schema);
    }
}
