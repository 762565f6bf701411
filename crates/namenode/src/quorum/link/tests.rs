//! The certificates are those of the tests of `cairn-net`: they prove nothing.

use super::*;
use cairn_net::tls::TlsFiles;
use std::net::TcpListener;
use std::path::Path;
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(20);
const OURS: &[u8] = b"the key of a quorum";

/// What a member shows that has that certificate, if any, and believes these.
fn shows(key: &[u8], certificate: Option<(&str, &[&str])>) -> Credentials {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../net/src/tls");
    let tls = certificate.map(|(name, believes)| {
        let at = |end: &str| folder.join(format!("{name}.{end}"));
        let pem =
            |name: &&str| std::fs::read_to_string(folder.join(format!("{name}.pem"))).unwrap();
        let authority = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(authority.path(), believes.iter().map(pem).collect::<String>()).unwrap();
        let files = TlsFiles { certificate: at("pem"), key: at("key") };
        Arc::new(MutualTls::open(files, authority.path()).unwrap())
    });
    Credentials { key: Key::new(key).unwrap(), tls }
}

fn meet(
    ours: &Credentials,
    theirs: &Credentials,
) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let accepts =
            scope.spawn(move || Link::accept(listener.accept().unwrap().0, theirs, PATIENCE));
        let stream = TcpStream::connect(addr).unwrap();
        let connects = Link::connect(stream, "localhost", ours, PATIENCE);
        (connects, accepts.join().unwrap())
    })
}

fn pair(ours: &[u8], theirs: &[u8]) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
    meet(&shows(ours, None), &shows(theirs, None))
}

#[test]
fn members_understand_each_other_and_strangers_are_not_let_in() {
    let certificate = |name| Some((name, &["one", "two"][..]));
    for tls in [[None, None], [certificate("one"), certificate("two")]] {
        let [ours, theirs] = tls;
        let (connects, accepts) = meet(&shows(OURS, ours), &shows(OURS, theirs));
        let (mut connects, mut accepts) = (connects.unwrap(), accepts.unwrap());
        connects.relax(PATIENCE, PATIENCE).unwrap();
        accepts.relax(PATIENCE, PATIENCE).unwrap();
        let long = vec![7; 3 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for bytes in [&b"one"[..], b"", &long, b"three"] {
                    connects.send(bytes).unwrap();
                }
            });
            for bytes in [&b"one"[..], b"", &long, b"three"] {
                assert_eq!(accepts.receive().unwrap(), bytes);
            }
        });
        assert_eq!(accepts.is_of("elsewhere"), ours.is_none());
        assert!(accepts.is_of("localhost") && connects.is_of("127.0.0.1"));
        // The certificate alone does not do.
        let other = shows(b"the key of another one", theirs);
        let (connects, accepts) = meet(&shows(OURS, ours), &other);
        assert!(matches!(connects, Err(LinkError::Stranger)));
        assert!(accepts.is_err());
    }
    assert!(Key::new(b"short").is_none());
}

#[test]
fn who_has_the_key_and_no_certificate_that_is_believed_is_not_let_in() {
    let (one, both) =
        (shows(OURS, Some(("one", &["one"]))), shows(OURS, Some(("two", &["one", "two"]))));
    let (connects, accepts) = meet(&both, &one);
    assert!(matches!(accepts, Err(LinkError::Certificate(_))));
    // Whether what it was told still comes before the end is a matter of chance.
    assert!(matches!(connects, Err(LinkError::Certificate(_) | LinkError::Closed)));
    let (connects, accepts) = meet(&one, &both);
    assert!(matches!(connects, Err(LinkError::Certificate(_))));
    assert!(matches!(accepts, Err(LinkError::Certificate(_) | LinkError::Closed)));
}

#[test]
fn with_and_without_tls_nobody_is_understood_and_both_sides_say_so() {
    let (plain, secure) = (shows(OURS, None), shows(OURS, Some(("one", &["one"]))));
    let (connects, accepts) = meet(&plain, &secure);
    assert!(matches!(connects, Err(LinkError::Closed)));
    assert!(matches!(accepts, Err(LinkError::Plain)));
    let (connects, accepts) = meet(&secure, &plain);
    assert!(matches!(connects, Err(LinkError::Closed)));
    assert!(matches!(accepts, Err(LinkError::Tls)));
}

#[test]
fn who_sends_slowly_does_not_hold_a_connection() {
    for credentials in [shows(OURS, None), shows(OURS, Some(("one", &["one"])))] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        let (patience, began) = (Duration::from_millis(500), Instant::now());
        // A record of a handshake of TLS, as long as they come.
        let bytes = match &credentials.tls {
            Some(_) => vec![22, 3, 1, 0x40, 0],
            None => MAGIC.to_vec(),
        };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for byte in bytes.iter().copied().chain(std::iter::repeat(1)) {
                    std::thread::sleep(Duration::from_millis(20));
                    if slow.write_all(&[byte]).is_err() {
                        return;
                    }
                }
            });
            assert!(Link::accept(stream, &credentials, patience).is_err());
            assert!(began.elapsed() >= patience && began.elapsed() < patience * 8);
        });
    }
}

#[test]
fn a_frame_that_was_changed_or_comes_again_is_not_taken() {
    for (flips, again) in [(true, false), (false, true)] {
        let (connects, accepts) = pair(OURS, OURS);
        let (mut connects, mut accepts) = (connects.unwrap(), accepts.unwrap());
        let mut bytes = connects.proof(0, b"one").to_vec();
        bytes.extend(b"one");
        bytes[33] ^= u8::from(flips);
        let frame = [&3u32.to_le_bytes()[..], &bytes].concat();
        connects.stream.write_all(&frame).unwrap();
        if again {
            assert_eq!(accepts.receive().unwrap(), b"one");
            connects.stream.write_all(&frame).unwrap();
        }
        assert!(matches!(accepts.receive(), Err(LinkError::Forged)));
    }
}
