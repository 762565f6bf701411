//! A client's side of TLS: whom it trusts.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::TlsError;

/// Where systems keep the certificates of those whom all programs trust: Debian, Red Hat, SUSE, Alpine.
const OF_SYSTEMS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Knows servers by their certificates. Clones share what is trusted.
#[derive(Clone)]
pub struct TlsTrust {
    connector: TlsConnector,
    path: PathBuf,
}

impl fmt::Debug for TlsTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTrust").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The same where it is by the same file.
impl PartialEq for TlsTrust {
    fn eq(&self, other: &TlsTrust) -> bool {
        self.path == other.path
    }
}

impl Eq for TlsTrust {}

impl TlsTrust {
    /// Trusts servers for whom a certificate of this PEM file vouches.
    pub fn open(path: &Path) -> Result<TlsTrust, TlsError> {
        let wrong = |why: String| TlsError { path: path.display().to_string(), why };
        let roots = roots(path)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(TlsTrust { connector, path: path.to_owned() })
    }

    /// Trusts servers for whom those vouch whom this system trusts. Fails where it keeps no list of them.
    pub fn of_system() -> Result<TlsTrust, TlsError> {
        let found = OF_SYSTEMS.iter().map(Path::new).find(|path| path.exists());
        TlsTrust::open(found.unwrap_or(Path::new(OF_SYSTEMS[0])))
    }

    /// Has a server show that it is `host`, a name or an address.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(server_name(host)?, stream).await
    }
}

/// Those who vouch for others by a PEM file, at least one.
pub(super) fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let wrong = |why: String| TlsError { path: path.display().to_string(), why };
    let read =
        CertificateDer::pem_file_iter(path).and_then(|found| found.collect::<Result<Vec<_>, _>>());
    let mut roots = RootCertStore::empty();
    let (taken, _) =
        roots.add_parsable_certificates(read.map_err(|error| wrong(error.to_string()))?);
    if taken == 0 {
        return Err(wrong("there is no certificate in it that can vouch for others".to_owned()));
    }
    Ok(roots)
}

/// A host as certificates name it: a name or an address.
pub(super) fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    ServerName::try_from(host).map_err(io::Error::other)
}
