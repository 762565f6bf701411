use super::*;
use crate::RemoteException;
use crate::exception::class;
use crate::proto::common::{IpcConnectionContextProto, UserInformationProto};
use crate::proto::hdfs::GetFileInfoRequestProto;

/// Expected bytes as hexadecimal words and `"quoted"` ASCII.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        if index % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        for word in part.split_whitespace() {
            out.push(u8::from_str_radix(word, 16).expect("a hexadecimal byte"));
        }
    }
    out
}

#[track_caller]
fn check(actual: &[u8], expected: &str) {
    assert_eq!(actual, bytes(expected), "\n  {actual:02x?}");
}

#[test]
fn preamble_of_a_simple_client() {
    check(&Preamble::simple().encode(), r#" "hrpc" 09 00 00 "#);
    assert_eq!(AuthProtocol::from_byte(0xdf), Some(AuthProtocol::Sasl));
    assert_eq!(AuthProtocol::Sasl.byte(), 0xdf);
    assert_eq!(AuthProtocol::from_byte(1), None);
}

#[test]
fn connection_context_frame() {
    let user = UserInformationProto { effective_user: Some("alice".into()), real_user: None };
    let context = IpcConnectionContextProto { user_info: Some(user), protocol: Some("p.Q".into()) };
    let header = request_header(CALL_ID_CONNECTION_CONTEXT, RETRY_COUNT_NONE, &[0xaa; 2]);
    check(
        &encode_frame(&header, Some(&context)),
        r#"00 00 00 1c  0c 08 02 10 00 18 05 22 02 aa aa 28 01
           0e 12 07 0a 05 "alice" 1a 03 "p.Q" "#,
    );
}

#[test]
fn call_frame() {
    let header = request_header(300, 1, &[0xbb; 1]);
    let method = RequestHeaderProto {
        method_name: "getFileInfo".into(),
        declaring_class_protocol_name: "p.Q".into(),
        client_protocol_version: 1,
    };
    let request = GetFileInfoRequestProto { src: "/a".into() };
    // 300 is 600 as a zigzag number: d8 04.
    check(
        &encode_request(&header, &method, &request),
        r#"00 00 00 27  0c 08 02 10 00 18 d8 04 22 01 bb 28 02
           14 0a 0b "getFileInfo" 12 03 "p.Q" 18 01
           04 0a 02 "/a" "#,
    );
}

#[test]
fn ping_frame() {
    let header = request_header(CALL_ID_PING, RETRY_COUNT_NONE, &[]);
    check(
        &encode_frame(&header, None::<&GetFileInfoRequestProto>),
        "00 00 00 0b  0a 08 02 10 00 18 07 22 00 28 01",
    );
}

#[test]
fn success_frame() {
    let frame = encode_response(&success_header(5, 0, &[0xcc]), Some(&[0x08, 0x01]));
    check(
        &frame.expect("short enough"),
        "00 00 00 0f  0b 08 05 10 00 18 09 3a 01 cc 40 00  02 08 01",
    );
}

#[test]
fn exception_frame() {
    let error = RemoteException::new(class::IO, "no");
    let frame = encode_response(&error_header(5, 0, &[0xcc], &error), None);
    check(
        &frame.expect("short enough"),
        r#"00 00 00 27  26 08 05 10 01 18 09 22 13 "java.io.IOException" 2a 02 "no" 30 01
           3a 01 cc 40 00"#,
    );
}

#[test]
fn special_ids_are_unsigned_in_responses() {
    let header = success_header(CALL_ID_SASL, RETRY_COUNT_NONE, &[]);
    check(
        &encode_response(&header, Some(&[0x10, 0x00])).expect("short enough"),
        "00 00 00 12  0e 08 df ff ff ff 0f 10 00 18 09 3a 00 40 01 02 10 00",
    );
}

#[test]
fn each_old_version_is_told_in_its_own_format() {
    let class = "org.apache.hadoop.ipc.RPC$VersionMismatch";
    let told =
        |version| format!("Server IPC version 9 cannot communicate with client version {version}");
    let old = |start: &str, version| {
        let mut expected = bytes(start);
        for text in [class, &told(version)] {
            expected.extend((text.len() as u32).to_be_bytes());
            expected.extend(text.bytes());
        }
        expected
    };
    for version in [i8::MIN, -1, 0, 1] {
        assert!(version_mismatch_answer(version).is_empty());
    }
    assert_eq!(version_mismatch_answer(2), old("00 00 00 00 01", 2));
    assert_eq!(version_mismatch_answer(3), old("ff ff ff ff ff ff ff ff", 3));
    assert_eq!(version_mismatch_answer(8), old("ff ff ff ff ff ff ff ff", 8));
    let mut frame = Bytes::from(version_mismatch_answer(10)).slice(4..);
    let header: RpcResponseHeaderProto = take_delimited(&mut frame, "header").expect("a header");
    assert_eq!(header.call_id, u32::MAX);
    assert_eq!(header.status(), RpcResponseHeaderProtoRpcStatusProto::Fatal);
    assert_eq!(header.exception_class_name(), class);
    assert_eq!(header.error_msg(), told(10));
    assert_eq!(
        header.error_detail(),
        RpcResponseHeaderProtoRpcErrorCodeProto::FatalVersionMismatch
    );
    assert!(frame.is_empty());
}

#[test]
fn frame_lengths_outside_the_limit() {
    for (len, taken) in [(0, true), (100, true), (101, false), (-1, false), (i32::MIN, false)] {
        let result = frame_len(i32::to_be_bytes(len), 100);
        assert_eq!(result.ok(), taken.then_some(len as usize), "{len}");
    }
}

#[test]
fn varints() {
    let check = |text: &str, expected| {
        assert_eq!(varint(&bytes(text), "test").map_err(drop), expected, "{text}");
    };
    check("", Ok(None));
    check("80", Ok(None));
    check("80 80 80 80", Ok(None));
    check("00", Ok(Some((0, 1))));
    check("7f ff", Ok(Some((127, 1))));
    check("80 01", Ok(Some((128, 2))));
    check("ff ff ff ff 0f", Ok(Some((u32::MAX.into(), 5))));
    check("ff ff ff ff 1f", Err(()));
    check("80 80 80 80 80", Err(()));
}

#[test]
fn a_frame_cut_anywhere_is_refused() {
    let method = RequestHeaderProto { method_name: "m".into(), ..Default::default() };
    let request = GetFileInfoRequestProto { src: "/a".into() };
    let frame = encode_request(&request_header(1, 0, &[1; 16]), &method, &request);
    let frame = Bytes::from(frame).slice(4..);
    let decode = |frame: Bytes| Request::decode(frame).and_then(Request::split_call);
    let (_, body) = decode(frame.clone()).expect("the whole frame");
    assert_eq!(body, bytes(r#" 0a 02 "/a" "#));
    // A request message that is missing altogether is an empty one.
    let without_request = frame.len() - delimited_len(&request);
    for len in 0..frame.len() {
        let cut = decode(frame.slice(..len));
        assert_eq!(cut.is_ok(), len == without_request, "{len} bytes: {cut:?}");
    }
}

#[test]
fn a_message_longer_than_its_frame_is_refused() {
    let mut frame = Bytes::from(bytes("ff ff ff ff 0f 00"));
    let error = take_delimited_bytes(&mut frame, "test").expect_err("4 GiB in one byte");
    assert_eq!(error.to_string(), "test: length 4294967295 is outside 0..=1");
}

#[test]
fn usual_calls_are_read_as_messages_are() {
    let method = RequestHeaderProto {
        method_name: "getFileInfo".into(),
        declaring_class_protocol_name: "p.Q".into(),
        client_protocol_version: 1,
    };
    let request = GetFileInfoRequestProto { src: "/a".repeat(100) };
    for (call_id, retry_count, state_id) in
        [(0, -1, None), (300, 0, Some(7)), (1, 1, Some(i64::MAX)), (i32::MAX, 7, Some(i64::MIN))]
    {
        let header = request_header(call_id, retry_count, &[0xbb; 16]);
        let header = RpcRequestHeaderProto { state_id, ..header };
        let frame = &encode_request(&header, &method, &request)[4..];
        let usual = UsualCall::read(frame).expect("a usual call");
        assert_eq!((usual.call_id, usual.retry_count), (call_id, retry_count));
        assert_eq!((usual.client_id, usual.state_id), ([0xbb; 16], state_id));
        assert_eq!(frame[usual.method.clone()], method.encode_to_vec());
        assert_eq!(frame[usual.body.clone()], request.encode_to_vec());
        for end in 0..frame.len() {
            assert_eq!(UsualCall::read(&frame[..end]), None, "{end}");
        }
        let mut other = [frame, &[]].concat();
        for at in 0..frame.len() {
            for bit in 0..8 {
                other[at] ^= 1 << bit;
                // Whatever is read lies within the frame.
                if let Some(usual) = UsualCall::read(&other) {
                    assert!(other.get(usual.method).is_some() && other.get(usual.body).is_some());
                }
                other[at] ^= 1 << bit;
            }
        }
    }
    let unusual = [
        request_header(-4, -1, &[0xbb; 16]),
        request_header(1, 0, &[0xbb; 15]),
        request_header(1, 0, &[]),
        RpcRequestHeaderProto { rpc_op: Some(1), ..request_header(1, 0, &[0xbb; 16]) },
        RpcRequestHeaderProto { rpc_kind: None, ..request_header(1, 0, &[0xbb; 16]) },
    ];
    for header in unusual {
        assert_eq!(UsualCall::read(&encode_request(&header, &method, &request)[4..]), None);
    }
}

#[test]
fn heads_of_answers_are_put_as_messages_are() {
    for (call_id, retry_count, id_len, state_id, message_len) in [
        (0, -1, 16, None, 0),
        (1, 0, 0, Some(0), 1),
        (200, 64, 16, Some(127), 127),
        (i32::MAX, i32::MAX, 200, Some(i64::MAX), 128),
        (-1, -1, 3, Some(i64::MIN), 70_000),
    ] {
        let (client_id, message) = (vec![7; id_len], vec![9; message_len]);
        let header = success_header(call_id, retry_count, &client_id);
        let header = RpcResponseHeaderProto { state_id, ..header };
        let mut frame = b"before".to_vec();
        put_success_head(call_id, retry_count, &client_id, state_id, message_len, &mut frame)
            .expect("short");
        frame.extend_from_slice(&message);
        let expected = encode_response(&header, Some(&message)).expect("short");
        assert_eq!(frame[6..], expected);
    }
    assert_eq!(put_success_head(1, 0, &[], None, i32::MAX as usize, &mut Vec::new()), None);
}
