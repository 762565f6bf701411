use super::*;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::Write;

fn delimited(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        let mut len = message.len();
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend(message);
    }
    out
}

fn read(codec: Codec, bytes: &[u8]) -> Result<Vec<Vec<u8>>, ImageError> {
    let mut file = bytes;
    let mut section = Section::new("S".into(), codec, &mut file, bytes.len() as u64)?;
    let mut found = Vec::new();
    while let Some(message) = section.message()? {
        found.push(message.to_vec());
    }
    Ok(found)
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn streams_stand_one_behind_the_other() {
    let messages = vec![b"a".to_vec(), vec![7; 3 * READ_LEN], Vec::new(), b"end".to_vec()];
    let plain = delimited(&messages);
    assert_eq!(read(Codec::None, &plain).unwrap(), messages);
    // A part may end anywhere, also within a message.
    let (one, two) = plain.split_at(5);
    assert_eq!(read(Codec::Zlib, &[zlib(one), zlib(two)].concat()).unwrap(), messages);
    assert_eq!(read(Codec::Gzip, &[gzip(one), gzip(two)].concat()).unwrap(), messages);
    assert!(read(Codec::Zlib, &[]).unwrap().is_empty());
}

#[test]
fn no_length_is_believed() {
    let long = [0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(matches!(read(Codec::None, &long), Err(ImageError::TooLong { .. })));
    // 100 MB are promised, and two bytes come: the buffer does not grow.
    let promised = [0x80, 0xc2, 0xd7, 0x2f, 1, 2];
    let mut file = &promised[..];
    let mut section = Section::new("S".into(), Codec::None, &mut file, 6).unwrap();
    assert!(matches!(section.message(), Err(ImageError::Damaged { .. })));
    assert_eq!(section.buffer.len(), READ_LEN);
    assert!(matches!(read(Codec::Zlib, b"no zlib"), Err(ImageError::Io(_))));
}

proptest! {
    #[test]
    fn messages_come_back(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40)
    ) {
        prop_assert_eq!(read(Codec::None, &delimited(&messages)).unwrap(), messages);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(Codec::None, &bytes);
        let _ = read(Codec::Zlib, &bytes);
    }
}
