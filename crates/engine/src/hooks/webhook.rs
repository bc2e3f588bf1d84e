//! Posting an event to an address, in a process of its own.

mod route;

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use ureq::tls::TlsConfig;
use ureq::{Agent, Proxy};

use domain::text::escape;

/// How long a receiver has for all of it, from looking up its name to its answer.
const LIMIT: Duration = Duration::from_secs(10);
/// How much of what a receiver answers is read, to tell what it says is wrong.
const MAX_ANSWER_BYTES: u64 = 4 << 10;
const MAX_ANSWER_CHARS: usize = 200;

/// What is posted, and where. The secret is in it, so it goes through a pipe and never into arguments.
#[derive(Serialize, Deserialize)]
pub struct Envelope {
    pub url: String,
    pub secret: Option<String>,
    pub event: String,
    pub delivery: String,
    pub body: String,
}

impl std::fmt::Debug for Envelope {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Envelope").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Envelope {
    pub fn to_json(&self) -> String {
        escape::to_json(self).expect("text becomes JSON")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("the receiver answered {status}{}", after_colon(said))]
    Answered { status: u16, said: String },
    #[error("the receiver could not be reached{}: {source}", through(proxy.as_deref()))]
    Unreachable { proxy: Option<String>, source: Box<ureq::Error> },
    #[error(transparent)]
    Trust(#[from] route::TrustError),
}

fn through(proxy: Option<&str>) -> String {
    proxy.map_or(String::new(), |proxy| format!(" through the proxy {proxy}"))
}

fn after_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// Any answer from 200 to 299 says that it arrived. Nobody is sent elsewhere: a receiver that has moved is an error.
pub fn post(envelope: &Envelope, unix_seconds: i64) -> Result<(), PostError> {
    let proxy = route::proxy(&envelope.url);
    // Its password is left out.
    let via = proxy.as_ref().map(|proxy| format!("{}:{}", proxy.host(), proxy.port()));
    let agent = agent(&envelope.url, proxy)?;
    let timestamp = unix_seconds.to_string();
    let mut request = agent
        .post(&envelope.url)
        .header("Content-Type", "application/json")
        .header("X-Queuectl-Event", &envelope.event)
        .header("X-Queuectl-Delivery", &envelope.delivery)
        .header("X-Queuectl-Timestamp", &timestamp);
    if let Some(secret) = &envelope.secret {
        request = request.header("X-Queuectl-Signature", signature(secret, &timestamp, &envelope.body));
    }
    let unreachable = |error| PostError::Unreachable { proxy: via, source: Box::new(error) };
    let mut answer = request.send(&envelope.body).map_err(unreachable)?;
    if answer.status().is_success() {
        return Ok(());
    }
    let said = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string().unwrap_or_default();
    let said: String =
        said.trim().lines().next().unwrap_or_default().chars().take(MAX_ANSWER_CHARS).collect();
    Err(PostError::Answered { status: answer.status().as_u16(), said })
}

fn agent(url: &str, proxy: Option<Proxy>) -> Result<Agent, PostError> {
    let tls = TlsConfig::builder().root_certs(route::trusted(url)?).build();
    let config = Agent::config_builder()
        .timeout_global(Some(LIMIT))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(proxy)
        .tls_config(tls)
        .user_agent(concat!("queuectl/", env!("CARGO_PKG_VERSION")));
    Ok(config.build().new_agent())
}

/// HMAC-SHA256 of the time, a dot and the body.
fn signature(secret: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key may have any length");
    for part in [timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

/// Two digits for each byte.
fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits are one digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac tell-nobody
        assert_eq!(
            signature("tell-nobody", "1700000000", r#"{"a":1}"#),
            "sha256=5b83350990de26cb809924f86e025273bcb7d0e69f749b1a8d13fdddafe6476c"
        );
    }

    #[test]
    fn an_envelope_does_not_show_what_is_in_it() {
        let envelope = Envelope {
            url: "http://example.org".to_owned(),
            secret: Some("tell-nobody".to_owned()),
            event: "dead".to_owned(),
            delivery: "d-1".to_owned(),
            body: "{}".to_owned(),
        };
        assert!(!format!("{envelope:?}").contains("nobody"));
    }
}
