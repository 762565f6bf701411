//! Both forms against an encoder written from the format's description, and against bad input.

use super::*;

fn replica_of(id: i64, len: u64, gs: u64, state: ReplicaState) -> ReportedReplica {
    replica(id as u64, len, gs, state)
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn encode(replicas: &[ReportedReplica]) -> Vec<u8> {
    let mut out = Vec::new();
    for r in replicas {
        let id = r.block.id.0;
        write_varint(&mut out, ((id << 1) ^ (id >> 63)) as u64);
        write_varint(&mut out, r.block.len);
        write_varint(&mut out, r.block.gs.0);
        write_varint(&mut out, r.state as u64);
    }
    out
}

fn sample() -> Vec<ReportedReplica> {
    vec![
        replica_of(1_073_741_825, 0, 1001, ReplicaState::Finalized),
        replica_of(i64::MIN + 16 + 3, 1 << 40, u64::MAX, ReplicaState::Finalized),
        replica_of(-1, 134_217_728, 1002, ReplicaState::BeingWritten),
        replica_of(i64::MAX, 5, 1, ReplicaState::WaitingToBeRecovered),
    ]
}

#[test]
fn the_present_form_may_be_cut_anywhere() {
    let bytes = encode(&sample());
    for cut in 0..=bytes.len() {
        let buffers = [bytes[..cut].to_vec(), bytes[cut..].to_vec()];
        assert_eq!(decode_buffers(4, &buffers), Ok(sample()), "cut at {cut}");
    }
}

#[test]
fn a_known_report_reads_as_hadoop_writes_it() {
    // Block 1073741825 (zigzag 2147483650), 1024 bytes, stamp 1001, finalized.
    let bytes = vec![0x82, 0x80, 0x80, 0x80, 0x08, 0x80, 0x08, 0xe9, 0x07, 0x00];
    let want = replica_of(1_073_741_825, 1024, 1001, ReplicaState::Finalized);
    assert_eq!(decode_buffers(1, &[bytes]), Ok(vec![want]));
}

#[test]
fn upper_bits_of_length_and_state_are_left_out() {
    let mut bytes = Vec::new();
    for number in [2, (7 << 48) | 99, 1001, 0x10] {
        write_varint(&mut bytes, number);
    }
    let want = replica_of(1, 99, 1001, ReplicaState::Finalized);
    assert_eq!(decode_buffers(1, &[bytes]), Ok(vec![want]));
}

#[test]
fn bad_streams_are_refused() {
    let bytes = encode(&sample());
    let short = bytes[..bytes.len() - 1].to_vec();
    assert_eq!(decode_buffers(4, &[short]), Err(BlockListError::Truncated));
    let len = bytes.len() as u64;
    let want = BlockListError::Count { announced: u64::MAX, len };
    assert_eq!(decode_buffers(u64::MAX, &[bytes]), Err(want));
    assert_eq!(decode_buffers(1, &[vec![0xff; 16]]), Err(BlockListError::Number));
    let mut odd = Vec::new();
    for number in [2, 99, 1001, 9] {
        write_varint(&mut odd, number);
    }
    assert_eq!(decode_buffers(1, &[odd]), Err(BlockListError::State { number: 9 }));
}

#[test]
fn the_old_form_sets_finalized_replicas_off() {
    let minus = u64::MAX;
    let numbers = [1, 1, 7, 70, 1001, minus, minus, minus, 8, 80, 1002, 1];
    let want = vec![
        replica_of(7, 70, 1001, ReplicaState::Finalized),
        replica_of(8, 80, 1002, ReplicaState::BeingWritten),
    ];
    assert_eq!(decode_longs(&numbers), Ok(want));
    assert_eq!(decode_longs(&[]), Ok(vec![]));
    assert_eq!(decode_longs(&[0, 0]), Ok(vec![]));
    assert_eq!(decode_longs(&[1]), Err(BlockListError::Truncated));
    assert_eq!(decode_longs(&[u64::MAX, 0, 1]), Err(BlockListError::Truncated));
    assert_eq!(decode_longs(&[0, 1, 8, 80, 1002, 1]), Err(BlockListError::Mark));
}
