//! Names of users, groups and attributes, which records have by number.

use crate::error::{ImageError, Malformed};
use crate::fields::Fields;
use crate::section::Section;
use std::collections::HashMap;

/// What a name is of. Since layout version -65 each kind has numbers of its own, told apart by their highest bits.
///
/// Source: Hadoop 3.5.0 `SerialNumberManager`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A user.
    User = 1,
    /// A group.
    Group = 2,
    /// An extended attribute.
    XAttr = 3,
}

/// The section STRING_TABLE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    mask_bits: u32,
    by_number: HashMap<u32, String>,
}

/// Kinds that have to be told apart.
const MASK_BITS_MAX: u32 = 8;

impl Names {
    /// Reads the section.
    pub fn read(mut section: Section<'_>) -> Result<Names, ImageError> {
        let mask_bits = section.required(|head| {
            let (mut bits, mut fields) = (0, Fields::of(head));
            while let Some((field, value)) = fields.next()? {
                if field == 2 {
                    bits = value.small()?;
                }
            }
            match bits {
                0..=MASK_BITS_MAX => Ok(bits),
                _ => Err(Malformed("names have too many kinds")),
            }
        })?;
        let mut by_number = HashMap::new();
        while let Some((number, text)) = section.record(entry)? {
            by_number.insert(number, text.to_string());
        }
        Ok(Names { mask_bits, by_number })
    }

    /// The name of that kind and number; none for a number that has none, as 0.
    pub fn get(&self, kind: NameKind, number: u32) -> Option<&str> {
        let mask = match self.mask_bits {
            0 => 0,
            bits => (kind as u32) << (32 - bits),
        };
        self.by_number.get(&(number | mask)).map(String::as_str)
    }
}

fn entry(message: &[u8]) -> Result<(u32, &str), Malformed> {
    let (mut number, mut text) = (0, "");
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => number = value.small()?,
            2 => text = value.text()?,
            _ => {}
        }
    }
    Ok((number, text))
}
