//! The form of server-sent events.

use axum::body::Bytes;
use serde::Serialize;

use ops::escape::to_json;

/// An event with JSON data, which is on one line.
pub(crate) fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = to_json(data).unwrap_or_else(|_| "null".to_owned());
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// A line that clients ignore; it shows that the connection lives.
pub(crate) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// The last event of every stream that the server ends.
pub(crate) fn bye(why: &str) -> Bytes {
    event("bye", &serde_json::json!({ "why": why }))
}
