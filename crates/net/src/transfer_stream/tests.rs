//! Both ends of a transfer connection, and peers that send nonsense.

use std::io::Write;

use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, ClientReadStatusProto, PipelineAckProto, Status,
};
use cairn_wire::transfer::{Op, PacketHeader, pipeline_ack};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use std::time::Duration;

fn options() -> TransferOptions {
    TransferOptions { read_timeout: Duration::from_secs(10), ..TransferOptions::default() }
}

/// A raw socket and the stream it is connected to.
async fn raw_pair(options: &TransferOptions) -> (TcpStream, TransferStream) {
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(addr).await.expect("a free port");
    let addr = listener.local_addr().expect("an address");
    let (raw, stream) = tokio::join!(listener.accept(), TransferStream::connect(addr, options));
    (raw.expect("a client").0, stream.expect("a server"))
}

async fn pair(options: &TransferOptions) -> (TransferStream, TransferStream) {
    let (raw, stream) = raw_pair(options).await;
    (TransferStream::from_tcp(raw, options).expect("options"), stream)
}

fn header(seqno: i64, data_len: usize) -> PacketHeader {
    PacketHeader { seqno, data_len: data_len as u32, ..PacketHeader::heartbeat() }
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + seed * 7 + index / 256) as u8).collect()
}

#[tokio::test]
async fn operations_and_answers() {
    let (mut a, mut b) = pair(&options()).await;
    let status = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
    a.writer.send_op(Op::CopyBlock, &status).await.expect("sent");
    let answer = BlockOpResponseProto { message: Some("x".repeat(5000)), ..Default::default() };
    a.writer.send_message(&answer).await.expect("sent");
    let ack = pipeline_ack(4, [Status::Success.into()], 0);
    a.writer.send_message(&ack).await.expect("sent");
    a.writer.shutdown().expect("connected");

    let (op, body) = b.reader.read_op().await.expect("valid").expect("an operation");
    assert_eq!((op, body), (Op::CopyBlock, status.encode_to_vec().into()));
    let received: BlockOpResponseProto = b.reader.read_message("answer").await.expect("valid");
    assert_eq!(received, answer);
    let received: PipelineAckProto = b.reader.read_message("ack").await.expect("valid");
    assert_eq!(received, ack);
    assert!(b.reader.read_op().await.expect("a clean end").is_none());
}

/// Sends packets of these `(checksums, data)` lengths and compares what arrives.
async fn check_packets(lens: &[(usize, usize)], send_file: Option<SendFile>) {
    let options = TransferOptions { send_file: send_file.unwrap_or_default(), ..options() };
    let (mut a, mut b) = pair(&options).await;
    let lens = lens.to_vec();
    let sent = lens.clone();
    let sender = async move {
        let mut file = tempfile::tempfile().expect("a temporary file");
        for (index, (checksums, data)) in sent.into_iter().enumerate() {
            let (checksums, bytes) = (pattern(checksums, 1000 + index), pattern(data, index));
            let header = header(index as i64, data);
            if send_file.is_some() {
                let at = file.metadata().expect("metadata").len();
                file.write_all(&bytes).expect("room");
                let read_len = bytes.len() as u64;
                let part = FilePart { file: &file, offset: at, read_len, watch: None };
                a.writer.send_packet_from_file(&header, &checksums, part, None).await
            } else {
                a.writer.send_packet(&header, &checksums, &bytes).await
            }
            .expect("sent");
        }
        a
    };
    let receiver = async {
        for (index, (checksums, data)) in lens.into_iter().enumerate() {
            let packet = b.reader.read_packet().await.expect("valid");
            assert_eq!(packet.header, header(index as i64, data));
            assert_eq!(packet.checksums, pattern(checksums, 1000 + index));
            assert_eq!(packet.data, pattern(data, index));
            assert_eq!(packet.raw.len(), 31 + checksums + data);
        }
    };
    let (a, ()) = tokio::join!(sender, receiver);
    drop(a);
    let end = b.reader.read_packet().await.expect_err("the end");
    assert!(
        matches!(&end, TransferError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof)
    );
}

#[tokio::test]
async fn packets_arrive_as_sent() {
    let mixed = [(0, 0), (4, 1), (508, 65_024), (508, 65_024), (4, 512), (0, 0), (12, 1100)];
    let large = [(8 << 10, 1 << 20), (0, (16 << 20) - 31), (8 << 10, 1 << 20), (4, 3)];
    for send_file in
        [None, Some(SendFile::WherePays), Some(SendFile::Always), Some(SendFile::Never)]
    {
        check_packets(&mixed, send_file).await;
        check_packets(&large, send_file).await;
    }
}

/// Packets of all shapes, read to a place with room for `room` bytes, some after one that was read as a whole.
async fn check_placed(room: usize, recv_buffer: usize) {
    let shapes =
        [(4, 1), (2048, 262_144), (2048, 262_144), (508, 65_024), (0, 7), (12, 1100), (0, 0)];
    let lens: Vec<(usize, usize)> = shapes.into_iter().cycle().take(21).collect();
    let sent = lens.clone();
    let (mut a, mut b) = pair(&TransferOptions { recv_buffer, ..options() }).await;
    let sender = async move {
        for (index, (checksums, data)) in sent.into_iter().enumerate() {
            let (checksums, bytes) = (pattern(checksums, 1000 + index), pattern(data, index));
            let head = header(index as i64, data);
            a.writer.send_packet(&head, &checksums, &bytes).await.expect("sent");
        }
        // Held until all is read: its end would wake a reader who waits for too much.
        a
    };
    let receiver = async {
        let mut left: usize = lens.iter().map(|(_, data)| data).sum();
        for (index, (checksums, data)) in lens.into_iter().enumerate() {
            let mut into = vec![0xee; room.min(left)];
            left -= data;
            if index % 5 == 4 {
                let packet = b.reader.read_packet().await.expect("valid");
                assert_eq!(packet.data, pattern(data, index));
                continue;
            }
            let packet = b.reader.read_packet_into(&mut into).await.expect("valid");
            assert_eq!(packet.header, header(index as i64, data));
            assert_eq!(packet.checksums, pattern(checksums, 1000 + index));
            let placed = if packet.apart.is_none() { data } else { 0 };
            assert_eq!(packet.apart.is_none(), data <= room);
            let bytes = packet.apart.as_deref().unwrap_or(&into[..placed]);
            assert_eq!(bytes, pattern(data, index));
            assert!(into[placed..].iter().all(|byte| *byte == 0xee), "no byte too many");
        }
    };
    let (a, ()) = tokio::join!(sender, receiver);
    drop(a);
    let end = b.reader.read_packet_into(&mut [0; 1000]).await.expect_err("the end");
    assert!(
        matches!(&end, TransferError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof)
    );
}

#[tokio::test]
async fn data_go_where_the_caller_wants_them() {
    for room in [0, 1, 1100, 65_024, 262_144, 300_000] {
        check_placed(room, 0).await;
        check_placed(room, 256 << 10).await;
    }
}

#[tokio::test]
async fn little_wakes_a_reader_that_has_waited_for_much() {
    let options = TransferOptions { recv_buffer: 256 << 10, ..options() };
    let (mut a, mut b) = pair(&options).await;
    for seqno in [0, 2] {
        let data = pattern(200_000, seqno);
        let mut into = vec![0; data.len()];
        let head = header(seqno as i64, data.len());
        let (sent, packet) = tokio::join!(
            a.writer.send_packet(&head, &[], &data),
            b.reader.read_packet_into(&mut into)
        );
        sent.expect("sent");
        assert!(packet.expect("valid").apart.is_none() && into == data);
        // Nothing comes after it until it is read.
        let end = header(seqno as i64 + 1, 0);
        let sending = async {
            tokio::task::yield_now().await;
            a.writer.send_packet(&end, &[], &[]).await
        };
        let (packet, sent) = tokio::join!(b.reader.read_packet(), sending);
        sent.expect("sent");
        assert_eq!(packet.expect("valid").header, end);
    }
}

#[tokio::test]
async fn a_packet_that_ends_too_early_is_no_packet() {
    let (mut raw, mut stream) = raw_pair(&options()).await;
    let head = header(0, 100);
    raw.write_all(head.encode(4).as_ref()).await.expect("sent");
    raw.write_all(&[1; 4 + 99]).await.expect("sent");
    drop(raw);
    let end = stream.reader.read_packet_into(&mut [0; 100]).await.expect_err("the end");
    assert!(
        matches!(&end, TransferError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof)
    );
}

#[tokio::test]
async fn packets_kept_by_the_caller_are_not_overwritten() {
    let (mut a, mut b) = pair(&options()).await;
    let sender = async {
        for index in 0..20 {
            let data = pattern(40_000, index);
            a.writer.send_packet(&header(index as i64, 40_000), &[], &data).await.expect("sent");
        }
    };
    let receiver = async {
        let mut kept = Vec::new();
        for _ in 0..20 {
            kept.push(b.reader.read_packet().await.expect("valid"));
        }
        kept
    };
    let ((), kept) = tokio::join!(sender, receiver);
    for (index, packet) in kept.iter().enumerate() {
        assert_eq!(packet.data, pattern(40_000, index));
    }
}

#[tokio::test]
async fn dropped_packets_give_their_memory_back() {
    let (mut a, mut b) = pair(&options()).await;
    let data = pattern(65_024, 0);
    let mut places = std::collections::HashSet::new();
    for index in 0..50 {
        let head = header(index, data.len());
        let (sent, packet) =
            tokio::join!(a.writer.send_packet(&head, &[0; 508], &data), b.reader.read_packet());
        sent.expect("sent");
        places.insert(packet.expect("valid").raw.as_ptr());
    }
    assert!(places.len() <= 4, "{} allocations for 50 packets", places.len());
}

#[tokio::test]
async fn a_packet_may_come_byte_by_byte() {
    let (mut raw, mut b) = raw_pair(&options()).await;
    raw.set_nodelay(true).expect("a socket");
    let whole = [header(0, 3).encode(4).as_ref(), &[1, 2, 3, 4, 5, 6, 7]].concat();
    let sender = async {
        for byte in whole.iter().chain(&whole) {
            raw.write_all(&[*byte]).await.expect("a reader");
            tokio::task::yield_now().await;
        }
    };
    let receiver = async {
        for _ in 0..2 {
            let packet = b.reader.read_packet().await.expect("valid");
            assert_eq!(
                (&packet.checksums[..], &packet.data[..]),
                (&[1, 2, 3, 4][..], &[5, 6, 7][..])
            );
            assert_eq!(packet.raw, whole);
        }
    };
    tokio::join!(sender, receiver);
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() {
    let (mut raw, mut b) = raw_pair(&options()).await;
    let whole = [header(9, 3).encode(0).as_ref(), &[5, 6, 7]].concat();
    for part in whole.chunks(5) {
        raw.write_all(part).await.expect("a reader");
        let read = timeout(Duration::from_millis(20), b.reader.read_packet()).await;
        if let Ok(packet) = read {
            assert_eq!(packet.expect("valid").data, [5, 6, 7][..]);
            return;
        }
    }
    panic!("the packet was lost");
}

/// Sends `bytes`, closes, and expects `read` to fail with `expected`.
async fn check_bad<T: std::fmt::Debug>(
    bytes: &[u8],
    read: impl AsyncFnOnce(&mut TransferReader) -> Result<T, TransferError>,
    expected: &str,
) {
    let (mut raw, mut b) = raw_pair(&options()).await;
    raw.write_all(bytes).await.expect("a reader");
    raw.shutdown().await.expect("connected");
    let error = read(&mut b.reader).await.expect_err("nonsense");
    assert_eq!(error.to_string(), expected, "{bytes:02x?}");
}

#[tokio::test]
async fn bad_packets() {
    let check = async |bytes: &[u8], expected| {
        check_bad(bytes, TransferReader::read_packet, expected).await;
    };
    check(&[], "unexpected end of file").await;
    check(&[0, 0, 0], "unexpected end of file").await;
    check(&[0, 0, 0, 9, 0, 25, 9], "unexpected end of file").await;
    check(&[0, 0, 0, 3, 0, 25], "packet payload: length 3 is outside 0..=16777216").await;
    check(&[0xff; 6], "packet payload: length -1 is outside 0..=16777216").await;
    check(&[1, 0, 0, 0, 0, 25], "packet header: length 25 is outside 0..=16777216").await;
    let long = header(0, 8);
    let mut bytes = long.encode(0).as_ref().to_vec();
    bytes[3] = 8; // four bytes of data follow
    bytes.extend([0; 4]);
    check(&bytes, "packet data: length 8 is outside 0..=4").await;
    check(
        &[0, 0, 0, 4, 0, 1, 0x09],
        "PacketHeaderProto: failed to decode Protobuf message: \
         PacketHeaderProto.offset_in_block: buffer underflow",
    )
    .await;
}

#[tokio::test]
async fn bad_operations_and_messages() {
    let check_op = async |bytes: &[u8], expected| {
        check_bad(bytes, TransferReader::read_op, expected).await;
    };
    check_op(&[0], "unexpected end of file").await;
    check_op(&[0, 27, 80, 0], "Version Mismatch (Expected: 28, Received: 27 )").await;
    check_op(&[0, 28, 79, 0], "operation: invalid value 79").await;
    check_op(&[0, 28, 80], "unexpected end of file").await;
    check_op(&[0, 28, 80, 5, 1], "unexpected end of file").await;
    check_op(
        &[0, 28, 80, 0xff, 0xff, 0xff, 0xff, 0x07],
        "operation message: length 2147483647 is outside 0..=1048576",
    )
    .await;
    check_op(&[0, 28, 80, 0x80, 0x80, 0x80, 0x80, 0x80], "operation message: malformed varint")
        .await;
    let read_ack =
        async |reader: &mut TransferReader| reader.read_message::<PipelineAckProto>("ack").await;
    check_bad(&[], read_ack, "unexpected end of file").await;
    check_bad(
        &[1, 0x07],
        read_ack,
        "ack: failed to decode Protobuf message: invalid wire type value: 7",
    )
    .await;
}

#[tokio::test]
async fn announced_packets_cost_no_memory() {
    let (mut raw, mut b) = raw_pair(&options()).await;
    raw.write_all(&[0, 0xff, 0xff, 0, 0, 25, 1, 2, 3]).await.expect("a reader");
    let read = timeout(Duration::from_millis(50), b.reader.read_packet()).await;
    assert!(read.is_err(), "the packet is not there");
    assert!(b.reader.reserved() <= 512 << 10, "{} bytes reserved", b.reader.reserved());
}

#[tokio::test]
async fn random_bytes_never_panic() {
    let mut state = 0x0dd0_5eed_1234_5678u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..300 {
        let (mut raw, mut b) = raw_pair(&options()).await;
        let mut bytes: Vec<u8> = (0..random() % 100).map(|_| random() as u8).collect();
        if round % 2 == 0 {
            bytes.splice(0..0, [0, 0, 0, 4 + (random() % 50) as u8, 0, (random() % 40) as u8]);
        } else {
            bytes.splice(0..0, [0, 28, 80 + (random() % 11) as u8]);
        }
        raw.write_all(&bytes).await.expect("a reader");
        raw.shutdown().await.expect("connected");
        let mut read = 0;
        let ended = loop {
            let result = match round % 2 {
                0 => b.reader.read_packet().await.map(|packet| Some(packet.raw.len())),
                _ => b.reader.read_op().await.map(|op| op.map(|(_, body)| 4 + body.len())),
            };
            match result {
                Ok(Some(len)) => read += len,
                Ok(None) | Err(_) => break true,
            }
        };
        assert!(ended && read <= bytes.len(), "{read} of {}", bytes.len());
    }
}

#[tokio::test]
async fn slow_peers_time_out() {
    let after = Duration::from_millis(50);
    let options =
        TransferOptions { read_timeout: after, write_timeout: after, ..TransferOptions::default() };
    let (_raw, mut b) = raw_pair(&options).await;
    let error = b.reader.read_packet().await.expect_err("nothing comes");
    assert_eq!(error.to_string(), "a packet: no progress for 50ms");
    let data = vec![0; 8 << 20];
    let full = async {
        loop {
            if let Err(error) = b.writer.send_packet(&header(0, data.len()), &[], &data).await {
                return error;
            }
        }
    };
    assert_eq!(full.await.to_string(), "writing: no progress for 50ms");
}

#[tokio::test]
async fn a_file_that_is_too_short_is_an_error() {
    for send_file in [SendFile::Always, SendFile::Never] {
        let (mut raw, mut b) = raw_pair(&TransferOptions { send_file, ..options() }).await;
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[1, 2, 3]).expect("room");
        let part = FilePart { file: &file, offset: 0, read_len: 4, watch: None };
        let sent = b.writer.send_packet_from_file(&header(0, 4), &[], part, None).await;
        let error = sent.expect_err("one byte is missing");
        let kind = io::ErrorKind::UnexpectedEof;
        assert!(matches!(&error, TransferError::File(error) if error.kind() == kind), "{error}");
        drop(b);
        let mut received = Vec::new();
        raw.read_to_end(&mut received).await.expect("the end");
        assert!(received.len() < 31 + 4, "the fourth byte was made up");
    }
}

#[tokio::test]
async fn kill_wakes_both_ends() {
    let (a, mut b) = pair(&options()).await;
    let (mut reader, writer) = a.split();
    let waiting = tokio::spawn(async move { reader.read_packet().await });
    tokio::task::yield_now().await;
    writer.kill();
    assert!(waiting.await.expect("no panic").is_err());
    assert!(b.reader.read_packet().await.is_err());
}

#[tokio::test]
async fn waiting_for_the_end() {
    let (mut raw, mut b) = raw_pair(&options()).await;
    raw.write_all(&[0; 10]).await.expect("a reader");
    raw.shutdown().await.expect("connected");
    assert!(b.reader.wait_closed(10).await);
    let (mut raw, mut b) = raw_pair(&options()).await;
    raw.write_all(&[0; 11]).await.expect("a reader");
    raw.shutdown().await.expect("connected");
    assert!(!b.reader.wait_closed(10).await);
    let (_raw, mut b) = raw_pair(&options()).await;
    b.reader.set_timeout(Duration::from_millis(20));
    assert!(!b.reader.wait_closed(10).await);
}

#[tokio::test]
async fn what_is_held_goes_out_in_front_of_the_next_and_an_end_behind_it() {
    let mut file = tempfile::tempfile().expect("a temporary file");
    let bytes = pattern(70_000, 3);
    file.write_all(&bytes).expect("room");
    for send_file in [SendFile::Always, SendFile::Never] {
        let (mut a, mut b) = pair(&TransferOptions { send_file, ..options() }).await;
        let status = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
        for _ in 0..2 {
            a.writer.hold_message(&status);
            let last = PacketHeader { last_packet: true, ..header(1, 0) };
            let first = header(0, bytes.len());
            let read_len = bytes.len() as u64;
            let part = FilePart { file: &file, offset: 0, read_len, watch: None };
            let sent = a.writer.send_packet_from_file(&first, b"crcs", part, Some(&last));
            let (sent, ()) = tokio::join!(sent, async {
                let held: ClientReadStatusProto =
                    b.reader.read_message("held").await.expect("held");
                assert_eq!(held, status);
                let packet = b.reader.read_packet().await.expect("a packet");
                assert_eq!((packet.header, &packet.data[..]), (first, &bytes[..]));
                let packet = b.reader.read_packet().await.expect("its end");
                assert_eq!((packet.header, packet.raw.len()), (last, 31));
            });
            sent.expect("sent");
        }
    }
}

#[tokio::test]
async fn parts_are_filled_in_order_and_can_be_given_back() {
    let (mut raw, mut b) = raw_pair(&options()).await;
    let bytes = pattern(150_000, 5);
    raw.write_all(&bytes).await.expect("room");
    let (mut head, mut into, mut tail) = (vec![0; 700], vec![0; 100_000], vec![0; 31]);
    let parts = [&mut head[..], &mut into, &mut tail];
    let some = b.reader.read_parts(parts, 0, 800, "parts").await.expect("some");
    assert!((800..=100_731).contains(&some), "{some}");
    let parts = [&mut head[..], &mut into, &mut tail];
    let got = b.reader.read_parts(parts, some, 100_731, "parts").await.expect("all");
    assert_eq!(got, 100_731);
    assert!([&head[..], &into, &tail].concat() == bytes[..got]);
    for part in [&tail, &into, &head] {
        b.reader.unread(part);
    }
    // Some of what was given back, then what the socket has, and the end.
    let (mut head, mut into) = (vec![0; 50_000], vec![0; 60_000]);
    let parts = [&mut head[..], &mut [], &mut into];
    let got = b.reader.read_parts(parts, 0, 110_000, "parts").await.expect("all");
    assert_eq!(got, 110_000);
    assert!([&head[..], &into].concat() == bytes[..got]);
    drop(raw);
    let parts = [&mut head[..], &mut into, &mut []];
    let got = b.reader.read_parts(parts, 0, 110_000, "parts").await.expect("some");
    assert!(got == 40_000 && head[..got] == bytes[110_000..]);
}

#[tokio::test]
async fn a_reader_that_slept_for_a_large_packet_sees_a_small_one_at_once() {
    let options = TransferOptions { recv_buffer: 1 << 20, ..options() };
    let (mut raw, mut b) = raw_pair(&options).await;
    let large = [header(0, 200_000).encode(0).as_ref(), &pattern(200_000, 1)].concat();
    let small = [header(1, 3).encode(0).as_ref(), &[1, 2, 3]].concat();
    for _ in 0..3 {
        let (start, rest) = large.split_at(1000);
        raw.write_all(start).await.expect("a reader");
        let mut reading = Box::pin(b.reader.read_packet());
        // It has seen the start, and sleeps until more is there.
        assert!(timeout(Duration::from_millis(20), &mut reading).await.is_err());
        raw.write_all(rest).await.expect("a reader");
        assert_eq!(reading.await.expect("valid").data, pattern(200_000, 1));
        let mut reading = Box::pin(b.reader.read_packet());
        assert!(timeout(Duration::from_millis(20), &mut reading).await.is_err());
        raw.write_all(&small).await.expect("a reader");
        let read = timeout(Duration::from_secs(5), reading).await.expect("it is woken");
        assert_eq!(&read.expect("valid").data[..], [1, 2, 3]);
    }
}

#[tokio::test]
async fn an_idle_connection_gives_its_memory_back_and_loses_nothing() {
    let (mut raw, mut b) = raw_pair(&options()).await;
    let packet = [header(0, 100_000).encode(0).as_ref(), &pattern(100_000, 1)].concat();
    raw.write_all(&packet).await.expect("a reader");
    drop(b.reader.read_packet().await.expect("valid"));
    b.release_memory();
    assert_eq!(b.reader.reserved(), 0);
    raw.write_all(&packet[..50]).await.expect("a reader");
    let read = timeout(Duration::from_millis(20), b.reader.read_packet()).await;
    assert!(read.is_err(), "half of it");
    b.release_memory();
    raw.write_all(&packet[50..]).await.expect("a reader");
    assert_eq!(b.reader.read_packet().await.expect("valid").data, pattern(100_000, 1));
}

/// Notes what is done at a file.
#[derive(Default)]
struct Noted(std::sync::Mutex<Vec<(FileSend, usize)>>);

impl FileWatch for Noted {
    fn watch(
        &self,
        how: FileSend,
        work: &mut dyn FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let done = work();
        if let Ok(bytes) = done {
            self.0.lock().expect("nobody panics").push((how, bytes));
        }
        done
    }
}

/// Sends a file as packets of one read over TCP within the machine, and returns how, as counted and as watched.
async fn sent_how(send_file: SendFile, read_len: usize) -> SentFromFiles {
    let (mut a, mut b) = pair(&TransferOptions { send_file, ..options() }).await;
    let (bytes, noted) = (pattern(read_len, 1), Noted::default());
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&bytes).expect("room");
    let step = 64 << 10;
    let send = async {
        for (seqno, data) in bytes.chunks(step).enumerate() {
            let (offset, read_len) = ((seqno * step) as u64, read_len as u64);
            let part = FilePart { file: &file, offset, read_len, watch: Some(&noted) };
            let header = header(seqno as i64, data.len());
            a.writer.send_packet_from_file(&header, &[1; 8], part, None).await.expect("sent");
        }
    };
    let receive = async {
        for data in bytes.chunks(step) {
            assert!(b.reader.read_packet().await.expect("received").data == data);
        }
    };
    tokio::join!(send, receive);
    let sent = a.writer.take_sent();
    assert_eq!(a.writer.take_sent(), SentFromFiles::default(), "it was taken");
    let noted = noted.0.into_inner().expect("nobody panics");
    let of = |how| noted.iter().filter(|(by, _)| *by == how).map(|(_, n)| *n as u64).sum::<u64>();
    assert_eq!((sent.copied, sent.by_sendfile), (of(FileSend::Copy), of(FileSend::SendFile)));
    sent
}

#[tokio::test]
async fn it_shows_whether_a_read_was_copied() {
    let above = SEND_FILE_ABOVE as usize;
    for (send_file, read_len, by_sendfile) in [
        (SendFile::WherePays, 100_000, false),
        (SendFile::WherePays, above, false),
        (SendFile::WherePays, above + 1, true),
        (SendFile::WherePays, 4 * above, true),
        (SendFile::Never, 4 * above, false),
        (SendFile::Always, 100_000, true),
    ] {
        let sent = sent_how(send_file, read_len).await;
        let bytes = read_len as u64;
        let want = match by_sendfile {
            true => SentFromFiles { copied: 0, by_sendfile: bytes },
            false => SentFromFiles { copied: bytes, by_sendfile: 0 },
        };
        assert_eq!(sent, want, "{send_file:?}, {read_len}");
    }
}

/// Streams with memory for 128 MiB: where it is taken, a receiver waits for it and a sender does with less; who has
/// nothing to receive gives it back.
#[tokio::test]
async fn connections_share_memory_for_packets() {
    const DATA: usize = 15 << 20;
    let memory = Arc::new(PacketMemory::new(0));
    let shared = TransferOptions { packet_memory: Some(memory.clone()), ..options() };
    let (bytes, count) = (Arc::new(pattern(DATA, 1)), 10);
    let mut streams = Vec::new();
    for _ in 0..count {
        let (raw, sender) = raw_pair(&options()).await;
        streams.push((TransferStream::from_tcp(raw, &shared).expect("options"), sender));
    }
    // All begin a packet, and nobody ends it.
    let head = header(0, DATA).encode(0);
    for (receiver, sender) in &mut streams {
        sender.writer.send(head.as_ref()).await.expect("sent");
        sender.writer.send(&bytes[..1000]).await.expect("sent");
        let half = timeout(Duration::from_millis(50), receiver.reader.read_packet()).await;
        assert!(half.is_err(), "half of it is missing");
    }
    let limit = memory.limit();
    assert!((limit..limit + DATA as u64 + 100).contains(&memory.used()), "{}", memory.used());
    assert_eq!(memory.waiting(), 0, "nobody is asked any more");

    // The last waits until another one has its packet.
    let (mut last, mut sender) = streams.pop().expect("the last");
    let (mut first, mut first_sender) = streams.pop().expect("another one");
    let late = tokio::spawn({
        let bytes = bytes.clone();
        async move {
            let sent = async { sender.writer.send(&bytes[1000..]).await.expect("sent") };
            let ((), packet) = tokio::join!(sent, last.reader.read_packet());
            (last, sender, packet.expect("received").data.len())
        }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((late.is_finished(), memory.waiting()), (false, 1));

    // A reader of a file does with less meanwhile.
    let (raw, mut reader) = raw_pair(&options()).await;
    let copies = TransferOptions { send_file: SendFile::Never, ..shared.clone() };
    let mut writer = TransferStream::from_tcp(raw, &copies).expect("options").writer;
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&bytes[..1 << 20]).expect("room");
    let used = memory.used();
    let part = FilePart { file: &file, offset: 0, read_len: 1 << 20, watch: None };
    let header = header(0, 1 << 20);
    let sent = writer.send_packet_from_file(&header, &[7; 8], part, None);
    let (sent, received) = tokio::join!(sent, reader.reader.read_packet());
    sent.expect("sent");
    let received = received.expect("received");
    assert!(received.data == bytes[..1 << 20] && received.checksums[..] == [7; 8]);
    assert!(memory.used() == used && writer.take_sent().copied == 1 << 20);

    let sent = async { first_sender.writer.send(&bytes[1000..]).await.expect("sent") };
    let ((), packet) = tokio::join!(sent, first.reader.read_packet());
    assert!(packet.expect("received").data == bytes[..]);
    // It waits for the next one: what it had is wanted.
    let next = tokio::spawn(async move { first.reader.read_packet().await.is_ok() });
    let done = timeout(Duration::from_secs(10), late).await.expect("in time");
    let (mut last, mut sender, len) = done.expect("it does not panic");
    assert_eq!(len, DATA);
    // As long as something comes, it stays.
    let before = memory.used();
    let ((), packet) = tokio::join!(
        async { sender.writer.send_packet(&header, &[], &bytes[..1 << 20]).await.expect("sent") },
        last.reader.read_packet()
    );
    assert!(packet.is_ok() && memory.used() == before);
    drop((streams, last, first_sender));
    assert!(!next.await.expect("it does not panic"), "its sender is gone");
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn a_stream_without_packets_gives_its_memory_back_and_goes_on() {
    let memory = Arc::new(PacketMemory::new(0));
    let shared = TransferOptions { packet_memory: Some(memory.clone()), ..options() };
    let (raw, mut sender) = raw_pair(&options()).await;
    let mut receiver = TransferStream::from_tcp(raw, &shared).expect("options");
    let bytes = pattern(1 << 20, 3);
    for pause in [0, 0, 300, 0] {
        let sent = async {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            assert!(pause == 0 || memory.used() == 0, "nothing came");
            sender.writer.send_packet(&header(0, bytes.len()), &[], &bytes).await.expect("sent");
        };
        let ((), packet) = tokio::join!(sent, receiver.reader.read_packet());
        assert!(packet.expect("received").data == bytes[..]);
        assert!(memory.used() > 1 << 20);
    }
    receiver.release_memory();
    assert_eq!((memory.used(), receiver.reader.reserved()), (0, 0));
}
