//! Which span of which trace something is done for, and how that is written.

use std::fmt::Write;

/// Length of a written context.
const LEN: usize = "00-".len() + 32 + "-".len() + 16 + "-01".len();

/// A span of a trace that is recorded. Traces that nobody records have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
}

impl Context {
    /// Reads what a caller has sent or an environment says (`traceparent`); `None` where it is something else, or says
    /// that the trace is not recorded.
    ///
    /// Source: W3C Trace Context, level 1, "traceparent Header".
    pub fn read(written: &[u8]) -> Option<Context> {
        let (head, rest) = written.split_at_checked(LEN)?;
        let [a, b, b'-', ids @ .., b'-', c, d] = head else { return None };
        let [version] = bytes(&[*a, *b])?;
        // Later versions may have more behind it.
        let ends_here = if version == 0 {
            rest.is_empty()
        } else {
            rest.first().is_none_or(|next| *next == b'-')
        };
        let (trace, span) = ids.split_at_checked(32)?;
        let (trace, span) = (bytes(trace)?, bytes(span.strip_prefix(b"-")?)?);
        let [flags] = bytes(&[*c, *d])?;
        let is_valid = version != u8::MAX && ends_here && trace != [0; 16] && span != [0; 8];
        (is_valid && flags & 1 == 1).then_some(Context { trace, span })
    }

    /// As it is sent.
    pub fn written(&self) -> String {
        format!("00-{}-{}-01", hex(&self.trace), hex(&self.span))
    }
}

/// The bytes that lower-case hexadecimal digits stand for.
fn bytes<const LEN: usize>(digits: &[u8]) -> Option<[u8; LEN]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if digits.len() != 2 * LEN {
        return None;
    }
    let mut read = [0; LEN];
    for (byte, pair) in read.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(read)
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_written_is_read() {
        let context = Context::read(WRITTEN.as_bytes()).unwrap();
        assert_eq!((context.trace[0], context.span[7]), (0x4b, 0xb7));
        assert_eq!(context.written(), WRITTEN);
        let later = format!("cc{}-what-the-future-will-be", &WRITTEN[2..]);
        assert_eq!(Context::read(later.as_bytes()), Some(context));
    }

    #[test]
    fn what_is_not_recorded_or_not_a_context_is_none() {
        let changed = |at: usize, to: &str| {
            let mut text = WRITTEN.to_string();
            text.replace_range(at..at + to.len(), to);
            text
        };
        for wrong in [
            changed(53, "00"),
            changed(0, "ff"),
            changed(3, &"0".repeat(32)),
            changed(36, &"0".repeat(16)),
            changed(3, "4B"),
            changed(3, "-"),
            changed(35, "_"),
            changed(2, "_"),
            WRITTEN.to_string() + "-",
            format!("01{}x", &WRITTEN[2..]),
            // The start of what Java's serialization makes.
            "\u{ac}\u{ed}\0\u{5}sr".repeat(8),
        ] {
            assert_eq!(Context::read(wrong.as_bytes()), None, "{wrong}");
        }
        for len in 0..WRITTEN.len() {
            assert_eq!(Context::read(&WRITTEN.as_bytes()[..len]), None);
        }
    }
}
