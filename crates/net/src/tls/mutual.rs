//! TLS in which both sides show a certificate, over sockets that block: members of a quorum speak so.
//!
//! A side is known when a certificate of the authority's file vouches for it and it has the name that it is asked by. Only
//! TLS 1.3 is spoken, and no connection goes on from another one: each shows the certificates that there are now. The files
//! are read again when they have changed.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use tokio_rustls::rustls::client::{Resumption, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::{
    NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier,
};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned,
};

use super::trust::{roots, server_name};
use super::{LOOK_EVERY, Stamp, TlsError, TlsFiles, load, stamp};

/// What one side shows, and whom it believes.
pub struct MutualTls {
    files: TlsFiles,
    authority: PathBuf,
    now: RwLock<Arc<Sides>>,
    /// When the files were looked at, and how they were.
    looked: Mutex<(Instant, [Stamp; 3])>,
}

struct Sides {
    own: CertificateDer<'static>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MutualTls { files, authority, .. } = self;
        f.debug_struct("MutualTls")
            .field("files", files)
            .field("authority", authority)
            .finish_non_exhaustive()
    }
}

impl MutualTls {
    /// Shows the certificate of `files`, and believes those for whom a certificate of the PEM file `authority` vouches.
    pub fn open(files: TlsFiles, authority: &Path) -> Result<MutualTls, TlsError> {
        let seen = stamps(&files, authority);
        let now = RwLock::new(Arc::new(Sides::read(&files, authority)?));
        let looked = Mutex::new((Instant::now(), seen));
        Ok(MutualTls { files, authority: authority.to_owned(), now, looked })
    }

    /// Whether the certificate that is shown names this host.
    pub fn is_of(&self, host: &str) -> bool {
        is_of(&self.now().own, host)
    }

    /// Has the other side, which has accepted, show that it is `host`.
    pub fn connect<S: Read + Write>(
        &self,
        host: &str,
        mut stream: S,
    ) -> io::Result<MutualStream<S>> {
        self.look(Instant::now());
        let client = Arc::clone(&self.now().client);
        let made = ClientConnection::new(client, server_name(host)?);
        let mut connection = made.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(MutualStream::Connects(Box::new(StreamOwned::new(connection, stream))))
    }

    /// Has the other side, which has connected, show who it is; [`MutualStream::is_of`] says it.
    pub fn accept<S: Read + Write>(&self, mut stream: S) -> io::Result<MutualStream<S>> {
        self.look(Instant::now());
        let server = Arc::clone(&self.now().server);
        let mut connection = ServerConnection::new(server).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(MutualStream::Accepts(Box::new(StreamOwned::new(connection, stream))))
    }

    fn now(&self) -> Arc<Sides> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the files as they are, if they have changed. What cannot be used is told, and what was there before stays.
    fn look(&self, now: Instant) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(looked.0) < LOOK_EVERY {
            return;
        }
        let seen = stamps(&self.files, &self.authority);
        let has_changed = seen != looked.1;
        *looked = (now, seen);
        drop(looked);
        if !has_changed {
            return;
        }
        let certificate = self.files.certificate.display();
        match Sides::read(&self.files, &self.authority) {
            Ok(sides) => {
                *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sides);
                tracing::info!(%certificate, "members are shown another certificate, or believed by another one");
            }
            Err(error) => tracing::warn!(%error, "members are shown the former certificate"),
        }
    }
}

fn stamps(files: &TlsFiles, authority: &Path) -> [Stamp; 3] {
    [&files.certificate, &files.key, authority].map(stamp)
}

impl Sides {
    fn read(files: &TlsFiles, authority: &Path) -> Result<Sides, TlsError> {
        let CertifiedKey { cert, key, .. } = load(files)?;
        // There is at least one, or it could not have been loaded.
        let own = cert.first().cloned().unwrap_or_else(|| CertificateDer::from(Vec::new()));
        let shown = Arc::new(SingleCertAndKey::from(CertifiedKey::new(cert, key)));
        let wrong = |why: String| TlsError { path: authority.display().to_string(), why };
        let roots = Arc::new(roots(authority)?);
        let provider = Arc::new(ring::default_provider());
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_cert_resolver(shown.clone());
        client.resumption = Resumption::disabled();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| wrong(error.to_string()))?
            .with_client_cert_verifier(verifier.map_err(|error| wrong(error.to_string()))?)
            .with_cert_resolver(shown);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Sides { own, client: Arc::new(client), server: Arc::new(server) })
    }
}

fn is_of(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(certificate), server_name(host))
    else {
        return false;
    };
    verify_server_name(&parsed, &name).is_ok()
}

/// A connection between two that know each other.
pub enum MutualStream<S: Read + Write> {
    /// Of who has connected.
    Connects(Box<StreamOwned<ClientConnection, S>>),
    /// Of who has accepted.
    Accepts(Box<StreamOwned<ServerConnection, S>>),
}

impl<S: Read + Write> MutualStream<S> {
    /// Whether the certificate of the other side names this host.
    pub fn is_of(&self, host: &str) -> bool {
        let shown = match self {
            MutualStream::Connects(stream) => stream.conn.peer_certificates(),
            MutualStream::Accepts(stream) => stream.conn.peer_certificates(),
        };
        shown.and_then(|chain| chain.first()).is_some_and(|certificate| is_of(certificate, host))
    }

    /// What it is on.
    pub fn get_ref(&self) -> &S {
        match self {
            MutualStream::Connects(stream) => &stream.sock,
            MutualStream::Accepts(stream) => &stream.sock,
        }
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self) -> &mut S {
        match self {
            MutualStream::Connects(stream) => &mut stream.sock,
            MutualStream::Accepts(stream) => &mut stream.sock,
        }
    }
}

impl<S: Read + Write> Read for MutualStream<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            MutualStream::Connects(stream) => stream.read(bytes),
            MutualStream::Accepts(stream) => stream.read(bytes),
        }
    }
}

impl<S: Read + Write> Write for MutualStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            MutualStream::Connects(stream) => stream.write(bytes),
            MutualStream::Accepts(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            MutualStream::Connects(stream) => stream.flush(),
            MutualStream::Accepts(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests;
