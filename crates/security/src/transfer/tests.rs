use super::*;
use crate::cipher::StreamCipher;
use proptest::prelude::*;

const RANDOM: ServerRandom =
    ServerRandom { nonce: [1; NONCE_LEN], keys: [[2; 32], [3; 32]], ivs: [[4; 16], [5; 16]] };

fn policy(protections: &[Protection], has_aes: bool) -> TransferPolicy {
    TransferPolicy { protections: protections.to_vec(), by_key: false, has_aes, key_len: 16 }
}

fn token() -> Shown {
    let (identifier, password) = (b"identifier".to_vec(), b"password".to_vec());
    Shown::Token(TokenProto { identifier, password, ..TokenProto::default() })
}

fn key() -> Shown {
    Shown::Key(DataEncryptionKeyProto {
        key_id: -5i32 as u32,
        block_pool_id: "BP-1".into(),
        nonce: vec![7; 8],
        encryption_key: b"password".to_vec(),
        ..DataEncryptionKeyProto::default()
    })
}

fn known(user: &User) -> Result<Vec<u8>, Unknown> {
    let key = User::Key { key_id: -5, pool: "BP-1".into(), nonce: vec![7; 8] };
    match user {
        User::Token(identifier) if identifier == b"identifier" => Ok(b"password".to_vec()),
        user if *user == key => Ok(b"password".to_vec()),
        User::Token(_) => Err(Unknown::Token(InvalidToken("no such token".into()))),
        User::Key { .. } => Err(Unknown::Key("no such key".into())),
    }
}

/// Both ends of the channel, or what one side says to the other.
fn exchange(
    server: TransferPolicy,
    client: &TransferPolicy,
    shown: &Shown,
) -> Result<(Channel, Channel), Unknown> {
    let mut server = TransferServer::new(server, RANDOM);
    let (mut client, mut message) = TransferClient::begin(client, shown, [9; NONCE_LEN]);
    loop {
        let (reply, done) = match server.take(&message, known) {
            Ok(ServerStep::Reply(reply)) => (reply, None),
            Ok(ServerStep::Done(reply, channel)) => (reply, Some(channel)),
            Err(unknown) => (unknown.message(), None),
        };
        match client.take(&reply)? {
            TransferStep::Send(next) => message = next,
            TransferStep::Done(channel) => return Ok((done.expect("the server is done"), channel)),
        }
    }
}

fn passes(one: &Channel, other: &Channel) {
    let (Channel::Aes { seal, .. }, Channel::Aes { open, .. }) = (one, other) else {
        panic!("{one:?} and {other:?}");
    };
    let (mut seal, mut open) = (StreamCipher::new(seal).unwrap(), StreamCipher::new(open).unwrap());
    let mut bytes = b"some bytes".repeat(100);
    let (first, second) = bytes.split_at_mut(333);
    seal.apply(first);
    seal.apply(second);
    assert_ne!(bytes, b"some bytes".repeat(100));
    open.apply(&mut bytes);
    assert_eq!(bytes, b"some bytes".repeat(100));
}

#[test]
fn both_sides_agree() {
    use Protection::{Authentication, Integrity, Privacy};
    for protection in Protection::ALL {
        for shown in [token(), key()] {
            let by_key = matches!(shown, Shown::Key(_));
            if by_key && protection != Privacy {
                continue;
            }
            let server = TransferPolicy { by_key, ..policy(&Protection::ALL, false) };
            let (server, client) = exchange(server, &policy(&[protection], true), &shown).unwrap();
            match protection {
                Authentication => {
                    assert!(matches!((server, client), (Channel::Plain, Channel::Plain)));
                }
                Integrity | Privacy => {
                    let (Channel::Enclosed(mut one), Channel::Enclosed(mut other)) =
                        (server, client)
                    else {
                        panic!("nothing is enclosed");
                    };
                    let sealed = one.seal.seal(b"bytes").unwrap();
                    assert_eq!(other.open.open(&sealed).unwrap(), b"bytes");
                }
            }
        }
    }
    for (shown, key_len) in [(token(), 16), (key(), 24), (token(), 32)] {
        let by_key = matches!(shown, Shown::Key(_));
        let server = TransferPolicy { by_key, key_len, ..policy(&[Privacy], true) };
        let (server, client) = exchange(server, &policy(&[Privacy], true), &shown).unwrap();
        passes(&server, &client);
        passes(&client, &server);
    }
    // AES takes both.
    let (server, _) =
        exchange(policy(&[Privacy], true), &policy(&[Privacy], false), &token()).unwrap();
    assert!(matches!(server, Channel::Enclosed(_)));
}

#[test]
fn less_than_is_asked_for_is_refused_and_so_is_who_is_unknown() {
    use Protection::{Authentication, Privacy};
    let own = policy(&[Privacy], true);
    assert!(exchange(own.clone(), &policy(&[Authentication], true), &token()).is_err());
    assert!(exchange(policy(&[Authentication], true), &own, &token()).is_err());
    let other = TokenProto { identifier: b"other".to_vec(), ..TokenProto::default() };
    let refused = exchange(own.clone(), &own, &Shown::Token(other)).unwrap_err();
    assert_eq!(refused, Unknown::Token(InvalidToken("no such token".into())));
    let by_key = TransferPolicy { by_key: true, ..own.clone() };
    let Shown::Key(mut wrong) = key() else { panic!("a key") };
    wrong.key_id = 6;
    let refused = exchange(by_key.clone(), &own, &Shown::Key(wrong.clone())).unwrap_err();
    assert_eq!(refused, Unknown::Key("no such key".into()));
    (wrong.key_id, wrong.encryption_key) = (-5i32 as u32, b"guessed".to_vec());
    let refused = exchange(by_key.clone(), &own, &Shown::Key(wrong)).unwrap_err();
    assert!(refused.to_string().contains("Mismatched response"), "{refused}");
    // A token where a key is wanted, and the other way round.
    assert!(exchange(by_key, &own, &token()).is_err());
    assert!(exchange(own.clone(), &own, &key()).is_err());
    // The known mistake: a server that takes what a client says that was agreed on elsewhere.
    let mut server = TransferServer::new(own, RANDOM);
    let secret = cairn_wire::proto::hdfs::HandshakeSecretProto {
        secret: b"auth".to_vec(),
        bpid: "BP-1".into(),
    };
    let first =
        DataTransferEncryptorMessageProto { handshake_secret: Some(secret), ..reply(Vec::new()) };
    assert!(server.take(&first, known).is_err());
}

proptest! {
    #[test]
    fn any_message_is_taken_or_refused(
        status in 0i32..3, bytes: Vec<u8>, suite in 0i32..4, keys: [Vec<u8>; 4], is_first: bool,
    ) {
        let [in_key, in_iv, out_key, out_iv] = keys.map(Some);
        let message = DataTransferEncryptorMessageProto {
            status,
            payload: Some(bytes),
            cipher_option: vec![CipherOptionProto { suite, in_key, in_iv, out_key, out_iv }],
            ..DataTransferEncryptorMessageProto::default()
        };
        let own = policy(&Protection::ALL, true);
        let mut server = TransferServer::new(own.clone(), RANDOM);
        let (mut client, first) = TransferClient::begin(&own, &token(), [9; NONCE_LEN]);
        let reply = server.take(&first, known);
        if !is_first && let Ok(ServerStep::Reply(reply)) = reply {
            prop_assert!(client.take(&reply).is_ok());
        }
        prop_assert!(client.take(&message).is_err());
        let done = server.take(&message, known);
        prop_assert!(!matches!(done, Ok(ServerStep::Done(..))));
    }
}
