use super::*;
use proptest::prelude::*;

const SECRET: (&[u8], &[u8]) = (b"identifier \0\xff", b"password \0\xff");

fn secret() -> Secret {
    Secret { identifier: SECRET.0.to_vec(), password: SECRET.1.to_vec() }
}

fn found(identifier: &[u8]) -> Result<(Vec<u8>, ()), SaslError> {
    assert_eq!(identifier, SECRET.0);
    Ok((SECRET.1.to_vec(), ()))
}

/// Both sides after a whole exchange.
fn exchange(protection: Protection) -> Option<(Layer, Layer)> {
    let server = DigestServer::new(Service::RPC, [1; NONCE_LEN], &[protection]);
    let mut client = DigestClient::new(Service::RPC, &secret(), [2; NONCE_LEN], &Protection::ALL);
    let response = client.respond(&server.challenge()).unwrap();
    let verified = server.verify(&response, found).unwrap();
    client.finish(&verified.answer).unwrap().1.zip(verified.layer)
}

#[test]
fn both_sides_agree() {
    assert!(exchange(Protection::Authentication).is_none());
    for protection in [Protection::Integrity, Protection::Privacy] {
        let (mut client, mut server) = exchange(protection).unwrap();
        for text in [&b"first"[..], b"", b"second, and longer"] {
            let sealed = client.seal.seal(text).unwrap();
            let is_open = sealed.windows(text.len().max(1)).any(|part| part == text);
            assert_eq!(is_open, protection == Protection::Integrity && !text.is_empty());
            assert_eq!(server.open.open(&sealed).unwrap(), text);
            let sealed = server.seal.seal(text).unwrap();
            assert_eq!(client.open.open(&sealed).unwrap(), text);
        }
    }
}

#[test]
fn what_is_changed_left_out_or_repeated_is_refused() {
    for protection in [Protection::Integrity, Protection::Privacy] {
        let first = || {
            let (mut client, server) = exchange(protection).unwrap();
            let sealed = [client.seal.seal(b"one").unwrap(), client.seal.seal(b"two").unwrap()];
            (sealed, server)
        };
        let ([one, two], mut server) = first();
        assert!(server.open.open(&two).is_err());
        server.open.open(&one).unwrap();
        assert!(server.open.open(&one).is_err());
        server.open.open(&two).unwrap();
        for at in 0..one.len() {
            let ([mut one, _], mut server) = first();
            one[at] ^= 1;
            assert!(server.open.open(&one).is_err(), "byte {at}");
            let ([one, _], mut server) = first();
            assert!(server.open.open(&one[..at]).is_err(), "{at} bytes");
        }
    }
}

#[test]
fn who_does_not_know_the_password_is_refused() {
    let server = DigestServer::new(Service::RPC, [1; NONCE_LEN], &[Protection::Authentication]);
    let wrong = Secret { password: b"guessed".to_vec(), ..secret() };
    let mut client = DigestClient::new(Service::RPC, &wrong, [2; NONCE_LEN], &Protection::ALL);
    let response = client.respond(&server.challenge()).unwrap();
    let error = server.verify(&response, found).unwrap_err();
    assert!(error.0.ends_with("Mismatched response."), "{error}");
    // A response to another challenge.
    let mut client = DigestClient::new(Service::RPC, &secret(), [2; NONCE_LEN], &Protection::ALL);
    let response = client.respond(&server.challenge()).unwrap();
    let other = DigestServer::new(Service::RPC, [3; NONCE_LEN], &[Protection::Authentication]);
    assert!(other.verify(&response, found).unwrap_err().0.ends_with("Mismatched nonce."));
    assert!(client.finish(b"rspauth=0123456789abcdef0123456789abcdef").is_err());
}

#[test]
fn less_protection_than_offered_is_refused() {
    let server = DigestServer::new(Service::RPC, [1; NONCE_LEN], &[Protection::Privacy]);
    let open = DigestServer::new(Service::RPC, [1; NONCE_LEN], &Protection::ALL);
    let challenge = open.challenge();
    for protection in [Protection::Authentication, Protection::Integrity] {
        // Somebody in between has made the challenge offer less.
        let mut client = DigestClient::new(Service::RPC, &secret(), [2; NONCE_LEN], &[protection]);
        let response = client.respond(&challenge).unwrap();
        assert!(server.verify(&response, found).is_err());
        let mut client = DigestClient::new(Service::RPC, &secret(), [2; NONCE_LEN], &[protection]);
        assert!(client.respond(&server.challenge()).is_err());
    }
}

#[test]
fn a_response_that_is_cut_off_is_refused() {
    let server = DigestServer::new(Service::RPC, [1; NONCE_LEN], &Protection::ALL);
    let mut client =
        DigestClient::new(Service::RPC, &secret(), [2; NONCE_LEN], &[Protection::Privacy]);
    let response = client.respond(&server.challenge()).unwrap();
    for len in 0..response.len() {
        let found = |_: &[u8]| Ok((SECRET.1.to_vec(), ()));
        let verified: Result<Verified<()>, SaslError> = server.verify(&response[..len], found);
        assert!(verified.is_err(), "{len} of {} bytes", response.len());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes: Vec<u8>) {
        let server = DigestServer::new(Service::RPC, [1; NONCE_LEN], &Protection::ALL);
        let found = |_: &[u8]| Ok((SECRET.1.to_vec(), ()));
        let verified: Result<Verified<()>, SaslError> = server.verify(&bytes, found);
        prop_assert!(verified.is_err());
        let mut client = DigestClient::new(Service::RPC, &secret(), [2; NONCE_LEN], &Protection::ALL);
        let _ = client.respond(&bytes);
        prop_assert!(client.finish(&bytes).is_err());
        for layer in exchange(Protection::Privacy).into_iter().flat_map(|(one, other)| [one, other]) {
            let mut open = layer.open;
            prop_assert!(open.open(&bytes).is_err());
        }
    }
}
