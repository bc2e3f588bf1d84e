//! TLS by rustls. The driver knows neither `verify-full` nor `verify-ca`: here rustls verifies, and for `verify-ca` a
//! certificate that names another host is accepted.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Socket;
use crate::postgres::address::{Host, RootCertificates, TlsMode};
use crate::postgres::connect_error::ConnectProblem;

/// The certificate of libpq's usual authority, in the home of the user.
const USUAL_FILE: &str = ".postgresql/root.crt";

type Rustls = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
pub type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Makes the TLS session, where there is to be one. Without TLS nothing of rustls is set up.
pub(super) struct Connector(Option<Rustls>);

impl Connector {
    pub(super) fn new(
        mode: TlsMode,
        certificates: &RootCertificates,
        host: &Host,
    ) -> Result<Self, ConnectProblem> {
        let verifies_name = match mode {
            TlsMode::Disable => return Ok(Self(None)),
            TlsMode::VerifyCa => false,
            TlsMode::VerifyFull => true,
        };
        let name = match host {
            Host::Tcp { name, .. } => name,
            Host::Unix { .. } => return Ok(Self(None)),
        };
        let config = client_config(Arc::new(roots(certificates)?), verifies_name)
            .map_err(|error| ConnectProblem::Tls(error.to_string()))?;
        let Ok(connector) =
            MakeTlsConnect::<Socket>::make_tls_connect(&mut MakeRustlsConnect::new(config), name);
        Ok(Self(Some(connector)))
    }
}

impl TlsConnect<Socket> for Connector {
    type Stream = TlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        match self.0 {
            Some(connector) => Box::pin(connector.connect(socket)),
            None => Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into()))),
        }
    }
}

fn client_config(roots: Arc<RootCertStore>, verifies_name: bool) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    if verifies_name {
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    }
    let inner = WebPkiServerVerifier::builder_with_provider(roots, provider)
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let verifier = Arc::new(AnyName(inner));
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn roots(certificates: &RootCertificates) -> Result<RootCertStore, ConnectProblem> {
    match certificates {
        RootCertificates::File(path) => roots_in(path),
        RootCertificates::System => system_roots(),
        RootCertificates::Usual => match usual_file().filter(|path| path.exists()) {
            Some(path) => roots_in(&path),
            None => system_roots(),
        },
    }
}

fn usual_file() -> Option<PathBuf> {
    Some(Path::new(&std::env::var_os("HOME")?).join(USUAL_FILE))
}

fn roots_in(path: &Path) -> Result<RootCertStore, ConnectProblem> {
    let bad = |source| ConnectProblem::BadRootFile { path: path.to_owned(), source };
    let malformed = |error: pem::Error| bad(io::Error::new(io::ErrorKind::InvalidData, error));
    let text = std::fs::read(path).map_err(bad)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let added = roots.add(certificate.map_err(malformed)?);
        added.map_err(|error| bad(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    }
    if roots.is_empty() {
        return Err(ConnectProblem::NoRootCertificates { path: path.to_owned() });
    }
    Ok(roots)
}

/// The authorities that this system trusts. One that rustls cannot read is left out, as browsers do.
fn system_roots() -> Result<RootCertStore, ConnectProblem> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(ConnectProblem::NoSystemCertificates) } else { Ok(roots) }
}

/// Verifies everything but the name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is verified last: if only that is wrong, the authority and the times are right.
        match self.0.verify_server_cert(certificate, intermediates, server, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
