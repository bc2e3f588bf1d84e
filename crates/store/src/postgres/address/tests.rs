//! Tests of addresses: what a URL means, what it refuses, and that no text of an address holds its password.

use super::*;

fn parse(url: &str) -> Address {
    Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn tcp(name: &str, port: u16) -> Host {
    Host::Tcp { name: name.to_owned(), port }
}

fn unix(folder: &str, port: u16) -> Host {
    Host::Unix { folder: folder.into(), port }
}

#[test]
fn a_full_url_is_read() {
    let address = parse(
        "PostgreSQL://w%40rk:p%3Aw%25@db1,db2:6432,[::1]:5433/jo%20bs?sslmode=verify-ca&sslrootcert=/etc/ca.pem&schema=q2\
         &pooler=transaction&connect_timeout=9&application_name=ci",
    );
    assert_eq!(address.user, "w@rk");
    assert_eq!(address.password.as_ref().map(Password::reveal), Some("p:w%"));
    assert_eq!(address.hosts, [tcp("db1", 5432), tcp("db2", 6432), tcp("::1", 5433)]);
    assert_eq!((&*address.database, &*address.schema), ("jo bs", "q2"));
    assert_eq!(address.tls(&address.hosts[2]), TlsMode::VerifyCa);
    assert_eq!(address.root_certificates, RootCertificates::File("/etc/ca.pem".into()));
    assert_eq!(address.pooler, Pooler::Transaction);
    assert_eq!(address.connect_timeout, Duration::from_secs(9));
    assert_eq!(address.application_name, "ci");
}

#[test]
fn absent_parts_have_defaults() {
    let address = parse("postgres://ann@db.example.com");
    assert_eq!((&*address.database, &*address.schema), ("ann", "queuectl"));
    assert_eq!(address.hosts, [tcp("db.example.com", 5432)]);
    assert_eq!(address.tls(&address.hosts[0]), TlsMode::VerifyFull);
    assert_eq!(address.root_certificates, RootCertificates::Usual);
    assert_eq!(parse("postgres://").hosts, [unix("/var/run/postgresql", 5432)]);
    assert_eq!(parse("postgres://").user, sys::process::user::name());
}

#[test]
fn a_socket_is_a_folder_as_a_parameter_or_escaped() {
    assert_eq!(parse("postgres:///jobs?host=/run/pg&port=6000").hosts, [unix("/run/pg", 6000)]);
    assert_eq!(parse("postgres://%2Frun%2Fpg:6000/jobs").hosts, [unix("/run/pg", 6000)]);
    assert_eq!(parse("postgres:///jobs?host=a,b&port=1,2").hosts, [tcp("a", 1), tcp("b", 2)]);
}

#[test]
fn sockets_and_loopback_need_no_tls_unless_they_are_asked_to() {
    let tls = |url: &str| {
        let address = parse(url);
        address.tls(&address.hosts[0])
    };
    for host in ["localhost", "127.0.0.2", "[::1]", "%2Frun"] {
        assert_eq!(tls(&format!("postgres://{host}/j")), TlsMode::Disable, "{host}");
    }
    assert_eq!(tls("postgres://localhost/j?sslmode=verify-full"), TlsMode::VerifyFull);
    assert_eq!(tls("postgres://%2Frun/j?sslmode=verify-full"), TlsMode::Disable);
    assert_eq!(tls("postgres://10.0.0.1/j"), TlsMode::VerifyFull);
    assert_eq!(tls("postgres://10.0.0.1/j?sslmode=disable"), TlsMode::Disable);
}

#[test]
fn what_is_wrong_is_named_with_a_way_out() {
    let refused = |url: &str| {
        let error = Address::parse(url).expect_err(url);
        (error.to_string(), error.hint().unwrap_or_default())
    };
    let (said, hint) = refused("postgres://h/d?sslmod=disable");
    assert_eq!((&*said, &*hint), ("an address has no parameter `sslmod`", "did you mean `sslmode`?"));
    assert!(refused("postgres://h/d?sslcert=x").0.contains("`sslcert`"));
    assert!(refused("postgres://h/d?zzz=x").1.starts_with("the parameters are host, port"));
    for weak in ["prefer", "allow", "require"] {
        let (said, hint) = refused(&format!("postgres://h/d?sslmode={weak}"));
        assert!(
            said.contains(weak) && hint.contains("verify-full") && hint.contains("verify-ca"),
            "{said} {hint}"
        );
        assert!(hint.contains("disable"), "{hint}");
    }
    assert!(refused("postgres://h/d?sslmode=on").1.contains("verify-full, verify-ca or disable"));
    assert!(refused("postgres://h/d?pooler=session").1.contains("transaction"));
    assert!(refused("postgres://h/d?pooler=none").1.contains("transaction"));
    for unfit in ["pooler=transaction", "schema=x", "listen=postgres://h"] {
        let (said, hint) = refused(&format!("postgres://h/d?listen=postgres://h/d?{unfit}"));
        let name = unfit.split_once('=').expect("a pair").0;
        assert!(said.contains(&format!("`{name}`")) && hint.contains("past the pooler"), "{said} {hint}");
    }
    assert!(refused("postgres://h/d?connect_timeout=0").1.contains("seconds"));
    assert!(refused("postgres://h/d?schema=pg_catalog").0.contains("pg_"));
    assert!(refused("postgres://h/d?schema=a&schema=b").0.contains("twice"));
    assert!(refused("postgres://a,b/d?port=1,2,3").0.contains("3 ports for 2 hosts"));
    assert!(refused("postgres://h:0/d").0.contains("port"));
    assert!(refused("postgres://[::1/d").0.contains("`[`"));
    assert!(refused("postgres://h%2/d").0.contains('%'));
    assert!(refused("postgres://h%FF/d").0.contains("no text"));
    assert!(refused("postgres://h/d%00").0.contains("NUL"));
    assert!(refused("mysql://h/d").1.contains("postgres://"));
}

#[test]
fn no_text_of_an_address_or_its_errors_holds_the_password() {
    let url = "postgres://ann:SECRET@h/d?listen=postgres://ann:SECRET@h2/d";
    let address = parse(url);
    assert!(address.has_password());
    for text in [
        address.to_string(),
        format!("{address:?}"),
        format!("{address:#?}"),
        format!("{:?}", address.password),
    ] {
        assert!(!text.contains("SECRET"), "{text}");
    }
    assert_eq!(address.to_string(), "postgres://ann@h/d?listen=postgres%3A%2F%2Fann%40h2%2Fd");
    for bad in [
        "postgres://u:SECRET/x@h/d",
        "postgres://u:x?SECRET@h/d",
        "postgres://u:SECRET",
        "postgres://u:x@h/d?SECRET=1",
        "postgres://u:%SECRET@h/d",
        "postgres://u:x@h:SECRET/d",
        "postgres://h/d?listen=postgres://u:SECRET",
    ] {
        let error = Address::parse(bad).expect_err(bad);
        let said = format!("{error} {error:?} {:?}", error.hint());
        assert!(!said.contains("SECRET"), "{bad}: {said}");
    }
}

#[test]
fn an_address_is_read_back_from_its_url() {
    for url in [
        "postgres://ann:p%40%2F%3A%3F%26%25@h,[::1]:1/d%2Fe?schema=%22x%22&sslmode=disable&connect_timeout=1&pooler=transaction",
        "postgres://a:b@%2Frun%2Fpg:77/d?sslrootcert=system&application_name=x+y&listen=postgres%3A%2F%2Fu%3Ap%2540%40h",
        "postgres:///d",
    ] {
        let address = parse(url);
        assert_eq!(parse(&address.with_password()).with_password(), address.with_password());
        assert!(parse(&address.with_password()) == address, "{address}");
        let shown = parse(&address.to_string());
        assert!(!shown.has_password() && shown.hosts == address.hosts && shown.tls == address.tls, "{shown}");
    }
}
