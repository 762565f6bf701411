//! What must hold for any edit log of Hadoop's: reading ends, nothing panics, and a log that was cut off anywhere has what
//! the whole one has before that.
//!
//! `cargo test -p cairn-fsimage` runs the target over its corpus (`crates/fsimage/tests/any_bytes.rs` includes this file).

use cairn_fsimage::edits::{EditsError, Segment, Transaction};
use std::io::Cursor;

/// What `crates/fsimage/src/edits.rs` reads: layout versions, of which the newest comes first.
const VERSIONS: [i32; 4] = [-67, -66, -65, -64];
/// The first transaction.
const FIRST: u64 = 7;
/// What stands where no operation follows.
const FILLING: u8 = 0xff;

/// A segment: a byte for its version, and operations, each with two bytes for its length, its code and its fields. What
/// stands around these in a file is put there, since bytes at random would hardly have a right CRC.
pub fn edit_log(data: &[u8]) {
    // As a file that somebody else has written.
    let _ = read(data);
    let Some((version, mut rest)) = data.split_first() else { return };
    let mut file = VERSIONS[usize::from(*version) % VERSIONS.len()].to_be_bytes().to_vec();
    file.extend([0; 4]);
    let (mut count, mut has_filling) = (0, false);
    while let Some((len, behind)) = rest.split_first_chunk() {
        let (operation, behind) =
            behind.split_at(behind.len().min(usize::from(u16::from_be_bytes(*len))));
        if let Some((code, fields)) = operation.split_first() {
            file.extend(frame(*code, FIRST + count, fields));
            count += 1;
            has_filling |= *code == FILLING;
        }
        rest = behind;
    }
    let (whole, why) = read(&file);
    assert!(whole.len() as u64 <= count);
    assert!(why.is_some() || whole.len() as u64 == count || has_filling);
    for (at, transaction) in whole.iter().enumerate() {
        assert_eq!(transaction.id, FIRST + at as u64);
    }
    // Where it is cut depends on what it is, so that the same input does the same again.
    let cut = usize::from(*version) * 31 % (file.len() + 1);
    let (before, _) = read(&file[..cut]);
    assert!(before.len() <= whole.len() && before[..] == whole[..before.len()]);
}

fn frame(code: u8, id: u64, fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![code];
    bytes.extend((12 + fields.len() as u32).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend(fields);
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes
}

/// CRC-32 of ISO 3309, bit by bit: another one than the reader's.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

/// All that can be read, and why no more can.
fn read(file: &[u8]) -> (Vec<Transaction>, Option<EditsError>) {
    let mut found = Vec::new();
    let mut segment = match Segment::open(Cursor::new(file)) {
        Ok(Some(segment)) => segment,
        Ok(None) => return (found, None),
        Err(error) => return (found, Some(error)),
    };
    loop {
        match segment.transaction() {
            Ok(Some(transaction)) => found.push(transaction),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}
