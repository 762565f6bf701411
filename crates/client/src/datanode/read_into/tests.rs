use super::*;

#[test]
fn a_shape_is_remembered() {
    let shape = Shape::default();
    let usual = Form { chunk_len: 512, kind: ChecksumKind::Crc32c, packet_len: 256 << 10 };
    assert_eq!(shape.form(), usual);
    shape.note(1 << 20, ChecksumKind::Crc32, 16 << 20);
    let noted = Form { chunk_len: 1 << 20, kind: ChecksumKind::Crc32, packet_len: 16 << 20 };
    assert_eq!(shape.form(), noted);
}
