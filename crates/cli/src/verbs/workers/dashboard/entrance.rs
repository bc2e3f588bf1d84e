//! How programs reach a server of this process, for each verb that serves.

use std::path::PathBuf;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use ops::error::chain;
use web::{BasePath, HostName, ListenAddress, ServeError, ServerOptions, Surface, TlsFiles};

#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct EntranceArgs {
    /// Let other machines connect; needs TLS or --behind-proxy
    #[arg(long)]
    allow_remote: bool,
    /// The certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of the server ends TLS; it may run as another user
    #[arg(long)]
    behind_proxy: bool,
    /// Answer also for this host name; can be repeated
    #[arg(long, value_name = "HOST")]
    host: Vec<HostName>,
}

impl EntranceArgs {
    /// A server that answers at `/metrics` alone, with one stream at most because it has none.
    pub(crate) fn options(
        &self,
        context: &Context,
        listen: Vec<ListenAddress>,
    ) -> Result<ServerOptions, Failure> {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        Ok(ServerOptions {
            location: context.location()?.absolute()?,
            location_args: context.location_flags().clone(),
            listen,
            allow_remote: self.allow_remote,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            behind_proxy: self.behind_proxy,
            hosts: self.host.clone(),
            read_only: true,
            base_path: BasePath::default(),
            user_header: None,
            max_streams: 1,
            surface: Surface::Metrics,
        })
    }
}

pub(crate) fn failure(error: ServeError) -> Failure {
    let message = chain(&error);
    match error {
        ServeError::Op(error) => error.into(),
        ServeError::Remote { .. } => Failure::usage(message).with_hint(
            "use --allow-remote with --tls-cert and --tls-key, or with --behind-proxy if a proxy ends TLS; a loopback address needs neither",
        ),
        ServeError::Tls { .. } => Failure::usage(message),
        ServeError::Listen { .. } => {
            Failure::new(Exit::Unavailable, message).with_hint("--port or --listen chooses another address")
        }
        ServeError::System(_) => Failure::new(Exit::Failed, message),
    }
}
