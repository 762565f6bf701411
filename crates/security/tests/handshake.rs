//! Both sides of an exchange with each other, and with peers that keep to nothing.

use std::sync::atomic::{AtomicU32, Ordering};

use cairn_security::client::{ClientHandshake, ClientStep, Credentials};
use cairn_security::digest_md5::Secret;
use cairn_security::gssapi::Context;
use cairn_security::sasl::Layer;
use cairn_security::server::{Authority, Identity, Offers, ServerHandshake, Step, delegation};
use cairn_security::token::{self, DelegationTokenId};
use cairn_security::{Protection, SaslError};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{RpcSaslProto, RpcSaslProtoSaslState as State};
use proptest::prelude::*;

const KEY: &[u8] = b"master key";

/// A context whose tokens say who sends them.
struct Toy {
    is_client: bool,
    steps: u32,
    sent: u8,
    opened: u8,
}

impl Toy {
    fn boxed(is_client: bool) -> Box<dyn Context> {
        Box::new(Toy { is_client, steps: 0, sent: 0, opened: 0 })
    }
}

impl Context for Toy {
    fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
        self.steps += 1;
        match (self.is_client, self.steps, token) {
            (true, 1, b"") => Ok(Some(b"ticket".to_vec())),
            (true, 2, b"mutual") => Ok(None),
            (false, 1, b"ticket") => Ok(Some(b"mutual".to_vec())),
            _ => Err(SaslError::new("Defective token")),
        }
    }

    fn is_established(&self) -> bool {
        self.steps == if self.is_client { 2 } else { 1 }
    }

    fn peer(&self) -> Result<String, SaslError> {
        Ok("ann@EXAMPLE.COM".to_owned())
    }

    fn wrap(&mut self, confidential: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
        self.sent += 1;
        let mask = if confidential { 0x55 } else { 0 };
        let mut out = vec![self.sent, mask];
        out.extend(message.iter().map(|byte| byte ^ mask));
        Ok(out)
    }

    fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        self.opened += 1;
        match sealed {
            [number, mask, rest @ ..] if *number == self.opened => {
                Ok(rest.iter().map(|byte| byte ^ mask).collect())
            }
            _ => Err(SaslError::new("A later token has already been processed")),
        }
    }
}

struct Server {
    offers: Offers,
    accepted: AtomicU32,
}

impl Authority for Server {
    fn offers(&self) -> &Offers {
        &self.offers
    }

    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
        let id = delegation(identifier)?;
        if id.sequence == 13 {
            return Err(RemoteException::new(class::INVALID_TOKEN, "gone"));
        }
        let password = token::password(identifier, KEY);
        Ok((Identity::Token(id), password))
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        Ok(principal.to_owned())
    }

    fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Ok(Toy::boxed(false))
    }
}

fn server(protections: &[Protection]) -> Server {
    let (service, host) = ("nn".to_owned(), "host".to_owned());
    let offers = Offers::Secure { service, host, protections: protections.to_vec() };
    Server { offers, accepted: AtomicU32::new(0) }
}

struct Client {
    token: Option<Secret>,
    has_ticket: bool,
    protections: Vec<Protection>,
    allows_simple: bool,
}

impl Credentials for Client {
    fn token(&self) -> Option<Secret> {
        self.token.clone()
    }

    fn initiate(&self, service: &str, host: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
        assert_eq!((service, host), ("nn", "host"));
        Ok(self.has_ticket.then(|| Toy::boxed(true)))
    }

    fn protections(&self) -> &[Protection] {
        &self.protections
    }

    fn allows_simple(&self) -> bool {
        self.allows_simple
    }
}

fn with_ticket(protections: &[Protection]) -> Client {
    let protections = protections.to_vec();
    Client { token: None, has_ticket: true, protections, allows_simple: false }
}

fn id(sequence: i32) -> DelegationTokenId {
    DelegationTokenId { owner: "ann@EXAMPLE.COM".into(), sequence, ..DelegationTokenId::default() }
}

fn with_token(id: &DelegationTokenId, protections: &[Protection]) -> Client {
    let identifier = id.encode();
    let password = token::password(&identifier, KEY);
    let token = Some(Secret { identifier, password });
    Client { token, has_ticket: false, ..with_ticket(protections) }
}

type Known = (Option<Identity>, Option<Layer>, Option<Layer>);

/// Lets them speak; who each is to the other at the end, or what the one says that breaks it off.
fn speak(client: &Client, server: &Server) -> Result<Known, String> {
    let (mut one, first) = ClientHandshake::begin([1; 30]);
    let mut other = ServerHandshake::new([2; 30]);
    let mut message = first;
    loop {
        // Who begins with a token names it, before it is judged.
        let begins = client.token.as_ref().filter(|_| !message.auths.is_empty());
        let named = begins.map(|token| token.identifier.clone());
        assert_eq!(other.token_named(&message), named);
        let step = other.take(message, server).map_err(|error| error.to_string())?;
        let (reply, known) = match step {
            Step::Reply(reply) => (reply, None),
            Step::Simple(reply) => (reply.unwrap_or_default(), Some((None, None))),
            Step::Done(reply, identity, layer) => (reply, Some((Some(identity), layer))),
        };
        match one.take(reply, client).map_err(|error| error.to_string())? {
            ClientStep::Send(next) if known.is_none() => message = next,
            ClientStep::Send(_) => panic!("the server has said its last word"),
            ClientStep::Simple => return Ok((None, None, None)),
            ClientStep::Done(layer) => {
                let (identity, server_layer) = known.expect("both are done");
                return Ok((identity, layer, server_layer));
            }
        }
    }
}

#[test]
fn tickets_and_tokens_are_believed_with_each_protection() {
    let ann = || Identity::Kerberos("ann@EXAMPLE.COM".into());
    let cases = [
        (with_ticket as fn(&[Protection]) -> Client, ann()),
        (|protections| with_token(&id(7), protections), Identity::Token(id(7))),
    ];
    for (client, expected) in cases {
        for protection in Protection::ALL {
            let server = server(&[protection]);
            let (identity, one, other) = speak(&client(&Protection::ALL), &server).unwrap();
            assert_eq!(identity.as_ref(), Some(&expected));
            assert_eq!(one.is_some(), protection != Protection::Authentication);
            assert_eq!(one.is_some(), other.is_some());
            let Some((mut one, mut other)) = one.zip(other) else { continue };
            assert!(one.seal.plain_max() > 60_000 && one.seal.plain_max() < 65_536);
            for text in [&b"one"[..], b"two"] {
                let sealed = one.seal.seal(text).unwrap();
                assert_eq!(other.open.open(&sealed).unwrap(), text);
                let sealed = other.seal.seal(text).unwrap();
                assert_eq!(one.open.open(&sealed).unwrap(), text);
            }
        }
    }
}

#[test]
fn who_wants_most_protection_gets_it() {
    let wanted = [Protection::Privacy, Protection::Authentication];
    let (_, layer, _) = speak(&with_ticket(&wanted), &server(&Protection::ALL)).unwrap();
    assert!(layer.is_some());
    let (_, layer, _) = speak(&with_ticket(&Protection::ALL), &server(&Protection::ALL)).unwrap();
    assert!(layer.is_none());
    for client in [with_ticket(&[Protection::Privacy]), with_token(&id(1), &[Protection::Privacy])]
    {
        let error = speak(&client, &server(&[Protection::Integrity])).unwrap_err();
        assert!(error.contains("No common protection layer"), "{error}");
    }
}

#[test]
fn who_shows_nothing_is_refused() {
    let none = Client { has_ticket: false, ..with_ticket(&Protection::ALL) };
    let error = speak(&none, &server(&Protection::ALL)).unwrap_err();
    assert_eq!(error, "Client cannot authenticate via:[TOKEN, KERBEROS]");
    let mut forged = with_token(&id(1), &Protection::ALL);
    forged.token.as_mut().unwrap().password[0] ^= 1;
    let error = speak(&forged, &server(&Protection::ALL)).unwrap_err();
    assert!(error.ends_with("Mismatched response."), "{error}");
    // The identifier is part of what the password proves.
    let mut forged = with_token(&id(1), &Protection::ALL);
    let root = DelegationTokenId { owner: "root".into(), ..id(1) };
    forged.token.as_mut().unwrap().identifier = root.encode();
    assert!(speak(&forged, &server(&Protection::ALL)).unwrap_err().contains("Mismatched response"));
    let error = speak(&with_token(&id(13), &Protection::ALL), &server(&Protection::ALL));
    assert_eq!(error.unwrap_err(), format!("{}: gone", class::INVALID_TOKEN));
    let mut cut = with_token(&id(1), &Protection::ALL);
    cut.token.as_mut().unwrap().identifier.truncate(5);
    let error = speak(&cut, &server(&Protection::ALL)).unwrap_err();
    assert!(error.ends_with("Can't de-serialize tokenIdentifier"), "{error}");
}

#[test]
fn nobody_is_talked_out_of_security() {
    let open = Server { offers: Offers::Simple, accepted: AtomicU32::new(0) };
    let error = speak(&with_ticket(&Protection::ALL), &open).unwrap_err();
    assert!(error.contains("only allow secure connections"), "{error}");
    let willing = Client { allows_simple: true, ..with_ticket(&Protection::ALL) };
    assert_eq!(speak(&willing, &open).unwrap().0, None);
}

fn message(state: State, token: Option<&[u8]>) -> RpcSaslProto {
    let token = token.map(<[u8]>::to_vec);
    RpcSaslProto { state: state as i32, token, ..RpcSaslProto::default() }
}

#[test]
fn messages_that_do_not_fit_are_refused() {
    let server = server(&Protection::ALL);
    let refused = |messages: &[RpcSaslProto]| {
        let mut handshake = ServerHandshake::new([2; 30]);
        for message in messages {
            if let Err(error) = handshake.take(message.clone(), &server) {
                return error.message;
            }
        }
        panic!("nothing was refused");
    };
    let negotiate = || message(State::Negotiate, None);
    for (messages, expected) in [
        (vec![message(State::Response, Some(b"x"))], "No SASL exchange is going on"),
        (vec![message(State::Success, None)], "Client sent unsupported state SUCCESS"),
        (vec![message(State::Challenge, None)], "Client sent unsupported state CHALLENGE"),
        (vec![message(State::Wrap, None)], "Client sent unsupported state WRAP"),
        (vec![message(State::Initiate, None)], "Client mechanism is malformed"),
        (vec![negotiate(), negotiate()], "Client already attempted negotiation"),
        (vec![negotiate(), message(State::Response, None)], "Client did not send a token"),
    ] {
        assert_eq!(refused(&messages), expected);
    }
    let wrong = message(State::Response, Some(b"username=x"));
    assert_eq!(
        refused(&[negotiate(), wrong.clone()]),
        "DIGEST-MD5: digest response format violation. Nonexistent realm"
    );
    // Whoever begins anew all the time ends.
    let mut handshake = ServerHandshake::new([2; 30]);
    let Step::Reply(offers) = handshake.take(negotiate(), &server).unwrap() else { panic!() };
    let kerberos = RpcSaslProto {
        auths: vec![offers.auths[1].clone()],
        ..message(State::Initiate, Some(b"ticket"))
    };
    let error = (0..100).find_map(|_| handshake.take(kerberos.clone(), &server).err()).unwrap();
    assert_eq!(error.message, "Too many messages before the client is known");
    assert!(server.accepted.load(Ordering::Relaxed) < 20);
}

#[test]
fn what_is_not_offered_is_not_had() {
    let server = server(&Protection::ALL);
    let mut handshake = ServerHandshake::new([2; 30]);
    let Step::Reply(offers) = handshake.take(message(State::Negotiate, None), &server).unwrap()
    else {
        panic!()
    };
    for change in 0..3 {
        let mut auth = offers.auths[1].clone();
        match change {
            0 => auth.method = "SIMPLE".into(),
            1 => auth.mechanism = String::new(),
            _ => auth.server_id = Some("other".into()),
        }
        let method = auth.method.clone();
        let message =
            RpcSaslProto { auths: vec![auth], ..message(State::Initiate, Some(b"ticket")) };
        let error = handshake.take(message, &server).unwrap_err();
        let expected =
            format!("{method} authentication is not enabled.  Available:[TOKEN, KERBEROS]");
        assert_eq!(error.message, expected);
    }
}

proptest! {
    #[test]
    fn no_token_of_any_bytes_is_believed(
        state in 0..6i32, token: Option<Vec<u8>>, which in 0..3usize, begun: bool,
    ) {
        let server = server(&Protection::ALL);
        let mut handshake = ServerHandshake::new([2; 30]);
        let mut auths = Vec::new();
        if begun {
            let first = handshake.take(message(State::Negotiate, None), &server).unwrap();
            let Step::Reply(offers) = first else { panic!() };
            auths = offers.auths.into_iter().take(which).collect();
            auths.iter_mut().for_each(|auth| auth.challenge = None);
        }
        let message = RpcSaslProto { state, token, auths, version: None };
        let step = handshake.take(message, &server);
        prop_assert!(!matches!(step, Ok(Step::Done(..) | Step::Simple(_))));
    }
}
