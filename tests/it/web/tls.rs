//! The server over TLS.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{Request, Response, Server};
use crate::REPOSITORY;
use crate::cli::harness::Home;

/// A file beside the receiver of events, which has the same certificate.
fn file(name: &str) -> String {
    format!("{REPOSITORY}/tests/it/engine/receiver/{name}")
}

fn server() -> Server {
    let (certificate, key) = (file("receiver.pem"), file("receiver.key"));
    Server::start(Home::with_jobs(&["a"]), &["--tls-cert", &certificate, "--tls-key", &key])
}

/// Sends a request by TLS to a server whose authority is trusted.
fn send(request: Request<'_>) -> Response {
    let mut trusted = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(Path::new(&file("authority.pem"))).expect("a certificate");
    trusted.add(authority).expect("an authority");
    let config = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let request = request.with("Connection", "close");
    let mut stream: StreamOwned<_, TcpStream> = StreamOwned::new(connection, request.server().connect());
    stream.write_all(&request.bytes()).expect("sent");
    let mut read = Vec::new();
    // A server may end the connection without a farewell of TLS.
    let _ = stream.read_to_end(&mut read);
    Response::parse("by TLS".to_owned(), &String::from_utf8_lossy(&read))
}

#[test]
fn requests_are_answered_by_tls_and_the_doors_hold() {
    let server = server();
    assert!(server.link.starts_with("https://127.0.0.1:"), "{}", server.link);
    let jobs = send(server.call("GET", "/api/v1/jobs")).expects(200).json();
    assert_eq!(jobs[0]["id"], "a");
    send(server.request("GET", "/api/v1/jobs")).expects(401);
    send(server.call("GET", "/api/v1/jobs").with("Host", "example.org")).expects(421);
    send(server.call("POST", "/api/v1/jobs/a/cancel")).expects(200);
}

#[test]
fn clear_text_gets_no_answer_and_the_server_lives_on() {
    let server = server();
    let answer = server.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert!(!answer.contains("HTTP/1.1 200"), "{answer}");
    send(server.call("GET", "/healthz")).expects(200);
}

#[test]
fn a_file_that_is_no_certificate_or_key_is_named() {
    let home = Home::with_queue();
    let wrong = file("authority.pem");
    let words = ["dashboard", "--listen", "127.0.0.1:0", "--tls-cert", &wrong, "--tls-key", &wrong];
    home.run(words).fails(2).says("authority.pem");
}
