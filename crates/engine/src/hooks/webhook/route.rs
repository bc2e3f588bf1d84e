//! The way to a receiver: directly or through a proxy, and which certificates prove that it is the receiver.
//!
//! Both come from the environment of the process that posts, which is the worker's (or the caller's of `hook test`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::path::PathBuf;

use ureq::Proxy;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

/// Names a PEM file whose certificates are trusted instead of the built-in ones, as with OpenSSL and curl.
const TRUSTED: &str = "SSL_CERT_FILE";

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("failed to read `{}`, which {TRUSTED} names: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}`, which {TRUSTED} names, holds no certificate in PEM form", path.display())]
    NoCertificate { path: PathBuf },
}

/// Whom to trust: the certificates of the named file, or those that browsers trust. Only https needs the file.
pub(super) fn trusted(url: &str) -> Result<RootCerts, TrustError> {
    let is_https = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    let named = std::env::var_os(TRUSTED).filter(|path| is_https && !path.is_empty());
    let Some(path) = named.map(PathBuf::from) else {
        return Ok(RootCerts::WebPki);
    };
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(source) => return Err(TrustError::Unreadable { path, source }),
    };
    let certificates: Vec<Certificate<'static>> = parse_pem(&text).filter_map(certificate).collect();
    if certificates.is_empty() {
        return Err(TrustError::NoCertificate { path });
    }
    Ok(RootCerts::from(certificates))
}

fn certificate(item: Result<PemItem<'static>, ureq::Error>) -> Option<Certificate<'static>> {
    match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        Ok(_) | Err(_) => None,
    }
}

/// The proxy of the environment, for receivers outside. A receiver on this machine or in its network is reached directly:
/// the proxy would connect to a machine of its own by that address, and see what was meant for this one.
pub(super) fn proxy(url: &str) -> Option<Proxy> {
    let proxy = Proxy::try_from_env()?;
    let uri: Uri = url.parse().ok()?;
    (!proxy.is_no_proxy(&uri) && !is_near(&uri)).then_some(proxy)
}

/// Whether the receiver is on this machine or in a private network, by its address or by that of its name. A name that
/// cannot be looked up here is left to the proxy.
fn is_near(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    if let Ok(address) = host.parse() {
        return is_near_address(address);
    }
    let found = (host.as_str(), uri.port_u16().unwrap_or_default()).to_socket_addrs();
    let mut found = found.into_iter().flatten().peekable();
    let is_known = found.peek().is_some();
    host == "localhost"
        || host.ends_with(".localhost")
        || is_known && found.all(|found| is_near_address(found.ip()))
}

fn is_near_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address == Ipv4Addr::UNSPECIFIED
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address == Ipv6Addr::UNSPECIFIED
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_this_machine_or_in_its_network_is_near() {
        for (url, near) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://127.8.9.1", true),
            ("https://localhost/", true),
            ("http://LOCALHOST:1/", true),
            ("http://a.localhost", true),
            ("http://10.1.2.3", true),
            ("http://172.16.0.1", true),
            ("http://172.32.0.1", false),
            ("http://192.168.1.1", true),
            ("http://169.254.169.254/latest", true),
            ("http://0.0.0.0:80", true),
            ("http://[::1]:80/x", true),
            ("http://[fd00::1]/", true),
            ("http://[fe80::1]/", true),
            ("http://[::ffff:10.0.0.1]/", true),
            ("http://[2001:4860:4860::8888]/", false),
            ("https://8.8.8.8", false),
            ("https://receiver.invalid/", false),
        ] {
            assert_eq!(is_near(&url.parse().expect("a URL")), near, "{url}");
        }
    }
}
