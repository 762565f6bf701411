//! The keys beside this file prove nothing: they are for these tests.

use super::*;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const ONE: (&str, &str) = (include_str!("one.pem"), include_str!("one.key"));
const TWO: (&str, &str) = (include_str!("two.pem"), include_str!("two.key"));

fn put(files: &TlsFiles, (certificate, key): (&str, &str)) {
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
}

fn files(folder: &tempfile::TempDir) -> TlsFiles {
    TlsFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") }
}

/// Whether a client that trusts a certificate alone knows the server.
async fn is_known(tls: &Tls, certificate: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let (server, client) = tokio::join!(tls.accept(accepted), connector.connect(name, stream));
    assert_eq!(server.is_ok(), client.is_ok());
    client.is_ok()
}

#[tokio::test]
async fn a_certificate_that_changes_is_shown_and_a_wrong_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(&folder);
    put(&files, ONE);
    let tls = Tls::open(files.clone()).unwrap();
    assert!(is_known(&tls, ONE.0).await && !is_known(&tls, TWO.0).await);
    let later = |times| Instant::now() + times * LOOK_EVERY;
    put(&files, (TWO.0, "no key"));
    tls.certificate.look(later(1));
    assert!(is_known(&tls, ONE.0).await, "the key is not there yet");
    put(&files, TWO);
    tls.certificate.look(later(2));
    assert!(is_known(&tls, TWO.0).await && !is_known(&tls, ONE.0).await);
}

#[test]
fn what_cannot_be_used_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(&folder);
    let refused = || Tls::open(files.clone()).unwrap_err().to_string();
    assert!(refused().contains("c.pem"));
    for wrong in [("", ONE.1), (ONE.0, ""), (ONE.0, TWO.1), (ONE.1, ONE.1)] {
        put(&files, wrong);
        let told = refused();
        assert!(told.contains("c.pem") || told.contains("k.pem"), "{told}");
    }
}
