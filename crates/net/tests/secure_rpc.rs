//! Client and server that show each other who they are, by tokens, over real sockets with each protection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError, SharedCredentials};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service, respond};
use cairn_security::client::{ClientHandshake, ClientStep, OnlyToken};
use cairn_security::digest_md5::Secret;
use cairn_security::gssapi::Context;
use cairn_security::server::{Authority, Identity, Offers, delegation};
use cairn_security::token::{self, DelegationTokenId};
use cairn_security::{Protection, SaslError};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{RpcResponseHeaderProto, RpcSaslProto};
use cairn_wire::proto::hdfs::GetFileInfoRequestProto;
use cairn_wire::rpc::{self, AuthProtocol, Preamble};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PROTOCOL: &str = "org.example.Echo";
const KEY: &[u8] = b"master key";

struct Echo(Offers);

impl Service for Echo {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let request: GetFileInfoRequestProto = call.decode()?;
        let user = &call.user;
        let (real, by) = (user.real.as_deref().unwrap_or("-"), user.by.name());
        let src = format!("{}/{real}/{by}/{}", user.effective, request.src);
        respond(&GetFileInfoRequestProto { src })
    }

    fn authority(&self) -> Option<&dyn Authority> {
        Some(self)
    }
}

impl Authority for Echo {
    fn offers(&self) -> &Offers {
        &self.0
    }

    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
        let id = delegation(identifier)?;
        Ok((Identity::Token(id), token::password(identifier, KEY)))
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        let user = principal.split_once('@').map(|(user, _)| user.to_owned());
        user.ok_or_else(|| SaslError::new("no realm"))
    }

    fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
        Err(SaslError::new("no Kerberos here"))
    }
}

async fn start(protections: &[Protection]) -> SocketAddr {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = RpcServer::bind(any, RpcServerOptions::default()).await.expect("a port");
    let addr = server.local_addr();
    let (service, host) = ("nn".to_owned(), "localhost".to_owned());
    let offers = Offers::Secure { service, host, protections: protections.to_vec() };
    tokio::spawn(server.serve(Arc::new(Echo(offers)), std::future::pending()));
    addr
}

fn holder(protections: &[Protection]) -> OnlyToken {
    let id = DelegationTokenId {
        owner: "ann@EXAMPLE.COM".into(),
        real_user: "oozie@EXAMPLE.COM".into(),
        ..DelegationTokenId::default()
    };
    let identifier = id.encode();
    let password = token::password(&identifier, KEY);
    OnlyToken { secret: Secret { identifier, password }, protections: protections.to_vec() }
}

fn client(addr: SocketAddr, holder: Option<OnlyToken>) -> RpcClient {
    let credentials = holder.map(|holder| SharedCredentials(Arc::new(holder)));
    let options = RpcClientOptions { credentials, ..RpcClientOptions::default() };
    RpcClient::new(addr, PROTOCOL, "bob", options)
}

async fn echo(client: &RpcClient, src: String) -> Result<String, RpcError> {
    let answer = client.call("echo", &GetFileInfoRequestProto { src }).await;
    answer.map(|answer: GetFileInfoRequestProto| answer.src)
}

#[tokio::test]
async fn tokens_are_used_with_each_protection() {
    for protection in Protection::ALL {
        let addr = start(&[protection]).await;
        let client = client(addr, Some(holder(&Protection::ALL)));
        // Long ones take several messages of SASL each way.
        let calls: Vec<_> = [0, 1, 100, 70_000, 1 << 20, 5, 300_000]
            .into_iter()
            .map(|len| {
                let client = client.clone();
                tokio::spawn(async move {
                    let text = "x".repeat(len);
                    let answer = echo(&client, text.clone()).await.expect("an answer");
                    assert_eq!(answer, format!("ann/oozie/TOKEN/{text}"));
                })
            })
            .collect();
        for call in calls {
            call.await.expect("no panic");
        }
    }
}

#[tokio::test]
async fn who_shows_nothing_or_too_little_is_refused() {
    let addr = start(&[Protection::Privacy]).await;
    let error = echo(&client(addr, None), "x".into()).await.unwrap_err();
    let told = error.remote().expect("an exception");
    assert_eq!(told.class, class::ACCESS_CONTROL);
    let text = "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]";
    assert_eq!(told.message, text);
    let mut forged = holder(&Protection::ALL);
    forged.secret.password[3] ^= 1;
    for (holder, expected) in [
        (forged, "Mismatched response."),
        (holder(&[Protection::Authentication]), "No common protection layer"),
    ] {
        let error = echo(&client(addr, Some(holder)), "x".into()).await.unwrap_err();
        assert!(error.was_not_sent() && error.to_string().contains(expected), "{error}");
    }
}

/// One that has shown who it is, and says then what it likes.
async fn known(addr: SocketAddr) -> (TcpStream, cairn_security::sasl::Layer) {
    let mut stream = TcpStream::connect(addr).await.expect("the server");
    let auth = AuthProtocol::Sasl.byte();
    stream.write_all(&Preamble { auth, ..Preamble::simple() }.encode()).await.unwrap();
    let (mut handshake, mut next) = ClientHandshake::begin([7; 30]);
    loop {
        let header = rpc::request_header(rpc::CALL_ID_SASL, rpc::RETRY_COUNT_NONE, &[]);
        stream.write_all(&rpc::encode_frame(&header, Some(&next))).await.unwrap();
        let len = stream.read_u32().await.unwrap();
        let mut frame = vec![0; len as usize];
        stream.read_exact(&mut frame).await.unwrap();
        let mut frame = frame.into();
        let _: RpcResponseHeaderProto = rpc::take_delimited(&mut frame, "header").unwrap();
        let message: RpcSaslProto = rpc::take_delimited(&mut frame, "sasl").unwrap();
        match handshake.take(message, &holder(&Protection::ALL)).unwrap() {
            ClientStep::Send(message) => next = message,
            ClientStep::Done(layer) => return (stream, layer.expect("a layer")),
            ClientStep::Simple => panic!("the server is secure"),
        }
    }
}

#[tokio::test]
async fn what_is_not_enclosed_or_was_changed_ends_its_connection() {
    let addr = start(&[Protection::Privacy]).await;
    let header = rpc::request_header(rpc::CALL_ID_PING, rpc::RETRY_COUNT_NONE, &[7; 16]);
    let ping = rpc::encode_frame(&header, None::<&RpcSaslProto>);
    for change in 0..4 {
        let (mut stream, mut layer) = known(addr).await;
        let mut sealed = layer.seal.seal(&ping).unwrap();
        match change {
            0 => stream.write_all(&ping).await.unwrap(),
            1 => sealed[2] ^= 1,
            // It says that it is longer than any frame may be.
            2 => stream.write_all(&u32::to_be_bytes(1 << 30)).await.unwrap(),
            _ => sealed.truncate(3),
        }
        let message = RpcSaslProto { state: 5, token: Some(sealed), ..RpcSaslProto::default() };
        let header = rpc::request_header(rpc::CALL_ID_SASL, rpc::RETRY_COUNT_NONE, &[]);
        // The server may be gone already.
        let _ = stream.write_all(&rpc::encode_frame(&header, Some(&message))).await;
        let ended = tokio::time::timeout(Duration::from_secs(20), async {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        });
        ended.await.expect("the connection is closed");
    }
    // Others go on.
    echo(&client(addr, Some(holder(&Protection::ALL))), "x".into()).await.expect("an answer");
}
