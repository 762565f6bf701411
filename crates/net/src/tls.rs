//! TLS of HTTP ports: a certificate and its key, in files that may change while the server runs; and whom clients trust.
//! TLS in which both sides show a certificate is in [`mutual`].

pub mod mutual;
mod trust;

pub use trust::TlsTrust;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use cairn_process::disk_work::may_wait;

/// How often it is looked whether the files are others. As Hadoop's `ssl.server.keystore.reload.interval`.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where a server has its certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that vouch for it, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct TlsError {
    path: String,
    why: String,
}

/// A server's side of TLS. Clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    certificate: Arc<Certificate>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.certificate.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    pub fn open(files: TlsFiles) -> Result<Tls, TlsError> {
        let (seen, key) = (stamps(&files), load(&files)?);
        let looked = Mutex::new((Instant::now(), seen));
        let certificate = Arc::new(Certificate { files, now: RwLock::new(Arc::new(key)), looked });
        let resolver = Arc::clone(&certificate) as Arc<dyn ResolvesServerCert>;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| certificate.wrong(&error))?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }

    /// Has a client that has connected know the server.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.certificate.look(Instant::now());
        self.acceptor.accept(stream).await
    }
}

/// The certificate that is shown.
struct Certificate {
    files: TlsFiles,
    now: RwLock<Arc<CertifiedKey>>,
    /// When the files were looked at, and how they were.
    looked: Mutex<(Instant, Stamps)>,
}

/// When a file was changed, and how long it was.
type Stamp = Option<(SystemTime, u64)>;
type Stamps = [Stamp; 2];

fn stamp(path: &Path) -> Stamp {
    let seen = std::fs::metadata(path).ok()?;
    Some((seen.modified().ok()?, seen.len()))
}

fn stamps(files: &TlsFiles) -> Stamps {
    [&files.certificate, &files.key].map(|path| stamp(path))
}

impl Certificate {
    /// Takes the files as they are, if they have changed. What cannot be used is told, and the former one stays.
    fn look(&self, now: Instant) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(looked.0) < LOOK_EVERY {
            return;
        }
        let seen = may_wait(|| stamps(&self.files));
        let has_changed = seen != looked.1;
        *looked = (now, seen);
        drop(looked);
        if !has_changed {
            return;
        }
        match may_wait(|| load(&self.files)) {
            Ok(key) => {
                *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
                tracing::info!(certificate = %self.files.certificate.display(), "another certificate is shown");
            }
            Err(error) => tracing::warn!(%error, "the former certificate is shown"),
        }
    }

    fn wrong(&self, error: &rustls::Error) -> TlsError {
        TlsError { path: self.files.certificate.display().to_string(), why: error.to_string() }
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn load(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let wrong = |path: &PathBuf, why: String| TlsError { path: path.display().to_string(), why };
    let read = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(|chain| chain.collect::<Result<Vec<_>, _>>());
    let chain = read.map_err(|error| wrong(&files.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(&files.certificate, "there is no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(|error| wrong(&files.key, error.to_string()))?;
    // Fails where the key is not the certificate's.
    let made = CertifiedKey::from_der(chain, key, &ring::default_provider());
    made.map_err(|error| wrong(&files.key, error.to_string()))
}

#[cfg(test)]
mod tests;
