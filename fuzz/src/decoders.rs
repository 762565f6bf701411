//! What must hold for any bytes from outside: nothing panics, nothing is allocated for a length
//! that did not arrive, and what was understood means the same when it is written again.
//!
//! Each function is a fuzz target, and `cargo test -p cairn-net` runs it over a fixed set of
//! random and mutated bytes (`crates/net/tests/any_bytes.rs` includes this file).

use bytes::Bytes;
use cairn_wire::meta_file::MetaHeader;
use cairn_wire::proto::common::{IpcConnectionContextProto, RpcResponseHeaderProto, RpcSaslProto};
use cairn_wire::proto::hdfs::{OpReadBlockProto, OpWriteBlockProto, PipelineAckProto};
use cairn_wire::rpc::{self, Preamble, Request};
use cairn_wire::transfer::{self, PacketHeader, PacketLengths};

/// A preamble, or the content of one RPC frame in either direction.
pub fn rpc_frame(data: &[u8]) {
    if let Some(preamble) = data.first_chunk() {
        assert_eq!(&Preamble::decode(*preamble).encode(), preamble);
    }
    if let Some(len) = data.first_chunk() {
        assert!(
            rpc::frame_len(*len, 1000).is_ok_and(|len| len <= 1000)
                || u32::from_be_bytes(*len) > 1000
        );
    }
    let frame = Bytes::copy_from_slice(data);
    if let Ok(request) = Request::decode(frame.clone()) {
        let again = rpc::encode_frame(&request.header, None::<&RpcSaslProto>);
        let again = Request::decode(Bytes::from(again).slice(4..));
        assert_eq!(again.map(|request| request.header).ok(), Some(request.header.clone()));
        let mut rest = request.rest.clone();
        let _ = rpc::take_delimited::<IpcConnectionContextProto>(&mut rest, "context");
        let mut rest = request.rest.clone();
        let _ = rpc::take_delimited::<RpcSaslProto>(&mut rest, "sasl");
        if let Ok((_, body)) = request.split_call() {
            assert!(body.len() < data.len());
        }
    }
    let _ = rpc::take_delimited::<RpcResponseHeaderProto>(&mut frame.clone(), "response");
}

/// An operation and its message.
pub fn transfer_op(data: &[u8]) {
    let Some(head) = data.first_chunk() else { return };
    if let Ok(op) = transfer::decode_op_head(*head) {
        assert_eq!([0, 28, op.code()], *head);
    }
    let mut message = Bytes::copy_from_slice(&data[head.len()..]);
    let _ = rpc::take_delimited::<OpWriteBlockProto>(&mut message.clone(), "write");
    let _ = rpc::take_delimited::<OpReadBlockProto>(&mut message.clone(), "read");
    if let Ok(ack) = rpc::take_delimited::<PipelineAckProto>(&mut message, "ack") {
        let flags = transfer::ack_flags(&ack);
        assert_eq!(flags.len(), if ack.flag.is_empty() { ack.reply.len() } else { ack.flag.len() });
        for flag in flags {
            let _ = (flag.status(), flag.ecn(), flag.slow());
        }
    }
}

/// A packet's lengths and header.
pub fn packet(data: &[u8]) {
    const LIMIT: u32 = 1 << 20;
    if let Ok(header) = PacketHeader::decode(data) {
        // Any header that was understood survives being written.
        if header.data_len < LIMIT {
            let head = header.encode(0);
            assert_eq!(PacketHeader::decode(&head.as_ref()[6..]).ok(), Some(header));
        }
    }
    let Some(head) = data.first_chunk() else { return };
    if let Ok(lengths) = PacketLengths::decode(*head, LIMIT) {
        assert!(lengths.total_len() <= LIMIT as usize + transfer::PACKET_LENGTHS_LEN);
        if let Some(Ok(header)) = data.get(6..6 + lengths.header_len).map(PacketHeader::decode)
            && let Ok(checksums) = lengths.checksums_len(header.data_len)
        {
            assert_eq!(checksums + header.data_len as usize, lengths.body_len);
        }
    }
}

/// The header of a `.meta` file.
pub fn meta_file(data: &[u8]) {
    if let Ok(header) = MetaHeader::decode(data) {
        assert_eq!(&header.encode()[..], &data[..7]);
        let _ = header.file_len(u64::from(u32::MAX));
    }
}
