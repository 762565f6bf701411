//! What is read of peers before anybody knows who they are: tokens, what is said by SASL, and requests for pages. Nothing
//! panics, and whoever has no secret is not let in.
//!
//! Each function is a fuzz target, and `cargo test -p cairn-net` runs it over fixed bytes
//! (`crates/net/tests/any_bytes.rs` includes this file).

use bytes::Bytes;
use cairn_net::http::{Method, Request, percent_encode};
use cairn_security::auth_cookie::{self, AuthCookie};
use cairn_security::block_token::{BlockTokenId, Form};
use cairn_security::digest_md5::{DigestClient, DigestServer, NONCE_LEN, Secret, Service};
use cairn_security::gssapi::Context;
use cairn_security::kerberos_name::KerberosName;
use cairn_security::server::{Authority, Identity, Offers, ServerHandshake, Step, delegation};
use cairn_security::token::DelegationTokenId;
use cairn_security::transfer::{
    ServerRandom, ServerStep, Shown, TransferClient, TransferPolicy, TransferServer, TransferStep,
};
use cairn_security::{Protection, SaslError};
use cairn_wire::RemoteException;
use cairn_wire::proto::common::{RpcSaslProto, TokenProto};
use cairn_wire::proto::hdfs::DataTransferEncryptorMessageProto;
use cairn_wire::rpc::take_delimited;
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

/// The token by which the context of [`Knower`] knows who is there.
pub const TICKET: &[u8] = b"a ticket";

/// Knows tokens that nobody has the passwords of, and one ticket.
struct Knower(Offers);

impl Authority for Knower {
    fn offers(&self) -> &Offers {
        &self.0
    }

    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
        Ok((Identity::Token(delegation(identifier)?), b"a secret".to_vec()))
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        Ok(KerberosName::parse(principal)?.service)
    }

    fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
        Ok(Box::new(Ticket(false)))
    }
}

/// A context that is there once it was shown the ticket, and encloses nothing.
struct Ticket(bool);

impl Context for Ticket {
    fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
        self.0 = token == TICKET;
        Ok(Some(b"an answer".to_vec()))
    }

    fn is_established(&self) -> bool {
        self.0
    }

    fn peer(&self) -> Result<String, SaslError> {
        if self.0 { Ok("ann@R".to_owned()) } else { Err(SaslError::new("nobody")) }
    }

    fn wrap(&mut self, _: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
        Ok(message.to_vec())
    }

    fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        Ok(sealed.to_vec())
    }
}

/// What a client says on one connection of RPC until it is known, message by message.
pub fn handshake(data: &[u8]) {
    let secure = Offers::Secure {
        service: "nn".to_owned(),
        host: "host".to_owned(),
        protections: Protection::ALL.to_vec(),
    };
    for offers in [secure, Offers::Tokens] {
        let (authority, mut server) = (Knower(offers), ServerHandshake::new([1; NONCE_LEN]));
        let (mut rest, mut has_ticket) = (Bytes::copy_from_slice(data), false);
        while let Ok(message) = take_delimited::<RpcSaslProto>(&mut rest, "sasl") {
            has_ticket |= message.token.as_deref() == Some(TICKET);
            let _ = server.token_named(&message);
            match server.take(message, &authority) {
                Ok(Step::Reply(_)) => (),
                Ok(Step::Simple(_)) => {
                    assert_eq!(authority.0, Offers::Tokens, "nobody is believed here");
                    break;
                }
                Ok(Step::Done(_, who, _)) => {
                    assert!(has_ticket && who == Identity::Kerberos("ann@R".to_owned()));
                    break;
                }
                Err(_) => break,
            }
        }
    }
}

/// The target of a request for a page, and what is in its headers.
pub fn page(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(request) = Request::new(Method::GET, text) {
        let again = Request::new(Method::GET, &percent_encode(&request.path, true));
        assert_eq!(again.map(|request| request.path), Some(request.path));
    }
    let value = auth_cookie::of_header(text).unwrap_or(text);
    assert_eq!(AuthCookie::verify(value, b"a secret", 0), None);
    let _ = KerberosName::parse(text);
}
