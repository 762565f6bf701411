//! Runs the fuzz targets about decoders of outside bytes, all that strangers reach among them, without a fuzzer: over valid
//! bytes that are cut, or of which a few have changed, and over any. `cargo xtask fuzz RUNS` has each run longer.

use cairn_security::Protection;
use cairn_security::auth_cookie::{self, AuthCookie};
use cairn_security::block_token::{AccessMode, BlockTokenId, Form};
use cairn_security::digest_md5::{DigestClient, DigestServer, NONCE_LEN, Secret, Service};
use cairn_security::token::DelegationTokenId;
use cairn_wire::meta_file::MetaHeader;
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcSaslProto, RpcSaslProtoSaslAuth as Auth,
    RpcSaslProtoSaslState as State,
};
use cairn_wire::proto::hdfs::{DataTransferEncryptorMessageProto, Status};
use cairn_wire::rpc;
use cairn_wire::transfer::{self, Op, PacketHeader};
use prost::Message;

#[path = "../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../fuzz/src/decoders.rs"]
mod decoders;
#[path = "../../../fuzz/src/strangers.rs"]
mod strangers;

fn check(name: &str, target: fn(&[u8]), valid: &[Vec<u8>]) {
    for sample in valid {
        (0..sample.len()).for_each(|len| target(&sample[..len]));
    }
    changed::check(name, valid, target, 4_000);
}

/// What a client answers to a challenge. It has no password that the targets know.
fn response(service: Service, challenge: &[u8]) -> Vec<u8> {
    let secret = Secret { identifier: delegation().encode(), password: b"another".to_vec() };
    let mut client = DigestClient::new(service, &secret, [7; NONCE_LEN], &Protection::ALL);
    client.respond(challenge).expect("a good challenge")
}

fn delegation() -> DelegationTokenId {
    DelegationTokenId { owner: "ann".into(), ..DelegationTokenId::default() }
}

#[test]
fn rpc_frames() {
    let context = IpcConnectionContextProto {
        protocol: Some("org.apache.hadoop.hdfs.protocol.ClientProtocol".into()),
        ..Default::default()
    };
    let method = RequestHeaderProto { method_name: "mkdirs".into(), ..Default::default() };
    let header = rpc::request_header(7, 0, &[3; 16]);
    let call = rpc::encode_request(&header, &method, &context);
    let setup = rpc::encode_frame(&rpc::request_header(-3, -1, &[3; 16]), Some(&context));
    check("rpc_frame", decoders::rpc_frame, &[call[4..].to_vec(), setup[4..].to_vec()]);
}

#[test]
fn transfer_ops() {
    let ack = transfer::pipeline_ack(5, [Status::Success.into(), Status::ErrorChecksum.into()], 9);
    check("transfer_op", decoders::transfer_op, &[transfer::encode_op(Op::WriteBlock, &ack)]);
}

#[test]
fn packets() {
    let header = PacketHeader { data_len: 3, sync_block: true, ..PacketHeader::heartbeat() };
    let whole = [header.encode(4).as_ref(), &[1, 2, 3, 4, 5, 6, 7]].concat();
    check("packet", decoders::packet, &[whole, header.encode(0).as_ref()[6..].to_vec()]);
}

#[test]
fn meta_files() {
    let header = MetaHeader::new(2, 512).expect("a valid header");
    check("meta_file", decoders::meta_file, &[header.encode().to_vec()]);
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
    let forms = [id.encode(Form::Legacy), id.encode(Form::Protobuf), delegation().encode()];
    check("token", strangers::token, &forms);
}

#[test]
fn sasl() {
    let challenge =
        DigestServer::new(Service::TRANSFER, [7; NONCE_LEN], &Protection::ALL).challenge();
    let response = response(Service::TRANSFER, &challenge);
    let message = DataTransferEncryptorMessageProto {
        payload: Some(response.clone()),
        ..DataTransferEncryptorMessageProto::default()
    };
    check("sasl", strangers::sasl, &[challenge, response, message.encode_to_vec()]);
}

#[test]
fn handshakes() {
    let say = |state: State, auth: Option<(&str, &str, &str, &str)>, token: Option<&[u8]>| {
        let auths = auth.map(|(method, mechanism, protocol, server)| Auth {
            method: method.into(),
            mechanism: mechanism.into(),
            protocol: Some(protocol.into()),
            server_id: Some(server.into()),
            challenge: None,
        });
        RpcSaslProto {
            state: state as i32,
            auths: auths.into_iter().collect(),
            token: token.map(<[u8]>::to_vec),
            ..RpcSaslProto::default()
        }
        .encode_length_delimited_to_vec()
    };
    let challenge = DigestServer::new(Service::RPC, [1; NONCE_LEN], &Protection::ALL).challenge();
    let response = response(Service::RPC, &challenge);
    let ask = say(State::Negotiate, None, None);
    let token = ("TOKEN", "DIGEST-MD5", "", "default");
    let with_token = say(State::Initiate, Some(token), Some(&response));
    let kerberos = ("KERBEROS", "GSSAPI", "nn", "host");
    let with_ticket = [
        say(State::Initiate, Some(kerberos), Some(strangers::TICKET)),
        say(State::Response, None, Some(b"")),
        say(State::Response, None, Some(&[4, 0, 255, 255])),
    ]
    .concat();
    let by_ticket = [ask.clone(), with_ticket.clone()].concat();
    check(
        "handshake",
        strangers::handshake,
        &[[ask.clone(), with_token].concat(), by_ticket, with_ticket, ask],
    );
}

#[test]
fn pages() {
    let ann = AuthCookie { user: "ann".into(), principal: "ann@R".into(), ends_ms: 1 };
    let cookie = ann.sign(b"another secret").expect("a name that can be in a cookie");
    let texts = [
        "/webhdfs/v1/a%20b/c+d?op=OPEN&delegation=AAJhbg&user.name=ann&x".to_owned(),
        format!("a=b; {}=\"{cookie}\"; c=d", auth_cookie::NAME),
        cookie,
        "nn/host@R".to_owned(),
    ];
    check("page", strangers::page, &texts.map(String::into_bytes));
}
