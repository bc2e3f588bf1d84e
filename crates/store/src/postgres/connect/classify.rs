//! Which problem an error of the driver is.

use std::io;

use rustls::{CertificateError, Error as TlsError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use super::socket::network_problem;
use crate::postgres::address::{Address, PasswordFileError};
use crate::postgres::connect_error::ConnectProblem;

/// What the driver says, as text only, for two problems that it has no type for.
const PASSWORD_MISSING: &str = "password missing";
const NO_TLS: &str = "server does not support TLS";
/// PgBouncer says so, with the code of a violated protocol, if it does not know a parameter of the startup packet.
const UNKNOWN_PARAMETER: &str = "unsupported startup parameter";

pub(super) fn problem(
    error: Error,
    address: &Address,
    refused_file: Option<PasswordFileError>,
) -> ConnectProblem {
    if let Some(error) = error.as_db_error() {
        return said_by_server(error, address);
    }
    if error.is_closed() {
        return ConnectProblem::Closed;
    }
    let said = error.to_string();
    match error.into_source() {
        None => ConnectProblem::NotPostgres(said),
        Some(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => network_or_tls(*error),
            Err(cause) => match &*cause.to_string() {
                PASSWORD_MISSING => ConnectProblem::NoPassword(refused_file),
                NO_TLS => ConnectProblem::NoTls,
                cause => ConnectProblem::NotPostgres(format!("{said}: {cause}")),
            },
        },
    }
}

fn said_by_server(error: &DbError, address: &Address) -> ConnectProblem {
    let said = error.message().to_owned();
    let code = error.code();
    let is = |known: &[SqlState]| known.contains(code);
    if is(&[SqlState::INVALID_PASSWORD]) {
        ConnectProblem::WrongPassword(address.user.clone())
    } else if is(&[SqlState::INVALID_AUTHORIZATION_SPECIFICATION]) {
        ConnectProblem::RefusedRole(said)
    } else if is(&[SqlState::INVALID_CATALOG_NAME]) {
        ConnectProblem::NoDatabase(address.database.clone())
    } else if is(&[SqlState::TOO_MANY_CONNECTIONS]) {
        ConnectProblem::TooManyConnections(said)
    } else if is(&[SqlState::CANNOT_CONNECT_NOW, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN]) {
        ConnectProblem::StartingUp(said)
    } else if is(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
        ConnectProblem::RefusedRole(said)
    } else if said.starts_with(UNKNOWN_PARAMETER) {
        ConnectProblem::RefusedSettings(said)
    } else if is(&[SqlState::PROTOCOL_VIOLATION]) {
        ConnectProblem::RefusedSession(said)
    } else {
        ConnectProblem::RefusedSession(format!("{said}, SQLSTATE {}", code.code()))
    }
}

fn network_or_tls(error: io::Error) -> ConnectProblem {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    match tls {
        Some(TlsError::InvalidCertificate(refused)) => certificate_problem(refused),
        Some(error) => ConnectProblem::Tls(error.to_string()),
        // An error of the decoder, not of the system.
        None if error.raw_os_error().is_none() && error.get_ref().is_some() => {
            ConnectProblem::NotPostgres(error.to_string())
        }
        None => network_problem(error),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is not ours and grows")]
fn certificate_problem(refused: &CertificateError) -> ConnectProblem {
    match refused {
        // A bad signature: another authority has the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => ConnectProblem::UnknownAuthority,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ConnectProblem::ExpiredCertificate
        }
        CertificateError::NotValidForName => ConnectProblem::WrongName(Vec::new()),
        CertificateError::NotValidForNameContext { presented, .. } => {
            ConnectProblem::WrongName(presented.clone())
        }
        // webpki has no code for it, only these words.
        CertificateError::Other(error) if error.to_string().contains("CaUsedAsEndEntity") => {
            ConnectProblem::AuthorityCertificate
        }
        refused => ConnectProblem::Tls(refused.to_string()),
    }
}
