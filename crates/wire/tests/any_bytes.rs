//! Runs the fuzz targets over fixed bytes, so that they are checked without a fuzzer: random ones,
//! and valid ones with a few bytes changed, which get past the first checks.

use cairn_wire::proto::common::{IpcConnectionContextProto, RequestHeaderProto};
use cairn_wire::proto::hdfs::Status;
use cairn_wire::transfer::{self, Op, PacketHeader};
use cairn_wire::{meta_file::MetaHeader, rpc};

#[path = "../../../fuzz/src/decoders.rs"]
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

    fn bytes(&mut self, max_len: usize) -> Vec<u8> {
        (0..self.below(max_len + 1)).map(|_| self.next() as u8).collect()
    }
}

#[track_caller]
fn check(target: fn(&[u8]), valid: &[Vec<u8>]) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        target(&random.bytes(64));
    }
    for sample in valid {
        for len in 0..=sample.len() {
            target(&sample[..len]);
        }
        for _ in 0..20_000 {
            let mut bytes = sample.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            target(&bytes);
        }
    }
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
    check(targets::rpc_frame, &[call[4..].to_vec(), setup[4..].to_vec()]);
}

#[test]
fn transfer_ops() {
    let ack = transfer::pipeline_ack(5, [Status::Success.into(), Status::ErrorChecksum.into()], 9);
    check(targets::transfer_op, &[transfer::encode_op(Op::WriteBlock, &ack)]);
}

#[test]
fn packets() {
    let header = PacketHeader { data_len: 3, sync_block: true, ..PacketHeader::heartbeat() };
    let whole = [header.encode(4).as_ref(), &[1, 2, 3, 4, 5, 6, 7]].concat();
    check(targets::packet, &[whole, header.encode(0).as_ref()[6..].to_vec()]);
}

#[test]
fn meta_files() {
    let header = MetaHeader::new(2, 512).expect("a valid header");
    check(targets::meta_file, &[header.encode().to_vec()]);
}
