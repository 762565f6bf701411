//! What Hadoop's own coders and CRC classes compute, made by `interop/golden`.

use crate::input::{data_units, input, parity_units};
use cairn_codec::crc::{CRC_LEN, ChecksumKind, chunk_crcs, combine, crc32c, verify_chunks};
use cairn_codec::{Codec, CodecKind, Engine, Hitchhiker, Variant};

const VECTORS: &str = include_str!("../golden/hadoop-3.5.0.txt");

/// The fields behind the first of all lines that begin with the word `fact`; at least `count`.
fn facts(fact: &str, count: usize) -> Vec<Vec<&'static str>> {
    let lines: Vec<Vec<_>> = VECTORS
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|fields| fields[0] == fact)
        .map(|fields| fields[1..].to_vec())
        .collect();
    assert!(lines.len() >= count, "{} lines of {fact}", lines.len());
    lines
}

fn number(field: &str) -> usize {
    field.parse().expect("a decimal number")
}

fn crc_value(field: &str) -> u32 {
    u32::from_str_radix(field, 16).expect("a CRC in hexadecimal")
}

fn bytes(field: &str) -> Vec<u8> {
    let digits: Vec<u8> = field.chars().map(|c| c.to_digit(16).expect("a digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The code that three fields name, on every engine of this processor.
fn codes(fields: &[&str]) -> impl Iterator<Item = Codec> {
    let kind = match fields[0] {
        "rs" => CodecKind::Rs,
        "rs-legacy" => CodecKind::RsLegacy,
        "xor" => CodecKind::Xor,
        other => panic!("unknown codec {other}"),
    };
    let (k, m) = (number(fields[1]), number(fields[2]));
    Engine::available()
        .map(move |engine| Codec::with_engine(kind, k, m, engine).expect("Hadoop has it"))
}

fn kind(field: &str) -> ChecksumKind {
    [ChecksumKind::Crc32, ChecksumKind::Crc32c]
        .into_iter()
        .find(|kind| kind.to_string() == field)
        .expect("a kind of checksum")
}

#[test]
fn coefficients_are_hadoops() {
    for fields in facts("matrix", 7) {
        for code in codes(&fields) {
            assert_eq!(code.parity_coefficients(), bytes(fields[3]), "{code:?}");
        }
    }
}

#[test]
fn parity_is_hadoops_on_every_engine() {
    for fields in facts("parity", 20) {
        let len = number(fields[3]);
        let expected: Vec<Vec<u8>> = fields[4..].iter().map(|field| bytes(field)).collect();
        for code in codes(&fields) {
            assert_eq!(parity_units(&code, &data_units(&code, len)), expected, "{code:?}, {len}");
        }
    }
}

#[test]
fn parity_of_long_cells_is_hadoops_on_every_engine() {
    for fields in facts("parity-crc", 5) {
        let expected: Vec<u32> = fields[4..].iter().map(|field| crc_value(field)).collect();
        for code in codes(&fields) {
            let parity = parity_units(&code, &data_units(&code, number(fields[3])));
            let crcs: Vec<u32> = parity.iter().map(|unit| crc32c(0, unit)).collect();
            assert_eq!(crcs, expected, "{code:?}");
        }
    }
}

#[test]
fn hitchhikers_parity_is_hadoops() {
    for fields in facts("hitchhiker-xor", 3) {
        let (k, m, len) = (number(fields[0]), number(fields[1]), number(fields[2]));
        let code = Hitchhiker::new(Variant::Xor, k, m).expect("Hadoop has it");
        let data: Vec<Vec<u8>> = (0..k).map(|unit| input(unit, len)).collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut parity = vec![vec![0xa5; len]; m];
        let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(&data, &mut outputs).expect("the buffers fit");
        let expected: Vec<Vec<u8>> = fields[3..].iter().map(|field| bytes(field)).collect();
        assert_eq!(parity, expected, "{code:?}");
    }
}

#[test]
fn crcs_are_hadoops() {
    for fields in facts("crc", 24) {
        let data = input(0, number(fields[1]));
        assert_eq!(kind(fields[0]).update(0, &data), crc_value(fields[2]), "{fields:?}");
    }
}

#[test]
fn composed_crcs_are_hadoops() {
    for fields in facts("compose", 14) {
        let (a, b) = (crc_value(fields[1]), crc_value(fields[2]));
        let composed = combine(kind(fields[0]), a, b, number(fields[3]) as u64);
        assert_eq!(composed, crc_value(fields[4]), "{fields:?}");
    }
}

#[test]
fn chunk_crcs_and_their_composition_are_hadoops() {
    for fields in facts("chunks", 4) {
        let (kind, chunk_len) = (kind(fields[0]), number(fields[1]));
        let (data, expected) = (input(0, number(fields[2])), bytes(fields[3]));
        let mut crcs = vec![0; kind.total_len(chunk_len, data.len())];
        chunk_crcs(kind, chunk_len, &data, &mut crcs);
        assert_eq!(crcs, expected, "{fields:?}");
        assert_eq!(verify_chunks(kind, chunk_len, &data, &expected), Ok(()));

        let chunks = data.chunks(chunk_len).zip(crcs.chunks(CRC_LEN));
        let whole = chunks.fold(0, |whole, (chunk, crc)| {
            let crc = u32::from_be_bytes(crc.try_into().expect("four bytes"));
            combine(kind, whole, crc, chunk.len() as u64)
        });
        assert_eq!(whole, crc_value(fields[4]), "{fields:?}");
        assert_eq!(whole, kind.update(0, &data));
    }
}
