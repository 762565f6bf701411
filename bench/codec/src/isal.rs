//! The parts of ISA-L that compute erasure codes and CRCs.

// Links libisal; its own interface covers compression only.
use isal as _;
use std::ffi::{c_int, c_uchar};

unsafe extern "C" {
    fn gf_gen_cauchy1_matrix(a: *mut c_uchar, m: c_int, k: c_int);
    fn gf_invert_matrix(input: *mut c_uchar, output: *mut c_uchar, n: c_int) -> c_int;
    fn ec_init_tables(k: c_int, rows: c_int, a: *const c_uchar, tables: *mut c_uchar);
    fn ec_encode_data(
        len: c_int,
        k: c_int,
        rows: c_int,
        tables: *const c_uchar,
        data: *const *const c_uchar,
        coding: *const *mut c_uchar,
    );
    fn crc32_iscsi(data: *const c_uchar, len: c_int, seed: u32) -> u32;
    fn crc32_gzip_refl(seed: u32, data: *const c_uchar, len: u64) -> u32;
}

/// Tables that give `rows` outputs from `k` sources. They are made once, outside of what is timed.
pub struct Tables {
    k: usize,
    rows: usize,
    bytes: Vec<u8>,
}

impl Tables {
    /// The tables that encode.
    pub fn encode(k: usize, m: usize) -> Tables {
        Tables::new(k, m, &cauchy(k, m)[k * k..])
    }

    /// The tables that rebuild the first `lost` data units from the other k + m - `lost`.
    pub fn decode(k: usize, m: usize, lost: usize) -> Tables {
        let mut square = cauchy(k, m)[lost * k..][..k * k].to_vec();
        let mut inverse = vec![0; k * k];
        // SAFETY: both matrices are k x k.
        let code =
            unsafe { gf_invert_matrix(square.as_mut_ptr(), inverse.as_mut_ptr(), k as c_int) };
        assert_eq!(code, 0, "a Cauchy matrix is regular");
        Tables::new(k, lost, &inverse[..lost * k])
    }

    fn new(k: usize, rows: usize, matrix: &[u8]) -> Tables {
        assert_eq!(matrix.len(), rows * k);
        let mut bytes = vec![0; 32 * k * rows];
        // SAFETY: ISA-L asks for 32 bytes per coefficient.
        unsafe {
            ec_init_tables(k as c_int, rows as c_int, matrix.as_ptr(), bytes.as_mut_ptr());
        }
        Tables { k, rows, bytes }
    }

    /// Computes `outputs` from `sources`.
    pub fn multiply(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let len = sources[0].len();
        assert!(sources.len() == self.k && outputs.len() == self.rows);
        assert!(sources.iter().all(|source| source.len() == len));
        assert!(outputs.iter().all(|output| output.len() == len));
        let sources: Vec<_> = sources.iter().map(|source| source.as_ptr()).collect();
        let outputs: Vec<_> = outputs.iter_mut().map(|output| output.as_mut_ptr()).collect();
        // SAFETY: counts and lengths were just checked.
        unsafe {
            ec_encode_data(
                len as c_int,
                self.k as c_int,
                self.rows as c_int,
                self.bytes.as_ptr(),
                sources.as_ptr(),
                outputs.as_ptr(),
            );
        }
    }
}

fn cauchy(k: usize, m: usize) -> Vec<u8> {
    let mut matrix = vec![0; (k + m) * k];
    // SAFETY: the matrix has k + m rows and k columns.
    unsafe { gf_gen_cauchy1_matrix(matrix.as_mut_ptr(), (k + m) as c_int, k as c_int) };
    matrix
}

/// CRC32C, from 0.
pub fn crc32c(data: &[u8]) -> u32 {
    // SAFETY: pointer and length are those of a slice.
    !unsafe { crc32_iscsi(data.as_ptr(), data.len() as c_int, !0) }
}

/// CRC32, from 0.
pub fn crc32(data: &[u8]) -> u32 {
    // SAFETY: pointer and length are those of a slice.
    unsafe { crc32_gzip_refl(0, data.as_ptr(), data.len() as u64) }
}
