use super::*;
use crate::proto::hdfs::ClientReadStatusProto;

#[test]
fn operation_bytes() {
    let status = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
    assert_eq!(encode_op(Op::ReadBlock, &status), [0, 28, 81, 2, 0x08, 6]);
}

#[test]
fn operation_heads() {
    for code in 0..=u8::MAX {
        let op = decode_op_head([0, 28, code]).ok();
        assert_eq!(op.is_some(), (80..=90).contains(&code), "{code}");
        assert_eq!(op.map(Op::code), op.map(|_| code));
    }
    let error = decode_op_head([0, 27, 81]).expect_err("another version");
    assert_eq!(error.to_string(), "Version Mismatch (Expected: 28, Received: 27 )");
    // What a client with SASL starts with.
    let error = decode_op_head([0xde, 0xad, 0xbe]).expect_err("no version at all");
    assert_eq!(error.to_string(), "Version Mismatch (Expected: 28, Received: -8531 )");
}

/// Built from the layout: i32 length, i16 length, then fields of fixed width, little-endian.
#[test]
fn packet_head_bytes() {
    let header = PacketHeader {
        offset_in_block: 0x0102_0304_0506,
        seqno: 7,
        last_packet: false,
        data_len: 65_024,
        sync_block: false,
    };
    let expected: &[u8] = &[
        0x00, 0x00, 0xff, 0x00, // 4 + 508 + 65024 - 256
        0x00, 0x19, // 25
        0x09, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x00, 0x00, // offsetInBlock, sfixed64
        0x11, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // seqno, sfixed64
        0x18, 0x00, // lastPacketInBlock, bool
        0x25, 0x00, 0xfe, 0x00, 0x00, // dataLen, sfixed32
    ];
    let head = header.encode(252);
    assert_eq!(head.as_ref(), expected);

    let last = PacketHeader { last_packet: true, data_len: 0, sync_block: true, ..header };
    let head = last.encode(0);
    assert_eq!(head.as_ref()[..6], [0, 0, 0, 4, 0, 27]);
    assert_eq!(head.as_ref()[24..], [0x18, 1, 0x25, 0, 0, 0, 0, 0x28, 1]);
    assert_eq!(PacketHeader::decode(&head.as_ref()[6..]).expect("a header"), last);
}

/// The hand-made encoding is what the message itself encodes to.
#[test]
fn packet_head_is_the_message() {
    for (offset_in_block, seqno, data_len, flags) in
        [(0, 0, 0, 0), (-1, -1, 1, 1), (i64::MAX, i64::MIN, 0x7fff_0000, 2), (1 << 40, 9, 512, 3)]
    {
        let (last_packet, sync_block) = (flags & 1 != 0, flags & 2 != 0);
        let header = PacketHeader { offset_in_block, seqno, last_packet, data_len, sync_block };
        let message = PacketHeaderProto {
            offset_in_block,
            seqno,
            last_packet_in_block: last_packet,
            data_len: data_len as i32,
            sync_block: sync_block.then_some(true),
        };
        assert_eq!(header.encode(0).as_ref()[6..], message.encode_to_vec());
    }
}

#[test]
fn packet_lengths() {
    let check = |bytes, limit, expected: Option<(usize, usize)>| {
        let lengths = PacketLengths::decode(bytes, limit).ok();
        let actual = lengths.map(|lengths| (lengths.header_len, lengths.body_len));
        assert_eq!(actual, expected, "{bytes:?}");
    };
    check([0, 0, 0, 4, 0, 25], 100, Some((25, 0)));
    check([0, 0, 0, 75, 0, 25], 100, Some((25, 71)));
    check([0, 0, 0, 76, 0, 25], 100, None); // 101 bytes
    check([0, 0, 0, 3, 0, 25], 100, None); // does not count itself
    check([0x80, 0, 0, 0, 0, 25], 100, None); // negative
    check([0, 0, 0, 4, 0x80, 0], 100_000, None); // negative header
    check([0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff], MAX_PACKET_LEN, None);
    let lengths = PacketLengths { header_len: 25, body_len: 10 };
    assert_eq!(lengths.checksums_len(10).ok(), Some(0));
    assert_eq!(lengths.checksums_len(6).ok(), Some(4));
    assert!(lengths.checksums_len(11).is_err());
}

#[test]
fn negative_data_length_is_refused() {
    let message = PacketHeaderProto { data_len: -1, ..Default::default() };
    let error = PacketHeader::decode(&message.encode_to_vec()).expect_err("a negative length");
    assert_eq!(error.to_string(), "packet data length: invalid value -1");
}

#[test]
fn packets_in_order() {
    let header = |seqno, data_len, last_packet| PacketHeader {
        seqno,
        data_len,
        last_packet,
        ..PacketHeader::heartbeat()
    };
    assert!(header(0, 5, false).follows(-1));
    assert!(header(1, 0, true).follows(0));
    assert!(!header(1, 0, false).follows(0));
    assert!(!header(1, 5, true).follows(0));
    assert!(!header(2, 5, false).follows(0));
    assert!(!header(i64::MIN, 5, false).follows(i64::MAX));
}

#[test]
fn acknowledgement_flags() {
    let check = |status, ecn, slow, bits| {
        let flag = AckFlag::new(status, ecn, slow);
        assert_eq!(flag, AckFlag(bits));
        assert_eq!((flag.status(), flag.ecn(), flag.slow()), (status, ecn, slow));
    };
    check(Status::Success, Ecn::Disabled, Slow::Disabled, 0);
    check(Status::ErrorChecksum, Ecn::Supported, Slow::Normal, 2 | 1 << 5 | 1 << 7);
    check(Status::InProgress, Ecn::Congested, Slow::Reserved, 12 | 3 << 5 | 3 << 7);
    check(Status::OobRestart, Ecn::Supported2, Slow::Slow, 8 | 2 << 5 | 2 << 7);
    assert_eq!(AckFlag(0xf).status(), Status::Error);
}

#[test]
fn acknowledgement_bytes() {
    let congested = AckFlag::new(Status::Success, Ecn::Congested, Slow::Disabled);
    let ack = pipeline_ack(3, [Status::Success.into(), congested], 0);
    // seqno zigzag, replies one by one, nanos, flags packed.
    let expected = [0x08, 6, 0x10, 0, 0x10, 0, 0x18, 0, 0x22, 2, 0, 0x60];
    assert_eq!(ack.encode_to_vec(), expected);
    assert!(ack_is_success(&ack));
    assert_eq!(ack_flags(&ack), [AckFlag(0), congested]);
    let failed = pipeline_ack(3, [Status::Success.into(), Status::Error.into()], 0);
    assert!(!ack_is_success(&failed));
    let without_flags = PipelineAckProto { flag: Vec::new(), ..failed };
    assert_eq!(ack_flags(&without_flags), [AckFlag(0), AckFlag(1)]);
    assert!(!ack_is_success(&pipeline_ack(0, [], 0)));
}
