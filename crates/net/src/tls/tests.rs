//! The keys beside this file prove nothing: they are for these tests.

use super::*;
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
    meet(tls, certificate, "localhost").await
}

/// Whether it does by that name.
async fn meet(tls: &Tls, certificate: &str, host: &str) -> bool {
    let trusted = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(trusted.path(), certificate).unwrap();
    let trust = TlsTrust::open(trusted.path()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let (server, client) = tokio::join!(tls.accept(accepted), trust.connect(host, stream));
    assert_eq!(server.is_ok(), client.is_ok());
    client.is_ok()
}

#[tokio::test]
async fn a_server_must_have_the_name_that_it_is_asked_by() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(&folder);
    put(&files, ONE);
    let tls = Tls::open(files).unwrap();
    assert!(meet(&tls, ONE.0, "localhost").await);
    assert!(!meet(&tls, ONE.0, "elsewhere").await);
    assert!(!meet(&tls, ONE.0, "[::1]").await);
}

#[test]
fn a_file_that_vouches_for_nobody_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for text in ["", "no certificate", ONE.1] {
        std::fs::write(file.path(), text).unwrap();
        assert!(TlsTrust::open(file.path()).is_err(), "{text}");
    }
    assert!(TlsTrust::open(std::path::Path::new("/nonexistent")).is_err());
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
