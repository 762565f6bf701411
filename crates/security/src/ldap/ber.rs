//! The Basic Encoding Rules as far as LDAP uses them: tags of one byte, definite lengths.
//!
//! Source: RFC 4511 section 5.1, X.690.

use super::error::LdapError;

/// Tags of elements that LDAP has everywhere.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;

/// What is beyond the short form of a length.
const LONG: u8 = 0x80;
/// Bytes of the longest length that is looked at.
const LEN_BYTES_MAX: usize = 4;

/// Appends an element with that content.
pub(super) fn put(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    match u8::try_from(content.len()) {
        Ok(len) if len < LONG => out.push(len),
        _ => {
            let len = content.len().to_be_bytes();
            let first = len.iter().position(|byte| *byte != 0).unwrap_or(len.len() - 1);
            let bytes = &len[first..];
            out.push(LONG | bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(content);
}

/// Appends an element with what is appended to its content.
pub(super) fn put_with(out: &mut Vec<u8>, tag: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    content(&mut inner);
    put(out, tag, &inner);
}

/// Appends a number.
pub(super) fn put_number(out: &mut Vec<u8>, tag: u8, number: u32) {
    let bytes = i64::from(number).to_be_bytes();
    // The sign needs its bit.
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let first = if bytes[first] >= 0x80 { first - 1 } else { first };
    put(out, tag, &bytes[first..]);
}

/// Elements one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element's tag and content.
    pub(super) fn next(&mut self) -> Result<(u8, &'a [u8]), LdapError> {
        let (head, content) = head(self.0)?.ok_or(LdapError::Malformed)?;
        let end = head.checked_add(content).filter(|end| *end <= self.0.len());
        let (element, rest) = self.0.split_at(end.ok_or(LdapError::Malformed)?);
        self.0 = rest;
        Ok((element[0], &element[head..]))
    }

    /// The content of the next element, which must have that tag.
    pub(super) fn content(&mut self, tag: u8) -> Result<&'a [u8], LdapError> {
        match self.next()? {
            (found, content) if found == tag => Ok(content),
            _ => Err(LdapError::Malformed),
        }
    }

    /// The elements in the next one.
    pub(super) fn inner(&mut self, tag: u8) -> Result<Reader<'a>, LdapError> {
        self.content(tag).map(Reader)
    }

    /// A number that is not below zero.
    pub(super) fn number(&mut self, tag: u8) -> Result<u32, LdapError> {
        let bytes = self.content(tag)?;
        if bytes.is_empty() || bytes.len() > 5 || bytes[0] >= 0x80 {
            return Err(LdapError::Malformed);
        }
        let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        u32::try_from(number).map_err(|_| LdapError::Malformed)
    }

    /// Text.
    pub(super) fn text(&mut self, tag: u8) -> Result<&'a str, LdapError> {
        std::str::from_utf8(self.content(tag)?).map_err(|_| LdapError::Malformed)
    }
}

/// Bytes of the head of the element that begins here, and of its content; `None` where more has to be read to know it.
pub(super) fn head(bytes: &[u8]) -> Result<Option<(usize, usize)>, LdapError> {
    let Some((_, rest)) = bytes.split_first() else { return Ok(None) };
    let Some((first, rest)) = rest.split_first() else { return Ok(None) };
    if *first < LONG {
        return Ok(Some((2, usize::from(*first))));
    }
    let count = usize::from(*first & !LONG);
    if count == 0 || count > LEN_BYTES_MAX {
        return Err(LdapError::Malformed);
    }
    let Some(len) = rest.get(..count) else { return Ok(None) };
    let len = len.iter().fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
    let len = usize::try_from(len).map_err(|_| LdapError::Malformed)?;
    Ok(Some((2 + count, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_numbers_have_their_shortest_forms() {
        for (number, want) in [
            (0, &[2, 1, 0][..]),
            (127, &[2, 1, 127]),
            (128, &[2, 2, 0, 128]),
            (256, &[2, 2, 1, 0]),
            (u32::MAX, &[2, 5, 0, 255, 255, 255, 255]),
        ] {
            let mut out = Vec::new();
            put_number(&mut out, INTEGER, number);
            assert_eq!(out, want);
            assert_eq!(Reader(&out).number(INTEGER).unwrap(), number);
        }
        for (len, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (256, &[4, 0x82, 1, 0]),
            (70_000, &[4, 0x83, 1, 0x11, 0x70]),
        ] {
            let mut out = Vec::new();
            put(&mut out, OCTETS, &vec![b'a'; len]);
            assert_eq!(&out[..out.len() - len], head);
            assert_eq!(Reader(&out).content(OCTETS).unwrap().len(), len);
            for cut in 0..head.len() {
                assert_eq!(super::head(&out[..cut]).unwrap(), None);
            }
            for cut in 0..out.len().min(300) {
                assert!(Reader(&out[..cut]).next().is_err());
            }
        }
    }

    #[test]
    fn what_ldap_does_not_use_is_refused() {
        assert!(head(&[4, 0x80, 0, 0]).is_err(), "an indefinite length");
        assert!(head(&[4, 0x85, 0, 0, 0, 0, 1]).is_err());
        assert!(Reader(&[2, 0]).number(INTEGER).is_err());
        assert!(Reader(&[2, 1, 0x80]).number(INTEGER).is_err());
        assert!(Reader(&[2, 6, 0, 1, 0, 0, 0, 0]).number(INTEGER).is_err());
        assert!(Reader(&[4, 1, 0xff]).text(OCTETS).is_err());
    }
}
