//! Extended attributes, and how people write their values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XAttr {
    /// Its name with the namespace before it: `user.origin`.
    pub name: String,
    /// Its value; empty when it has none.
    pub value: Vec<u8>,
}

/// How a value is written.
///
/// Source: Hadoop 3.5.0 `XAttrCodec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XAttrEncoding {
    /// `"text"`.
    Text,
    /// `0x` and hexadecimal digits.
    Hex,
    /// `0s` and base64.
    Base64,
}

impl XAttrEncoding {
    /// Writes a value.
    pub fn encode(self, value: &[u8]) -> String {
        match self {
            XAttrEncoding::Text => format!("\"{}\"", String::from_utf8_lossy(value)),
            XAttrEncoding::Hex => {
                let digits = value.iter().map(|byte| format!("{byte:02x}"));
                format!("0x{}", digits.collect::<String>())
            }
            XAttrEncoding::Base64 => format!("0s{}", STANDARD.encode(value)),
        }
    }

    /// The bytes of `0x...`, `0s...`, `"..."` or a plain text. Fails with a sentence for people.
    pub fn decode(text: &str) -> Result<Vec<u8>, String> {
        match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => {
                unhex(&text[2..]).ok_or_else(|| "Odd or bad hexadecimal digits.".to_string())
            }
            Some("0s") => STANDARD.decode(&text[2..]).map_err(|error| error.to_string()),
            _ => {
                let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                Ok(inner.unwrap_or(text).as_bytes().to_vec())
            }
        }
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written() {
        for (text, value) in [
            ("0x0aFF", &[10, 255][..]),
            ("0sAQI=", &[1, 2]),
            ("\"0\"", b"0"),
            ("a", b"a"),
            ("", b""),
        ] {
            assert_eq!(XAttrEncoding::decode(text).unwrap(), value, "{text}");
        }
        assert!(XAttrEncoding::decode("0x1").is_err() && XAttrEncoding::decode("0s!").is_err());
        for encoding in [XAttrEncoding::Text, XAttrEncoding::Hex, XAttrEncoding::Base64] {
            assert_eq!(XAttrEncoding::decode(&encoding.encode(b"a\x01")).unwrap(), b"a\x01");
        }
    }
}
