//! Fields of a protobuf message, one after the other, without copying.

use crate::error::Malformed;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Value::Number(number) => Ok(number),
            _ => Err(Malformed("a field is no number")),
        }
    }

    pub fn small(self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number has more than 32 bits"))
    }

    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed("a field is no bytes")),
        }
    }

    pub fn fixed64(self) -> Result<u64, Malformed> {
        match self {
            Value::Fixed64(number) => Ok(number),
            _ => Err(Malformed("a field is no fixed64")),
        }
    }

    pub fn fixed32(self) -> Result<u32, Malformed> {
        match self {
            Value::Fixed32(number) => Ok(number),
            _ => Err(Malformed("a field is no fixed32")),
        }
    }

    pub fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

/// A number of seven bits a byte, the lowest first.
pub(crate) fn number(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (byte, behind) = rest.split_first().ok_or(Malformed("a number ends early"))?;
        *rest = behind;
        if shift == 63 && *byte > 1 {
            return Err(Malformed("a number has more than 64 bits"));
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        shift += 7;
    }
}

/// Goes over a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The next field with its number; none at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = number(&mut self.rest)?;
        let value = match tag & 7 {
            0 => Value::Number(number(&mut self.rest)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let len = number(&mut self.rest)?;
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let cut = self.rest.split_at_checked(len);
                let (bytes, rest) = cut.ok_or(Malformed("a field ends early"))?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Malformed("a field has a type that is not known")),
        };
        let field = u32::try_from(tag >> 3).ok().filter(|field| *field > 0);
        Ok(Some((field.ok_or(Malformed("a field has a number that is not known"))?, value)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) =
            self.rest.split_first_chunk().ok_or(Malformed("a number ends early"))?;
        self.rest = rest;
        Ok(*bytes)
    }
}

/// Numbers of a repeated field, whether they stand in one value or each in its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packed<'a> {
    One(u64),
    Many(&'a [u8]),
}

impl<'a> Packed<'a> {
    pub fn of(value: Value<'a>) -> Result<Packed<'a>, Malformed> {
        match value {
            Value::Number(number) => Ok(Packed::One(number)),
            Value::Bytes(bytes) => Ok(Packed::Many(bytes)),
            _ => Err(Malformed("a field is no list of numbers")),
        }
    }

    /// Gives each of them.
    pub fn each(self, mut take: impl FnMut(u64) -> Result<(), Malformed>) -> Result<(), Malformed> {
        match self {
            Packed::One(number) => take(number),
            Packed::Many(mut rest) => {
                while !rest.is_empty() {
                    take(number(&mut rest)?)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let mut fields = Fields::of(&message);
        assert_eq!(fields.next(), Ok(Some((1, Value::Number(150)))));
        assert_eq!(fields.next(), Ok(Some((2, Value::Bytes(b"hi")))));
        assert_eq!(fields.next(), Ok(Some((3, Value::Fixed32(1)))));
        assert_eq!(fields.next(), Ok(Some((4, Value::Fixed64(2)))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn what_ends_early_is_an_error() {
        for message in [&[0x08][..], &[0x08, 0x80], &[0x12, 5, 1], &[0x1d, 1], &[0x0b], &[0x00, 1]]
        {
            assert!(Fields::of(message).next().is_err(), "{message:?}");
        }
        let too_large = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(Fields::of(&too_large).next().is_err());
    }
}
