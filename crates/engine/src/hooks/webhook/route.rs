//! The route to a receiver: directly or through a proxy, and the root certificates that authenticate it.
//!
//! Both come from the environment of the posting process, which is that of the worker (or of the caller of `hook
//! test`).

use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;

use ureq::Proxy;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

/// The variable that names a PEM file of root certificates to use instead of the built-in ones, as in OpenSSL and curl.
const CERT_FILE: &str = "SSL_CERT_FILE";

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("failed to read `{}`, named by {CERT_FILE}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}`, named by {CERT_FILE}, contains no certificate in PEM format", path.display())]
    NoCertificate { path: PathBuf },
}

/// The root certificates: those of the named file, or those that browsers trust. The file is read only for https.
pub(super) fn root_certs(url: &str) -> Result<RootCerts, TrustError> {
    let is_https = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    let named = std::env::var_os(CERT_FILE).filter(|path| is_https && !path.is_empty());
    let Some(path) = named.map(PathBuf::from) else {
        return Ok(RootCerts::WebPki);
    };
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(source) => return Err(TrustError::Unreadable { path, source }),
    };
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        Ok(_) | Err(_) => None,
    };
    let certificates: Vec<Certificate<'static>> = parse_pem(&text).filter_map(certificate).collect();
    if certificates.is_empty() {
        return Err(TrustError::NoCertificate { path });
    }
    Ok(RootCerts::from(certificates))
}

/// The proxy of the environment, for receivers outside the local network. Receivers on this machine or in its network
/// are reached directly: the proxy would connect to a different machine with that address, which would see the event.
pub(super) fn proxy(url: &str) -> Option<Proxy> {
    let proxy = Proxy::try_from_env()?;
    let uri: Uri = url.parse().ok()?;
    (!proxy.is_no_proxy(&uri) && !is_local(&uri)).then_some(proxy)
}

/// Whether the receiver is on this machine or in a private network, by its address or by the address of its name. The
/// proxy resolves names that cannot be resolved here.
fn is_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    if let Ok(address) = host.parse() {
        return is_local_address(address);
    }
    let found = (host.as_str(), uri.port_u16().unwrap_or_default()).to_socket_addrs();
    let mut found = found.into_iter().flatten().peekable();
    let is_known = found.peek().is_some();
    host == "localhost"
        || host.ends_with(".localhost")
        || is_known && found.all(|found| is_local_address(found.ip()))
}

fn is_local_address(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback()
        || address.is_unspecified()
        || match address {
            IpAddr::V4(address) => address.is_private() || address.is_link_local(),
            IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_private_addresses_are_local() {
        for (url, local) in [
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
            assert_eq!(is_local(&url.parse().expect("a URL")), local, "{url}");
        }
    }
}
