//! Lists of directives, such as `nonce="abc",qop=auth`, as DIGEST-MD5 sends them.
//!
//! Source: RFC 2831, section 7.1.

use crate::SaslError;

/// Longest list that is read. What Hadoop's clients send is below 3 KB, for tokens with long names.
const LEN_MAX: usize = 32 << 10;
/// Directives that are read.
const COUNT_MAX: usize = 64;

/// Directives by name, each once.
pub(crate) struct Directives(Vec<(String, String)>);

impl Directives {
    /// Reads a list.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Directives, SaslError> {
        if bytes.len() > LEN_MAX {
            return Err(malformed("it is too long"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("it is no text"))?;
        let mut rest = text.trim_start_matches(is_blank);
        let mut list: Vec<(String, String)> = Vec::new();
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix(',') {
                rest = behind.trim_start_matches(is_blank);
                continue;
            }
            let (name, behind) = rest.split_once('=').ok_or_else(|| malformed("no value"))?;
            let name = name.trim_end_matches(is_blank);
            if name.is_empty() || name.contains([',', '"', ' ', '\t', '\r', '\n']) {
                return Err(malformed("no name"));
            }
            let (value, behind) = value(behind.trim_start_matches(is_blank))?;
            rest = behind.trim_start_matches(is_blank);
            if !rest.is_empty() && !rest.starts_with(',') {
                return Err(malformed("no comma"));
            }
            // Realms may come more than once; the first counts.
            let is_known = list.iter().any(|(known, _)| known == name);
            if is_known && name != "realm" {
                return Err(malformed(&format!("{name} comes twice")));
            }
            if list.len() == COUNT_MAX {
                return Err(malformed("too many directives"));
            }
            if !is_known {
                list.push((name.to_owned(), value));
            }
        }
        Ok(Directives(list))
    }

    /// The value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a name that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&str, SaslError> {
        self.get(name).ok_or_else(|| malformed(&format!("Missing {name}.")))
    }

    /// The number of bytes that the other side takes at a time.
    pub(crate) fn max_buf(&self) -> Result<usize, SaslError> {
        let Some(text) = self.get("maxbuf") else { return Ok(MAX_BUF) };
        let number = text.parse().ok().filter(|len| (MAX_BUF_MIN..1 << 24).contains(len));
        number.ok_or_else(|| malformed("maxbuf"))
    }
}

/// What `maxbuf` is where it is not told.
pub(crate) const MAX_BUF: usize = 65536;
/// Less leaves no room for what encloses.
const MAX_BUF_MIN: usize = 64;

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n')
}

/// A value, and what follows it.
fn value(text: &str) -> Result<(String, &str), SaslError> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|char| char == ',' || is_blank(char)).unwrap_or(text.len());
        return match &text[..end] {
            "" => Err(malformed("no value")),
            value => Ok((value.to_owned(), &text[end..])),
        };
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, char) in quoted.char_indices() {
        match char {
            _ if escaped => {
                value.push(char);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Ok((value, &quoted[at + 1..])),
            _ => value.push(char),
        }
    }
    Err(malformed("a quote is not closed"))
}

/// Appends `name="value"`, and a comma before it where something is there already.
pub(crate) fn put_quoted(name: &str, value: &str, out: &mut String) {
    put_name(name, out);
    out.push('"');
    for char in value.chars() {
        if matches!(char, '"' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out.push('"');
}

/// Appends `name=value`, likewise.
pub(crate) fn put(name: &str, value: &str, out: &mut String) {
    put_name(name, out);
    out.push_str(value);
}

fn put_name(name: &str, out: &mut String) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(name);
    out.push('=');
}

pub(crate) fn malformed(what: &str) -> SaslError {
    SaslError(format!("DIGEST-MD5: digest response format violation. {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read() {
        let text = b" ,nonce = \"a\\\"b,c\" , qop=auth,,realm=\"x\",realm=\"y\",nc=00000001";
        let list = Directives::parse(text).unwrap();
        for (name, value) in
            [("nonce", "a\"b,c"), ("qop", "auth"), ("realm", "x"), ("nc", "00000001")]
        {
            assert_eq!(list.get(name), Some(value));
        }
        assert_eq!(list.get("cnonce"), None);
        for wrong in
            ["nonce", "=a", "a=", "a=\"b", "a=\"b\"c", "a b=c", "qop=auth,qop=auth", "a=\"b\\\""]
        {
            assert!(Directives::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Directives::parse(&[0xff]).is_err());
        assert!(Directives::parse(&vec![b','; LEN_MAX + 1]).is_err());
        for wrong in ["maxbuf=0", "maxbuf=16777216", "maxbuf=x", "maxbuf=-1"] {
            assert!(Directives::parse(wrong.as_bytes()).unwrap().max_buf().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: String, bytes: Vec<u8>) {
            let mut text = String::new();
            put("qop", "auth", &mut text);
            put_quoted("nonce", &value, &mut text);
            let list = Directives::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(list.get("nonce"), Some(value.as_str()));
            let _ = Directives::parse(&bytes);
        }
    }
}
