use super::*;

#[test]
fn bytes_of_the_default_header() {
    let header =
        MetaHeader { checksum: ChecksumTypeProto::ChecksumCrc32c, bytes_per_checksum: 512 };
    assert_eq!(header.encode(), [0, 1, 2, 0, 0, 2, 0]);
    assert_eq!(MetaHeader::decode(&[0, 1, 2, 0, 0, 2, 0, 9, 9]).expect("valid"), header);
}

#[test]
fn invalid_headers() {
    let check = |bytes: &[u8], expected: &str| {
        let error = MetaHeader::decode(bytes).expect_err("invalid");
        assert_eq!(error.to_string(), expected);
    };
    check(&[0, 1, 2, 0, 0, 2], "meta file header: needs 7 bytes, has 6");
    check(&[0, 2, 2, 0, 0, 2, 0], "meta file version: invalid value 2");
    check(&[0, 1, 3, 0, 0, 2, 0], "checksum type: invalid value 3");
    check(&[0, 1, 2, 0, 0, 0, 0], "bytes per checksum: invalid value 0");
    check(&[0, 1, 2, 0xff, 0xff, 0xff, 0xff], "bytes per checksum: invalid value 4294967295");
}

#[test]
fn lengths() {
    let check = |kind, block_len, expected| {
        let header = MetaHeader::new(kind, 512).expect("valid");
        assert_eq!(header.file_len(block_len), expected, "{kind} {block_len}");
    };
    check(2, 0, 7);
    check(2, 1, 11);
    check(2, 512, 11);
    check(2, 513, 15);
    check(1, 1 << 20, 7 + 8192);
    check(0, 1 << 20, 7);
}
