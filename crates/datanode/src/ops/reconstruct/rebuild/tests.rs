//! What decoding back must notice: any wrong byte in any rebuilt unit.

use super::super::buffers::Buffers;
use super::super::source::Piece;
use super::*;
use crate::dataset::Block;
use cairn_codec::{Codec, CodecKind};
use cairn_stripe::read::Decode;
use cairn_stripe::{BlockId, GenerationStamp, Geometry};

fn plan(k: usize, m: usize, len: u64) -> Plan {
    Plan {
        group: Block {
            pool: String::new(),
            id: BlockId(i64::MIN),
            gs: GenerationStamp(1),
            len: len * k as u64,
        },
        geometry: Geometry::new(k, m, len),
        codec: Codec::new(CodecKind::Rs, k, m).unwrap(),
        holders: vec![Vec::new(); k + m],
        targets: Vec::new(),
        named: Vec::new(),
        is_ours: true,
        is_urgent: false,
        recorded: vec![None; k + m],
    }
}

#[test]
fn a_wrong_byte_in_any_rebuilt_unit_is_noticed() {
    const LEN: usize = 100;
    // More lost units than are needed to decode, too.
    for (k, m) in [(1, 3), (3, 2), (6, 3)] {
        let plan = plan(k, m, LEN as u64);
        let data: Vec<Vec<u8>> = (0..k).map(|i| vec![i as u8 * 37 + 5; LEN]).collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut parity = vec![vec![0; LEN]; m];
        let mut out: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        plan.codec.encode(&data, &mut out).unwrap();
        let units: Vec<Vec<u8>> = data.iter().map(|d| d.to_vec()).chain(parity).collect();
        let (lost, sources): (Vec<usize>, Vec<usize>) = (0..k + m).partition(|u| *u < m);
        let piece = |unit: usize| Piece {
            data: Buffers::new(0).lend(units[unit].clone()),
            checksum: DEFAULT_CHECKSUM,
            crc32c: None,
            storage: None,
        };
        let index = |units: &[usize]| units.iter().map(|unit| UnitIndex(*unit as u8)).collect();
        let gathered = Gathered {
            decode: Decode {
                sources: index(&sources),
                lost: index(&lost),
                range_in_cell: 0..LEN as u64,
            },
            pieces: (0..k + m).map(|u| sources.contains(&u).then(|| piece(u))).collect(),
        };
        let rebuild = plan.any_sources();
        let rebuilt = decode(&plan, &gathered, &Buffers::new(0)).unwrap();
        for (unit, bytes) in lost.iter().zip(&rebuilt) {
            assert!(bytes[..] == units[*unit], "unit {unit}");
        }
        assert_eq!(decode_back(&plan, &rebuild, &gathered, &rebuilt), Ok(()));
        for at in 0..rebuilt.len() {
            let mut wrong: Vec<Vec<u8>> = rebuilt.iter().map(|bytes| bytes.to_vec()).collect();
            wrong[at][LEN - 1] ^= 0x40;
            assert!(
                decode_back(&plan, &rebuild, &gathered, &wrong).is_err(),
                "{k} + {m}, unit {at}"
            );
        }
    }
}
