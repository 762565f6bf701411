//! Which instructions compute a CRC, chosen for each call.

#[cfg(target_arch = "aarch64")]
use super::arm;
#[cfg(target_arch = "x86_64")]
use super::fold::{self, Constants};
use super::table::{self, CRC32_POLYNOMIAL, CRC32C_POLYNOMIAL, Tables};

/// One of the two polynomials, with all that kernels prepare for it.
pub(super) struct Polynomial {
    tables: Tables,
    #[cfg(target_arch = "x86_64")]
    constants: Constants,
    #[cfg(target_arch = "aarch64")]
    arm_update: fn(u32, &[u8]) -> u32,
}

pub(super) static CRC32: Polynomial = Polynomial {
    tables: table::tables(CRC32_POLYNOMIAL),
    #[cfg(target_arch = "x86_64")]
    constants: Constants::new(CRC32_POLYNOMIAL),
    #[cfg(target_arch = "aarch64")]
    arm_update: arm::update_crc32,
};

pub(super) static CRC32C: Polynomial = Polynomial {
    tables: table::tables(CRC32C_POLYNOMIAL),
    #[cfg(target_arch = "x86_64")]
    constants: Constants::new(CRC32C_POLYNOMIAL),
    #[cfg(target_arch = "aarch64")]
    arm_update: arm::update_crc32c,
};

/// The state after `data`, by the fastest kernel of this processor. States are the complements of
/// CRCs.
pub(super) fn update(polynomial: &Polynomial, state: u32, data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        let Polynomial { tables, constants } = polynomial;
        if fold::has_vectors() {
            return fold::update_by_vectors(constants, tables, state, data);
        }
        if fold::has_lanes() {
            return fold::update_by_lanes(constants, tables, state, data);
        }
    }
    #[cfg(target_arch = "aarch64")]
    if arm::is_available() {
        return (polynomial.arm_update)(state, data);
    }
    table::update(&polynomial.tables, state, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, kernel: impl Fn(&Polynomial, u32, &[u8]) -> u32) {
        let data: Vec<u8> = (0..3000u32).map(|i| (i.wrapping_mul(i) >> 3 ^ i) as u8).collect();
        for (of, polynomial) in [("CRC32", &CRC32), ("CRC32C", &CRC32C)] {
            for len in (0..1200).chain([2047, 2048, 2049, 2900]) {
                let data = &data[len % 67..][..len];
                for state in [0, !0, 0x1234_5678] {
                    let expected = table::update(&polynomial.tables, state, data);
                    let state = kernel(polynomial, state, data);
                    assert_eq!(state, expected, "{name}, {of}, {len} bytes");
                }
            }
        }
    }

    #[test]
    fn every_kernel_of_this_processor_computes_what_the_tables_do() {
        check("the chosen one", update);
        #[cfg(target_arch = "x86_64")]
        if fold::has_lanes() {
            check("lanes", |p, state, data| {
                fold::update_by_lanes(&p.constants, &p.tables, state, data)
            });
        }
        #[cfg(target_arch = "x86_64")]
        if fold::has_vectors() {
            check("vectors", |p, state, data| {
                fold::update_by_vectors(&p.constants, &p.tables, state, data)
            });
        }
    }
}
