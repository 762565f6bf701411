//! What is read of peers before anybody knows who they are: tokens, and what is said by SASL. Nothing panics, and whoever
//! has no secret is not let in.
//!
//! Each function is a fuzz target, and `cargo test -p cairn-security` runs it over fixed bytes
//! (`crates/security/tests/any_bytes.rs` includes this file).

use cairn_security::block_token::{BlockTokenId, Form};
use cairn_security::digest_md5::{DigestClient, DigestServer, NONCE_LEN, Secret, Service};
use cairn_security::token::DelegationTokenId;
use cairn_security::transfer::{
    ServerRandom, ServerStep, Shown, TransferClient, TransferPolicy, TransferServer, TransferStep,
};
use cairn_security::{Protection, SaslError};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::DataTransferEncryptorMessageProto;
use prost::Message;

/// Identifiers of tokens.
pub fn token(data: &[u8]) {
    if let Ok(id) = BlockTokenId::decode(data) {
        assert!(id.to_string().starts_with("block_token_identifier"));
        assert_eq!(BlockTokenId::decode(&id.encode(Form::Protobuf)).ok(), Some(id));
    }
    if let Ok(id) = DelegationTokenId::decode(data) {
        assert_eq!(DelegationTokenId::decode(&id.encode()).ok(), Some(id));
    }
}

/// What either side of DIGEST-MD5 is told, and a message of a data port's handshake.
pub fn sasl(data: &[u8]) {
    let nonce = [1; NONCE_LEN];
    let password = || Ok::<_, SaslError>((b"a secret".to_vec(), ()));
    let server = DigestServer::new(Service::RPC, nonce, &Protection::ALL);
    assert!(server.verify(data, |_| password()).is_err());
    let secret = Secret { identifier: b"who".to_vec(), password: b"a secret".to_vec() };
    let client = || DigestClient::new(Service::RPC, &secret, nonce, &Protection::ALL);
    let _ = client().respond(data);
    let mut client = client();
    assert!(client.respond(&server.challenge()).is_ok() && client.finish(data).is_err());
    let Ok(message) = DataTransferEncryptorMessageProto::decode(data) else { return };
    let policy = TransferPolicy {
        protections: Protection::ALL.to_vec(),
        by_key: false,
        has_aes: true,
        key_len: 16,
    };
    let random = ServerRandom { nonce, keys: [[2; 32]; 2], ivs: [[3; 16]; 2] };
    let mut server = TransferServer::new(policy.clone(), random);
    for _ in 0..2 {
        let step = server.take(&message, |_| Ok(b"a secret".to_vec()));
        assert!(!matches!(step, Ok(ServerStep::Done(..))));
    }
    let shown = Shown::Token(TokenProto::default());
    let (mut client, _) = TransferClient::begin(&policy, &shown, nonce);
    for _ in 0..2 {
        assert!(!matches!(client.take(&message), Ok(TransferStep::Done(_))));
    }
}
