//! CRCs by table look-up, 16 bytes a step: for processors without carry-less multiplication, and for
//! the last bytes of the others.

/// The two polynomials without x^32, lowest power in the highest bit.
pub(super) const CRC32_POLYNOMIAL: u32 = 0xedb8_8320;
pub(super) const CRC32C_POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLE[n][b]`: what byte `b` contributes to the CRC when `n` more bytes follow it.
pub(super) type Tables = [[u32; 256]; 16];

/// The tables of a reflected polynomial.
pub(super) const fn tables(polynomial: u32) -> Tables {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 != 0 { polynomial } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut n = 1;
    while n < 16 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[n - 1][byte];
            tables[n][byte] = (crc >> 8) ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        n += 1;
    }
    tables
}

/// The state after `data`. States are the complements of CRCs.
pub(super) fn update(tables: &Tables, mut state: u32, data: &[u8]) -> u32 {
    let mut steps = data.chunks_exact(16);
    for step in &mut steps {
        let mut next = 0;
        for (i, &byte) in step.iter().enumerate() {
            let folded = if i < 4 { (state >> (8 * i)) as u8 } else { 0 };
            next ^= tables[15 - i][(byte ^ folded) as usize];
        }
        state = next;
    }
    for &byte in steps.remainder() {
        state = (state >> 8) ^ tables[0][(state as u8 ^ byte) as usize];
    }
    state
}
