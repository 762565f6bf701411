//! Runs the fuzz targets about strangers over fixed bytes: random ones, and valid ones with a few bytes changed.

use cairn_security::Protection;
use cairn_security::block_token::{AccessMode, BlockTokenId, Form};
use cairn_security::digest_md5::{DigestClient, DigestServer, NONCE_LEN, Secret, Service};
use cairn_security::token::DelegationTokenId;
use cairn_wire::proto::hdfs::DataTransferEncryptorMessageProto;
use prost::Message;

#[path = "../../../fuzz/src/strangers.rs"]
mod targets;

/// A xorshift generator: the same bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn check(target: fn(&[u8]), valid: &[Vec<u8>]) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2_000 {
        let len = random.below(64);
        target(&(0..len).map(|_| random.next() as u8).collect::<Vec<u8>>());
    }
    for sample in valid {
        for len in 0..sample.len() {
            target(&sample[..len]);
        }
        for _ in 0..2_000 {
            let mut bytes = sample.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            target(&bytes);
        }
    }
}

#[test]
fn tokens() {
    let id = BlockTokenId {
        expires_ms: 1 << 40,
        user: Some("ann".into()),
        pool: Some("BP-1".into()),
        modes: AccessMode::ALL.into_iter().collect(),
        storage_types: vec![1, 2],
        storage_ids: vec!["DS-1".into()],
        handshake: b"auth".to_vec(),
        ..BlockTokenId::default()
    };
    let other = DelegationTokenId { owner: "ann".into(), ..DelegationTokenId::default() };
    check(targets::token, &[id.encode(Form::Legacy), id.encode(Form::Protobuf), other.encode()]);
}

#[test]
fn sasl() {
    let nonce = [7; NONCE_LEN];
    let challenge = DigestServer::new(Service::TRANSFER, nonce, &Protection::ALL).challenge();
    let secret = Secret { identifier: b"who".to_vec(), password: b"another".to_vec() };
    let mut client = DigestClient::new(Service::TRANSFER, &secret, nonce, &Protection::ALL);
    let response = client.respond(&challenge).unwrap();
    let message = DataTransferEncryptorMessageProto {
        payload: Some(response.clone()),
        ..DataTransferEncryptorMessageProto::default()
    };
    check(targets::sasl, &[challenge, response, message.encode_to_vec()]);
}
