//! Posting an event to a URL, in a separate process.

mod route;

use std::fmt::Write;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use ureq::tls::TlsConfig;
use ureq::{Agent, Proxy};

/// The time limit for the whole exchange, from the name lookup to the response.
const POST_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an error response is read, to quote it in the message.
const MAX_RESPONSE_BYTES: u64 = 4 << 10;
const MAX_RESPONSE_CHARS: usize = 200;

/// An event and its destination. It contains the secret, so it is passed through a file descriptor, never as an
/// argument.
#[derive(Serialize, Deserialize)]
pub struct Request {
    pub url: String,
    pub secret: Option<String>,
    pub event: String,
    pub delivery: String,
    pub body: String,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("the receiver answered {status}{text}")]
    Answered { status: u16, text: String },
    #[error("the receiver could not be reached{via}: {}", plain(source))]
    Unreachable { via: String, source: Box<ureq::Error> },
    #[error(transparent)]
    Trust(#[from] route::TrustError),
}

/// The system's own message, without the name that the client gives to its kind.
fn plain(error: &ureq::Error) -> String {
    if let ureq::Error::Io(error) = error { error.to_string() } else { error.to_string() }
}

/// Posts the event. Any status from 200 to 299 is a success. Redirects are not followed; they are errors.
pub fn post(request: &Request, unix_seconds: i64) -> Result<(), PostError> {
    let proxy = route::proxy(&request.url);
    // Without the password.
    let through = |proxy: &Proxy| format!(" through the proxy {}:{}", proxy.host(), proxy.port());
    let via = proxy.as_ref().map(through).unwrap_or_default();
    let agent = agent(&request.url, proxy)?;
    let timestamp = unix_seconds.to_string();
    let mut post = agent
        .post(&request.url)
        .header("Content-Type", "application/json")
        .header("X-Queuectl-Event", &request.event)
        .header("X-Queuectl-Delivery", &request.delivery)
        .header("X-Queuectl-Timestamp", &timestamp);
    if let Some(secret) = &request.secret {
        post = post.header("X-Queuectl-Signature", signature(secret, &timestamp, &request.body));
    }
    let unreachable = |error| PostError::Unreachable { via, source: Box::new(error) };
    let mut response = post.send(&request.body).map_err(unreachable)?;
    if response.status().is_success() {
        return Ok(());
    }
    let text =
        response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_string().unwrap_or_default();
    let first_line = text.trim().lines().next().map(|line| line.chars().take(MAX_RESPONSE_CHARS));
    let text = first_line.map_or(String::new(), |line| format!(": {}", line.collect::<String>()));
    Err(PostError::Answered { status: response.status().as_u16(), text })
}

fn agent(url: &str, proxy: Option<Proxy>) -> Result<Agent, PostError> {
    let tls = TlsConfig::builder().root_certs(route::root_certs(url)?).build();
    let config = Agent::config_builder()
        .timeout_global(Some(POST_TIMEOUT))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(proxy)
        .tls_config(tls)
        .user_agent(concat!("queuectl/", env!("CARGO_PKG_VERSION")));
    Ok(config.build().new_agent())
}

/// HMAC-SHA256 of the timestamp, a dot and the body.
fn signature(secret: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
    for part in [timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    let mut signature = String::from("sha256=");
    for byte in mac.finalize().into_bytes() {
        // Writing to a string cannot fail.
        let _ = write!(signature, "{byte:02x}");
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_equals_that_of_openssl() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac keep-it-secret
        assert_eq!(
            signature("keep-it-secret", "1700000000", r#"{"a":1}"#),
            "sha256=d1405ef13076f2d856572ca7ff485d324c2129f167e25502b80b159ee41380a3"
        );
    }

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        let request = Request {
            url: "http://example.org".to_owned(),
            secret: Some("keep-it-secret".to_owned()),
            event: "dead".to_owned(),
            delivery: "d-1".to_owned(),
            body: "{}".to_owned(),
        };
        assert!(!format!("{request:?}").contains("keep-it"));
    }
}
