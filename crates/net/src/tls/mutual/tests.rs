//! The keys beside these files prove nothing: they are for these tests.

use super::*;
use std::net::{TcpListener, TcpStream};
use std::thread;
use tempfile::TempDir;

type Pair = (&'static str, &'static str);
const ONE: Pair = (include_str!("../one.pem"), include_str!("../one.key"));
const TWO: Pair = (include_str!("../two.pem"), include_str!("../two.key"));

/// A side in a folder that shows a certificate and believes those for whom others vouch.
fn put(folder: &TempDir, (certificate, key): Pair, believes: &[Pair]) -> (TlsFiles, PathBuf) {
    let at = |name: &str| folder.path().join(name);
    let files = TlsFiles { certificate: at("c.pem"), key: at("k.pem") };
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
    let authority: String = believes.iter().map(|(certificate, _)| *certificate).collect();
    std::fs::write(at("a.pem"), authority).unwrap();
    (files, at("a.pem"))
}

fn side(shows: Pair, believes: &[Pair]) -> MutualTls {
    let folder = tempfile::tempdir().unwrap();
    let (files, authority) = put(&folder, shows, believes);
    MutualTls::open(files, &authority).unwrap()
}

/// Has one connect to the other by that name, and a word go each way.
fn meet(
    connects: &MutualTls,
    accepts: &MutualTls,
    host: &str,
) -> (io::Result<bool>, io::Result<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let mut stream = accepts.accept(listener.accept()?.0)?;
            let mut word = [0; 4];
            stream.read_exact(&mut word)?;
            stream.write_all(&word)?;
            stream.flush()?;
            Ok(stream.is_of("localhost"))
        });
        let connected = || {
            let mut stream = connects.connect(host, TcpStream::connect(addr)?)?;
            stream.write_all(b"word")?;
            stream.flush()?;
            let mut word = [0; 4];
            stream.read_exact(&mut word)?;
            assert_eq!(&word, b"word");
            Ok(stream.is_of(host))
        };
        (connected(), accepted.join().unwrap())
    })
}

#[test]
fn both_sides_show_who_they_are() {
    let (one, two) = (side(ONE, &[ONE, TWO]), side(TWO, &[ONE, TWO]));
    for host in ["localhost", "127.0.0.1"] {
        let (connected, accepted) = meet(&one, &two, host);
        assert!(connected.unwrap() && accepted.unwrap());
    }
    assert!(one.is_of("localhost") && one.is_of("127.0.0.1"));
    assert!(!one.is_of("elsewhere") && !one.is_of("[::1]"));
}

#[test]
fn a_stranger_of_either_side_is_not_let_in() {
    let (one, two) = (side(ONE, &[ONE]), side(TWO, &[ONE, TWO]));
    let (connected, accepted) = meet(&one, &two, "localhost");
    assert!(connected.is_err() && accepted.is_err(), "who accepts is not believed");
    let (connected, accepted) = meet(&two, &one, "localhost");
    assert!(connected.is_err() && accepted.is_err(), "who connects is not believed");
    let both = side(ONE, &[ONE, TWO]);
    let (connected, accepted) = meet(&both, &two, "elsewhere");
    assert!(connected.is_err() && accepted.is_err(), "it has not the name that it is asked by");
}

#[test]
fn who_shows_no_certificate_is_not_let_in() {
    let one = side(ONE, &[ONE]);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(believing(ONE))
        .with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let accepted = thread::scope(|scope| {
        let accepted = scope.spawn(|| one.accept(listener.accept()?.0).map(|_| ()));
        let name = server_name("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(client, TcpStream::connect(addr).unwrap());
        let _ = stream.write_all(b"word");
        assert!(stream.read_exact(&mut [0; 4]).is_err());
        accepted.join().unwrap()
    });
    assert!(accepted.is_err());
}

fn believing((certificate, _): Pair) -> tokio_rustls::rustls::RootCertStore {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate).unwrap();
    roots(file.path()).unwrap()
}

#[test]
fn certificates_and_authorities_that_change_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (files, authority) = put(&folder, ONE, &[ONE]);
    let changes = MutualTls::open(files, &authority).unwrap();
    let two = side(TWO, &[TWO]);
    assert!(meet(&changes, &two, "localhost").0.is_err());
    let later = |times| Instant::now() + times * LOOK_EVERY;
    std::fs::write(folder.path().join("k.pem"), TWO.1).unwrap();
    changes.look(later(1));
    assert!(meet(&changes, &side(TWO, &[ONE]), "localhost").0.is_err(), "it believes itself only");
    put(&folder, TWO, &[TWO]);
    changes.look(later(2));
    assert!(meet(&changes, &two, "localhost").0.unwrap());
}
