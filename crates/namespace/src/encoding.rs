//! The bytes of log commands and store records.
//!
//! Integers are LEB128 (signed ones zigzag), strings and lists carry their count first, options and
//! enums a tag byte. A value has one encoding. Decoding never panics and never reserves more than the
//! input could hold. The format text is `docs/on-disk.md`; golden bytes are in `tests/it/golden.rs`.

use cairn_stripe::{BlockId, GenerationStamp, PolicyId};

/// Longest string or byte string that a record may hold.
pub const STRING_LEN_MAX: usize = 1 << 20;

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside a value.
    #[error("the record ends inside a value")]
    Truncated,
    /// Bytes are left over after the last value.
    #[error("{count} bytes follow the end of the record")]
    Trailing {
        /// How many.
        count: usize,
    },
    /// A number, tag or flag that the type does not have.
    #[error("{value} is no valid {what}")]
    Invalid {
        /// What was expected.
        what: &'static str,
        /// What was found.
        value: u64,
    },
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    NotUtf8,
    /// A string or list that is longer than the limit or than the input.
    #[error("a length of {len} exceeds its limit")]
    TooLong {
        /// The length found.
        len: u64,
    },
    /// A version of the format that this build does not know.
    #[error("record version {version} is unknown")]
    Version {
        /// The version found.
        version: u8,
    },
}

/// Appends values to a byte string.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
}

impl Encoder {
    /// An empty one.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// One that appends to `out`.
    pub fn onto(out: Vec<u8>) -> Encoder {
        Encoder { out }
    }

    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// One byte as it is.
    pub fn byte(&mut self, value: u8) {
        self.out.push(value);
    }

    /// An unsigned LEB128 number.
    pub fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// A length and the bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.unsigned(value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Bytes without a length.
    pub fn raw(&mut self, value: &[u8]) {
        self.out.extend_from_slice(value);
    }
}

/// Takes values from a byte string.
#[derive(Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Reads `input` from its start.
    pub fn new(input: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: input }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Fails unless everything was read.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(DecodeError::Trailing { count }),
        }
    }

    /// One byte as it is.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (&first, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// An unsigned LEB128 number in its shortest form.
    pub fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (shift == 63 && bits > 1) || (shift > 0 && byte == 0) {
                return Err(DecodeError::Invalid { what: "number", value: u64::from(byte) });
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Invalid { what: "number", value })
    }

    /// Exactly `len` bytes.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        if len > self.rest.len() {
            return Err(DecodeError::Truncated);
        }
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(taken)
    }

    /// A length of at most `STRING_LEN_MAX` and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.unsigned()?;
        if len > STRING_LEN_MAX as u64 {
            return Err(DecodeError::TooLong { len });
        }
        self.raw(len as usize)
    }

    /// A length of at most `STRING_LEN_MAX` and that many bytes of text.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::NotUtf8)
    }
}

/// A value with an encoding.
pub trait Encode {
    /// Appends the value.
    fn encode(&self, out: &mut Encoder);
}

/// A value that can be read back.
pub trait Decode: Sized {
    /// Reads one value.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// The bytes of `value` behind a version byte.
pub fn to_record(version: u8, value: &impl Encode) -> Vec<u8> {
    let mut out = Encoder::new();
    out.byte(version);
    value.encode(&mut out);
    out.into_bytes()
}

/// Reads back what [`to_record`] wrote; fails on any other version and on bytes left over.
pub fn from_record<T: Decode>(version: u8, bytes: &[u8]) -> Result<T, DecodeError> {
    let mut input = Decoder::new(bytes);
    match input.byte()? {
        found if found == version => {}
        found => return Err(DecodeError::Version { version: found }),
    }
    let value = T::decode(&mut input)?;
    input.finish()?;
    Ok(value)
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Encode for $type {
            fn encode(&self, out: &mut Encoder) {
                out.unsigned(u64::from(*self));
            }
        }
        impl Decode for $type {
            fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                let value = input.unsigned()?;
                <$type>::try_from(value)
                    .map_err(|_| DecodeError::Invalid { what: stringify!($type), value })
            }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

impl Encode for i64 {
    fn encode(&self, out: &mut Encoder) {
        out.unsigned(((self << 1) ^ (self >> 63)) as u64);
    }
}

impl Decode for i64 {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let value = input.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

impl Encode for i32 {
    fn encode(&self, out: &mut Encoder) {
        i64::from(*self).encode(out);
    }
}

impl Decode for i32 {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let value = i64::decode(input)?;
        i32::try_from(value).map_err(|_| DecodeError::Invalid { what: "i32", value: value as u64 })
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut Encoder) {
        out.byte(u8::from(*self));
    }
}

impl Decode for bool {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::Invalid { what: "flag", value: u64::from(value) }),
        }
    }
}

impl Encode for String {
    fn encode(&self, out: &mut Encoder) {
        out.bytes(self.as_bytes());
    }
}

impl Decode for String {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.text().map(str::to_owned)
    }
}

impl<const N: usize> Encode for [u8; N] {
    fn encode(&self, out: &mut Encoder) {
        out.raw(self);
    }
}

impl<const N: usize> Decode for [u8; N] {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut value = [0; N];
        value.copy_from_slice(input.raw(N)?);
        Ok(value)
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, out: &mut Encoder) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(if bool::decode(input)? { Some(T::decode(input)?) } else { None })
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, out: &mut Encoder) {
        out.unsigned(self.len() as u64);
        self.iter().for_each(|value| value.encode(out));
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let len = input.unsigned()?;
        // Every element takes a byte at least, so no longer list can follow.
        if len > input.remaining() as u64 {
            return Err(DecodeError::TooLong { len });
        }
        (0..len).map(|_| T::decode(input)).collect()
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
        self.1.encode(out);
    }
}

impl<A: Decode, B: Decode> Decode for (A, B) {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok((A::decode(input)?, B::decode(input)?))
    }
}

impl Encode for BlockId {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }
}

impl Decode for BlockId {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        i64::decode(input).map(BlockId)
    }
}

impl Encode for GenerationStamp {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }
}

impl Decode for GenerationStamp {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        u64::decode(input).map(GenerationStamp)
    }
}

impl Encode for PolicyId {
    fn encode(&self, out: &mut Encoder) {
        out.byte(self.0);
    }
}

impl Decode for PolicyId {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.byte().map(PolicyId)
    }
}

impl<T: Encode> Encode for Box<T> {
    fn encode(&self, out: &mut Encoder) {
        self.as_ref().encode(out);
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        T::decode(input).map(Box::new)
    }
}

/// Encodes a struct as its fields in the order given, which is the format.
macro_rules! encode_struct {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::encoding::Encode for $type {
            #[allow(unused_variables)]
            fn encode(&self, out: &mut $crate::encoding::Encoder) {
                $($crate::encoding::Encode::encode(&self.$field, out);)*
            }
        }
        impl $crate::encoding::Decode for $type {
            #[allow(unused_variables)]
            fn decode(
                input: &mut $crate::encoding::Decoder<'_>,
            ) -> Result<Self, $crate::encoding::DecodeError> {
                Ok(Self { $($field: $crate::encoding::Decode::decode(input)?),* })
            }
        }
    };
}

/// Encodes an enum as a tag byte and the variant's fields; tags are never reused. `or` names what reads former tags.
macro_rules! encode_enum {
    ($type:ident {
        $($tag:literal => $variant:ident $(($inner:ident))? $({ $($field:ident),* $(,)? })?),* $(,)?
    } $(or $former:path)?) => {
        impl $crate::encoding::Encode for $type {
            fn encode(&self, out: &mut $crate::encoding::Encoder) {
                match self {
                    $($type::$variant $(($inner))? $({ $($field),* })? => {
                        out.byte($tag);
                        $($crate::encoding::Encode::encode($inner, out);)?
                        $($($crate::encoding::Encode::encode($field, out);)*)?
                    })*
                }
            }
        }
        impl $crate::encoding::Decode for $type {
            fn decode(
                input: &mut $crate::encoding::Decoder<'_>,
            ) -> Result<Self, $crate::encoding::DecodeError> {
                match input.byte()? {
                    $($tag => {
                        $(let $inner = $crate::encoding::Decode::decode(input)?;)?
                        $($(let $field = $crate::encoding::Decode::decode(input)?;)*)?
                        Ok($type::$variant $(($inner))? $({ $($field),* })?)
                    })*
                    value => {
                        $(if let Some(former) = $former(value, input)? {
                            return Ok(former);
                        })?
                        Err($crate::encoding::DecodeError::Invalid {
                            what: stringify!($type),
                            value: u64::from(value),
                        })
                    }
                }
            }
        }
    };
}

pub(crate) use {encode_enum, encode_struct};
