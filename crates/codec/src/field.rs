//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 and the generator 2.
//!
//! All tables are computed at compile time. Addition is exclusive or.
//!
//! Source: Hadoop 3.5.0 `GaloisField` (primitive polynomial 285) and `GF256`.

/// The field's polynomial without its leading term.
const POLYNOMIAL: u8 = 0x1d;

/// `a * b` by shifting and adding.
const fn multiply_slowly(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { POLYNOMIAL } else { 0 };
        b >>= 1;
    }
    product
}

/// `PRODUCTS[a][b] = a * b`: one row serves all bytes that one coefficient multiplies.
pub(crate) static PRODUCTS: [[u8; 256]; 256] = products();

const fn products() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 1;
    while a < 256 {
        // a * 1, then each a * b from a * (b / 2): far fewer compile-time steps than multiplying.
        let mut b = 1;
        while b < 256 {
            let half = if b == 1 { 0 } else { table[a][b / 2] };
            let double = (half << 1) ^ if half & 0x80 != 0 { POLYNOMIAL } else { 0 };
            table[a][b] = double ^ if b & 1 != 0 { a as u8 } else { 0 };
            b += 1;
        }
        a += 1;
    }
    table
}

/// `NIBBLES[c]`: the products of `c` with 0..16, then with 0, 16, 32, .. 240.
///
/// Two 16-byte look-ups and one addition multiply a byte: what byte shuffles do for a whole vector.
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
pub(crate) static NIBBLES: [[u8; 32]; 256] = nibbles();

const fn nibbles() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut i = 0;
        while i < 16 {
            table[c][i] = multiply_slowly(c as u8, i as u8);
            table[c][16 + i] = multiply_slowly(c as u8, (i as u8) << 4);
            i += 1;
        }
        c += 1;
    }
    table
}

/// `AFFINE[c]`: multiplication by `c` as the 8 x 8 bit matrix that `GF2P8AFFINEQB` takes.
///
/// Byte `7 - i` of the matrix selects the input bits that add up to output bit `i`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) static AFFINE: [u64; 256] = affine();

const fn affine() -> [u64; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut matrix = 0u64;
        let mut input_bit = 0;
        while input_bit < 8 {
            let column = multiply_slowly(c as u8, 1 << input_bit);
            let mut output_bit = 0;
            while output_bit < 8 {
                if column >> output_bit & 1 != 0 {
                    matrix |= 1 << ((7 - output_bit) * 8 + input_bit);
                }
                output_bit += 1;
            }
            input_bit += 1;
        }
        table[c] = matrix;
        c += 1;
    }
    table
}

/// `a * b`, for coefficients.
///
/// Goes through logarithms: their tables stay in the nearest cache, [`PRODUCTS`] does not.
pub(crate) fn multiply(a: u8, b: u8) -> u8 {
    match a == 0 || b == 0 {
        true => 0,
        false => POWERS[LOGARITHMS[a as usize] as usize + LOGARITHMS[b as usize] as usize],
    }
}

/// `2^exponent`.
pub(crate) fn power_of_two(exponent: usize) -> u8 {
    POWERS[exponent % 255]
}

/// `1 / a`. Panics if `a` is zero, which has no inverse.
pub(crate) fn invert(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    POWERS[255 - LOGARITHMS[a as usize] as usize]
}

/// `POWERS[n] = 2^n`, twice round the field's 255 powers so that sums of logarithms index it.
static POWERS: [u8; 510] = powers();

const fn powers() -> [u8; 510] {
    let mut table = [1; 510];
    let mut n = 1;
    while n < 510 {
        table[n] = multiply_slowly(table[n - 1], 2);
        n += 1;
    }
    table
}

/// `2^LOGARITHMS[a] = a`. Zero has no logarithm.
static LOGARITHMS: [u8; 256] = logarithms();

const fn logarithms() -> [u8; 256] {
    let powers = powers();
    let mut table = [0; 256];
    let mut n = 0;
    while n < 255 {
        table[powers[n] as usize] = n as u8;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_shifting_and_adding() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                assert_eq!(multiply(a, b), multiply_slowly(a, b), "{a} * {b}");
                assert_eq!(PRODUCTS[a as usize][b as usize], multiply_slowly(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn two_generates_every_element_but_zero() {
        let mut seen = [false; 256];
        for exponent in 0..255 {
            seen[power_of_two(exponent) as usize] = true;
        }
        assert!(!seen[0] && seen[1..].iter().all(|&s| s));
    }

    #[test]
    fn every_element_but_zero_has_an_inverse() {
        for a in 1..=255 {
            assert_eq!(multiply(a, invert(a)), 1, "1 / {a}");
        }
    }

    #[test]
    fn nibbles_and_bit_matrices_multiply() {
        for c in 0..=255u8 {
            for x in 0..=255u8 {
                let table = &NIBBLES[c as usize];
                let by_nibbles = table[(x & 15) as usize] ^ table[16 + (x >> 4) as usize];
                assert_eq!(by_nibbles, multiply(c, x), "{c} * {x}");
                let rows = AFFINE[c as usize].to_be_bytes();
                let by_bits = (0..8).map(|i| ((rows[i] & x).count_ones() as u8 & 1) << i).sum();
                assert_eq!(multiply(c, x), by_bits, "{c} * {x}");
            }
        }
    }
}
