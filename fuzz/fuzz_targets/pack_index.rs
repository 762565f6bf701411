//! Run with `cargo +nightly fuzz run pack_index`.
#![no_main]

use cairn_codec::crc::crc32c;
use cairn_stripe::pack::PackIndex;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Under a CRC that is right, so that what is in the index is looked at.
    let mut bytes = data.to_vec();
    bytes.extend(crc32c(0, data).to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    for end in [data, &bytes] {
        if let Ok(index) = PackIndex::from_tail(end, |bytes| crc32c(0, bytes)) {
            let tail = index.to_tail(|bytes| crc32c(0, bytes));
            assert_eq!(PackIndex::from_tail(&tail, |bytes| crc32c(0, bytes)), Ok(index));
        }
    }
});
