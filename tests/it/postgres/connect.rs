//! The way to a server: every failure says which it is and what to do, and a session is protected as the address says.

use std::os::unix::fs::PermissionsExt;
use std::{fs, io, net, thread};

use store::StoreError;
use store::postgres::address::TlsMode;
use store::postgres::connect::Server;
use store::postgres::{Address, ConnectProblem, Target, probe};

use super::cluster::{Cluster, PASSWORD, PASSWORD_IN_URL, eventually};

fn try_connect(url: &str) -> Result<Server, StoreError> {
    let address = Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    probe(&address, Target::Primary)
}

/// The problem of an address that cannot be used. Its message and its hint are never empty and hold no password.
fn problem(url: &str) -> ConnectProblem {
    let error = try_connect(url).expect_err(url);
    let StoreError::Unreachable(error) = error else { panic!("{url}: {error}") };
    let said = format!("{error}\n{}\n{error:?}", error.hint());
    assert!(!said.contains(PASSWORD) && !said.contains(PASSWORD_IN_URL), "{said}");
    assert!(!error.hint().is_empty() && !error.to_string().contains('\n'), "{said}");
    error.problem
}

macro_rules! assert_problem {
    ($url:expr, $expected:pat) => {
        let found = problem($url.as_ref());
        assert!(matches!(found, $expected), "{}: {found:?}", $url);
    };
}

#[test]
fn each_failure_says_which_it_is() {
    let cluster = Cluster::start("");
    let account = format!("keeper:{PASSWORD_IN_URL}");
    let server = try_connect(&cluster.tcp_url(&account, "")).expect("it works");
    assert_eq!((server.is_standby, server.tls), (false, TlsMode::Disable));
    assert!(server.major_version().is_some_and(|major| major >= 14), "{server:?}");
    try_connect(&cluster.socket_url("keeper")).expect("the socket trusts everyone");

    assert_problem!(cluster.tcp_url("keeper:no", ""), ConnectProblem::WrongPassword(_));
    assert_problem!(cluster.tcp_url("stranger:no", ""), ConnectProblem::WrongPassword(_));
    assert_problem!(cluster.tcp_url("keeper", ""), ConnectProblem::NoPassword(None));
    assert_problem!(cluster.socket_url("stranger"), ConnectProblem::RefusedRole(_));
    assert_problem!(cluster.tcp_url(&account, "").replace("/jobs", "/none"), ConnectProblem::NoDatabase(_));
    assert_problem!(cluster.tcp_url(&account, "sslmode=verify-full"), ConnectProblem::NoTls);
    assert_problem!("postgres://no.such.host.invalid/jobs", ConnectProblem::UnknownName(_));
    assert_problem!("postgres:///jobs?host=/nowhere", ConnectProblem::NoSocket);
    let nothing = net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    assert_problem!(format!("postgres://127.0.0.1:{nothing}/jobs"), ConnectProblem::Refused);

    cluster.sql("postgres", "alter database jobs connection limit 0");
    assert_problem!(cluster.tcp_url(&account, ""), ConnectProblem::TooManyConnections(_));
    cluster.sql("postgres", "alter database jobs connection limit -1");
    cluster.sql("postgres", "alter role keeper nologin");
    assert_problem!(cluster.tcp_url(&account, ""), ConnectProblem::RefusedRole(_));
    cluster.sql("postgres", "alter role keeper login");
    cluster.sql(
        "postgres",
        "revoke connect on database jobs from public; alter database jobs owner to postgres",
    );
    assert_problem!(cluster.tcp_url(&account, ""), ConnectProblem::RefusedRole(_));
}

#[test]
fn all_hosts_are_tried_until_one_can_be_used() {
    let cluster = Cluster::start("");
    let (port, account) = (cluster.port, format!("keeper:{PASSWORD_IN_URL}"));
    let server = try_connect(&format!("postgres://{account}@127.0.0.1:1,[::1]:1,localhost:{port}/jobs"));
    assert_eq!(server.expect("the last host works").host.to_string(), format!("localhost:{port}"));
    let said = try_connect(&format!("postgres://keeper:no@127.0.0.1:1,localhost:{port}/jobs"))
        .expect_err("a wrong one");
    let said = said.to_string();
    assert!(said.contains("password for role `keeper` is wrong") && said.contains("other host"), "{said}");
}

#[test]
fn a_server_that_is_not_one_is_noticed() {
    let listener = net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let url = |parameters: &str| format!("postgres://a:b@127.0.0.1:{port}/jobs?{parameters}");
    let answers: [&[u8]; 2] = [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""];
    let server = thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a caller");
            let _ = io::Read::read(&mut stream, &mut [0; 512]);
            io::Write::write_all(&mut stream, answer).expect("an answer");
        }
        // The last caller gets no answer.
        let (mut stream, _) = listener.accept().expect("a caller");
        let _ = io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    assert_problem!(url(""), ConnectProblem::NotPostgres(_) | ConnectProblem::Closed);
    assert_problem!(url(""), ConnectProblem::Closed);
    assert_problem!(url("connect_timeout=1"), ConnectProblem::TimedOut(_));
    server.join().expect("it ends");
}

#[test]
fn a_password_comes_from_the_file_that_only_its_owner_can_read() {
    let cluster = Cluster::start("");
    let file = cluster.path().join("passwords");
    fs::write(&file, format!("127.0.0.1:{}:jobs:keeper:{PASSWORD}\n", cluster.port)).expect("written");
    // Each test is a process of its own, and this one has one thread.
    let program = |mode: u32| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
        let home = crate::cli::harness::Home::new();
        home.call(["store", "info", "--store", &cluster.tcp_url("keeper", "")]).env("PGPASSFILE", &file).run()
    };
    program(0o644).fails(5).says("has access for group or others (mode 0644)").says("chmod 600");
    program(0o600).ok();
}

/// A cluster with an authority, and certificates of it for the server: by default one for `localhost`.
fn cluster_with_tls() -> Cluster {
    let cluster = Cluster::prepare();
    make_certificates(&cluster);
    cluster.initialize("ssl = on\nssl_cert_file = '../server.crt'\nssl_key_file = '../server.key'");
    cluster
}

fn make_certificates(cluster: &Cluster) {
    let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let authority = |name: &str| {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
        let mut args = vec!["req", "-x509", "-subj", "/CN=authority", "-days", "30"];
        args.extend(new_key);
        args.extend(["-keyout", &key, "-out", &certificate]);
        cluster.openssl(&args);
    };
    authority("authority");
    authority("stranger");
    let server = |name: &str, host: &str, days: &str| {
        let (key, request, certificate) =
            (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"));
        let subject = format!("/CN={host}");
        let alternative = format!("subjectAltName=DNS:{host}");
        let mut args = vec!["req", "-subj", &subject, "-addext", &alternative];
        args.extend(new_key);
        args.extend(["-keyout", &key, "-out", &request]);
        cluster.openssl(&args);
        let sign = ["x509", "-req", "-in", &request, "-CA", "authority.crt", "-CAkey", "authority.key"];
        let how = ["-CAcreateserial", "-copy_extensions", "copy", "-days", days, "-out", &certificate];
        cluster.openssl(&[&sign[..], &how[..]].concat());
    };
    server("server", "localhost", "30");
    server("renamed", "db.example.com", "30");
    server("expired", "localhost", "-1");
}

#[test]
fn a_certificate_is_verified_as_the_address_says() {
    let cluster = cluster_with_tls();
    let authority = cluster.path().join("authority.crt");
    let stranger = cluster.path().join("stranger.crt");
    let url = |host: &str, mode: &str, root: &std::path::Path| {
        let (port, root) = (cluster.port, root.display());
        format!("postgres://keeper:{PASSWORD_IN_URL}@{host}:{port}/jobs?sslmode={mode}&sslrootcert={root}")
    };
    for mode in ["verify-full", "verify-ca"] {
        let server = try_connect(&url("localhost", mode, &authority)).expect(mode);
        assert_eq!(server.tls.name(), mode);
        assert_problem!(url("localhost", mode, &stranger), ConnectProblem::UnknownAuthority);
        assert_problem!(url("localhost", mode, "/nowhere".as_ref()), ConnectProblem::BadRootFile { .. });
    }
    assert_problem!(url("127.0.0.1", "verify-full", &authority), ConnectProblem::WrongName(_));
    try_connect(&url("127.0.0.1", "verify-ca", &authority)).expect("any name will do");
    assert_problem!(
        url("localhost", "verify-full", "system".as_ref()),
        ConnectProblem::UnknownAuthority | ConnectProblem::NoSystemCertificates
    );

    let serve = |name: &str| {
        for kind in ["key", "crt"] {
            let path = |name: &str| cluster.path().join(format!("{name}.{kind}"));
            fs::copy(path(name), path("server")).expect("another certificate");
        }
        cluster.reload();
    };
    serve("renamed");
    // A reload takes effect a moment later.
    let renamed = eventually("the new certificate is served", || {
        try_connect(&url("localhost", "verify-full", &authority)).err()
    });
    let said = renamed.to_string();
    assert!(said.contains("does not name this host") && said.contains("db.example.com"), "{said}");
    try_connect(&url("localhost", "verify-ca", &authority)).expect("the authority is right");
    serve("expired");
    eventually("the expired certificate is served", || {
        try_connect(&url("localhost", "verify-ca", &authority)).err()
    });
    assert_problem!(url("localhost", "verify-ca", &authority), ConnectProblem::ExpiredCertificate);
    assert_problem!(url("localhost", "verify-full", &authority), ConnectProblem::ExpiredCertificate);
}

#[test]
fn a_standby_is_refused_for_writers_and_accepted_for_readers() {
    let primary = Cluster::start("");
    let standby = primary.standby();
    assert_problem!(standby.socket_url("keeper"), ConnectProblem::Standby);
    let address = Address::parse(&standby.socket_url("keeper")).expect("valid");
    let server = probe(&address, Target::Any);
    assert!(server.expect("it can be read").is_standby);
    // With both hosts in the address the primary is found behind the standby.
    let account = format!("keeper:{PASSWORD_IN_URL}");
    let both = format!("postgres://{account}@127.0.0.1:{},127.0.0.1:{}/jobs", standby.port, primary.port);
    let server = try_connect(&both).expect("the primary");
    assert_eq!((server.is_standby, server.host.port()), (false, primary.port));
    assert_eq!(PASSWORD.len(), PASSWORD_IN_URL.replace("%2F", "/").replace("%20", " ").len());
}
