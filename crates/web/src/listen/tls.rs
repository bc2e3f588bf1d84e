//! TLS, for listeners that other machines can reach.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::server::ServeError;

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl TlsFiles {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, ServeError> {
        let refuse = |path: &PathBuf, source: Box<dyn std::error::Error + Send + Sync>| ServeError::Tls {
            path: path.clone(),
            source,
        };
        let open =
            |path: &PathBuf| File::open(path).map(BufReader::new).map_err(|error| refuse(path, error.into()));
        let certificates: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_reader_iter(open(&self.certificate)?).collect();
        let certificates = certificates.map_err(|error| refuse(&self.certificate, error.into()))?;
        let key = PrivateKeyDer::from_pem_reader(open(&self.key)?)
            .map_err(|error| refuse(&self.key, error.into()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| refuse(&self.certificate, error.into()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
