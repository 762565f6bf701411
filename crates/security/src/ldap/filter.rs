//! Search filters as text, with places for values, and as what goes to a server.
//!
//! Source: RFC 4515, RFC 4511 section 4.5.1.7.

use super::ber::{BOOLEAN, OCTETS, SEQUENCE, put, put_with};
use super::error::LdapError;

/// Longest text of a filter, bytes, and how deep filters may be in each other.
const TEXT_MAX: usize = 64 << 10;
const DEPTH_MAX: usize = 32;

const AND: u8 = 0xa0;
const OR: u8 = 0xa1;
const NOT: u8 = 0xa2;
const EQUAL: u8 = 0xa3;
const SUBSTRINGS: u8 = 0xa4;
const AT_LEAST: u8 = 0xa5;
const AT_MOST: u8 = 0xa6;
const PRESENT: u8 = 0x87;
const LIKE: u8 = 0xa8;
const EXTENSIBLE: u8 = 0xa9;

/// A filter's text with `{0}`, `{1}` and so on replaced by values, of which no byte can change what the filter is.
pub fn filled(template: &str, values: &[&str]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, place) = rest.split_at(at);
        out.push_str(before);
        let named = place[1..].split_once('}');
        let value = named
            .and_then(|(number, after)| Some((values.get(number.parse::<usize>().ok()?)?, after)));
        match value {
            Some((value, after)) => {
                escape(&mut out, value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = &place[1..];
            }
        }
    }
    out + rest
}

/// Appends a value, with what has a meaning in filters written as its number.
fn escape(out: &mut String, value: &str) {
    for char in value.chars() {
        match char {
            '\\' => out.push_str("\\5c"),
            '*' => out.push_str("\\2a"),
            '(' => out.push_str("\\28"),
            ')' => out.push_str("\\29"),
            '\0' => out.push_str("\\00"),
            other => out.push(other),
        }
    }
}

/// A filter as a server gets it. The outermost parentheses may be left out.
pub fn encode(text: &str) -> Result<Vec<u8>, LdapError> {
    let wrong = || LdapError::Filter(text.chars().take(200).collect());
    let trimmed = text.trim();
    if trimmed.len() > TEXT_MAX {
        return Err(wrong());
    }
    let whole = match trimmed.starts_with('(') {
        true => trimmed.to_owned(),
        false => format!("({trimmed})"),
    };
    let mut out = Vec::new();
    match filter(&whole, 0, &mut out) {
        Some(rest) if rest.trim().is_empty() => Ok(out),
        _ => Err(wrong()),
    }
}

/// Appends the filter that begins here, and gives what is behind it.
fn filter<'a>(text: &'a str, depth: usize, out: &mut Vec<u8>) -> Option<&'a str> {
    if depth > DEPTH_MAX {
        return None;
    }
    let inner = text.strip_prefix('(')?.trim_start();
    let several = |tag, inner: &'a str, out: &mut Vec<u8>| {
        let (mut rest, mut content) = (inner.trim_start(), Vec::new());
        while rest.starts_with('(') {
            rest = filter(rest, depth + 1, &mut content)?.trim_start();
        }
        put(out, tag, &content);
        rest.strip_prefix(')')
    };
    match inner.as_bytes().first()? {
        b'&' => several(AND, &inner[1..], out),
        b'|' => several(OR, &inner[1..], out),
        b'!' => {
            let mut content = Vec::new();
            let rest = filter(inner[1..].trim_start(), depth + 1, &mut content)?;
            put(out, NOT, &content);
            rest.trim_start().strip_prefix(')')
        }
        _ => {
            let (item_text, rest) = inner.split_once(')')?;
            item(item_text, out)?;
            Some(rest)
        }
    }
}

/// Appends what compares one attribute.
fn item(text: &str, out: &mut Vec<u8>) -> Option<()> {
    if text.contains('(') {
        return None;
    }
    let (left, value) = text.split_once('=')?;
    let (name, tag) = match left.as_bytes().last()? {
        b'>' => (&left[..left.len() - 1], AT_LEAST),
        b'<' => (&left[..left.len() - 1], AT_MOST),
        b'~' => (&left[..left.len() - 1], LIKE),
        b':' => return extensible(&left[..left.len() - 1], value, out),
        _ => (left, EQUAL),
    };
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    if tag == EQUAL && value == "*" {
        put(out, PRESENT, name.as_bytes());
        return Some(());
    }
    if tag == EQUAL && value.contains('*') {
        return substrings(name, value, out);
    }
    let value = unescaped(value)?;
    put_with(out, tag, |out| {
        put(out, OCTETS, name.as_bytes());
        put(out, OCTETS, &value);
    });
    Some(())
}

/// A value with `*` for anything.
fn substrings(name: &str, value: &str, out: &mut Vec<u8>) -> Option<()> {
    let parts = value.split('*').map(unescaped).collect::<Option<Vec<_>>>()?;
    let last = parts.len() - 1;
    let mut content = Vec::new();
    for (number, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let place = match number {
            0 => 0x80,
            number if number == last => 0x82,
            _ => 0x81,
        };
        put(&mut content, place, part);
    }
    put_with(out, SUBSTRINGS, |out| {
        put(out, OCTETS, name.as_bytes());
        put(out, SEQUENCE, &content);
    });
    Some(())
}

/// `name:dn:rule:=value`, of which all but the value may be left out. Directories of Microsoft follow members of members by
/// such a rule.
fn extensible(left: &str, value: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut parts = left.split(':');
    let name = parts.next()?.trim();
    let mut rest: Vec<&str> = parts.collect();
    let of_dn = rest.first().is_some_and(|part| part.eq_ignore_ascii_case("dn"));
    if of_dn {
        rest.remove(0);
    }
    let rule = match rest[..] {
        [] => "",
        [rule] if !rule.is_empty() => rule,
        _ => return None,
    };
    if name.is_empty() && rule.is_empty() {
        return None;
    }
    let value = unescaped(value)?;
    put_with(out, EXTENSIBLE, |out| {
        if !rule.is_empty() {
            put(out, 0x81, rule.as_bytes());
        }
        if !name.is_empty() {
            put(out, 0x82, name.as_bytes());
        }
        put(out, 0x83, &value);
        if of_dn {
            put(out, 0x80 | BOOLEAN << 2, &[0xff]);
        }
    });
    Some(())
}

/// The bytes of a value.
fn unescaped(value: &str) -> Option<Vec<u8>> {
    let mut bytes = value.bytes();
    let mut out = Vec::with_capacity(value.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Option<String> {
        encode(text).ok().map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    #[test]
    fn filters_are_those_of_the_standard() {
        for (text, want) in [
            ("(cn=a)", "a3070402636e040161"),
            ("cn=a", "a3070402636e040161"),
            ("(cn=*)", "8702636e"),
            ("(cn>=a)", "a5070402636e040161"),
            ("(cn<=a)", "a6070402636e040161"),
            ("(cn~=a)", "a8070402636e040161"),
            ("(cn=\\2a\\29)", "a3080402636e04022a29"),
            ("(cn=)", "a3060402636e0400"),
            ("(!(cn=*))", "a2048702636e"),
            ("(&(cn=*)(|(a=*)(b=*)))", "a00c8702636ea106870161870162"),
            (" (& (cn=*) (a=*) ) ", "a0078702636e870161"),
            ("(&)", "a000"),
            ("(cn=a*b*c)", "a40f0402636e3009800161810162820163"),
            ("(cn=*b*)", "a4090402636e3003810162"),
            ("(m:1.2:=x)", "a90b8103312e3282016d830178"),
            ("(m:dn:=x)", "a90982016d8301788401ff"),
        ] {
            assert_eq!(hex(text).as_deref(), Some(want), "{text}");
        }
        for wrong in [
            "",
            "()",
            "(",
            "(cn)",
            "(cn=a",
            "cn=a)",
            "(cn=a)(b=c)",
            "(=a)",
            "(:=a)",
            "(cn=\\2)",
            "(cn=\\zz)",
            "(!cn=a)",
            "(&(cn=a)",
            "(cn=(a))",
            "(m:1:2:=x)",
        ] {
            assert_eq!(hex(wrong), None, "{wrong}");
        }
        let deep = format!("{}(a=*){}", "(!".repeat(1000), ")".repeat(1000));
        assert_eq!(hex(&deep), None);
    }

    #[test]
    fn values_change_nothing_but_what_is_compared() {
        let template = "(&(objectClass=person)(uid={0}))";
        assert_eq!(filled(template, &["ann"]), "(&(objectClass=person)(uid=ann))");
        let evil = filled(template, &["*)(uid=root\\\0"]);
        assert_eq!(evil, "(&(objectClass=person)(uid=\\2a\\29\\28uid=root\\5c\\00))");
        assert!(encode(&evil).is_ok());
        assert_eq!(filled("{1}{0}{2}{x}{", &["a{1}", "b"]), "ba{1}{2}{x}{");
    }
}
