//! Messages of LDAP, as far as it takes to bind and to search.
//!
//! A server's answers are read within bounds; who talks to one, and what it is asked for, is not known here. A library was
//! looked at and not taken: it brings some fifty others, and puts no bound on what it reads.
//!
//! Source: RFC 4511.

mod ber;
mod error;
mod filter;

use ber::{BOOLEAN, ENUMERATED, INTEGER, OCTETS, Reader, SEQUENCE, put, put_number, put_with};

pub use error::LdapError;
pub use filter::{encode as encode_filter, filled};

/// Bytes of the longest message that is read.
pub const MESSAGE_MAX: usize = 4 << 20;

const VERSION: u32 = 3;
const BIND: u8 = 0x60;
const BOUND: u8 = 0x61;
const UNBIND: u8 = 0x42;
const SEARCH: u8 = 0x63;
const FOUND: u8 = 0x64;
const FOUND_ALL: u8 = 0x65;
const ELSEWHERE: u8 = 0x73;
/// A password, as it is.
const SIMPLE: u8 = 0x80;
/// Everything below, wherever aliases lead.
const SUBTREE: u32 = 2;
const FOLLOW_ALWAYS: u32 = 3;
/// Results that are no failure: all was found, or as much as was asked for.
const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;

/// A request to bind, with a password; an empty name and password for nobody.
pub fn bind(id: u32, name: &str, password: &str) -> Vec<u8> {
    message(id, |out| {
        put_with(out, BIND, |out| {
            put_number(out, INTEGER, VERSION);
            put(out, OCTETS, name.as_bytes());
            put(out, SIMPLE, password.as_bytes());
        });
    })
}

/// The end of a conversation.
pub fn unbind(id: u32) -> Vec<u8> {
    message(id, |out| put(out, UNBIND, &[]))
}

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// Below which entry.
    pub base: &'a str,
    /// By [`encode_filter`].
    pub filter: &'a [u8],
    /// Which attributes are wanted.
    pub attributes: &'a [&'a str],
    /// Entries at most; 0 for all.
    pub entries_max: u32,
    /// Seconds that the server may take; 0 for any.
    pub seconds_max: u32,
}

/// A request to search.
pub fn search(id: u32, wanted: &Search<'_>) -> Vec<u8> {
    message(id, |out| {
        put_with(out, SEARCH, |out| {
            put(out, OCTETS, wanted.base.as_bytes());
            put_number(out, ENUMERATED, SUBTREE);
            put_number(out, ENUMERATED, FOLLOW_ALWAYS);
            put_number(out, INTEGER, wanted.entries_max);
            put_number(out, INTEGER, wanted.seconds_max);
            put(out, BOOLEAN, &[0]);
            out.extend_from_slice(wanted.filter);
            put_with(out, SEQUENCE, |out| {
                wanted.attributes.iter().for_each(|name| put(out, OCTETS, name.as_bytes()));
            });
        });
    })
}

fn message(id: u32, operation: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_with(&mut out, SEQUENCE, |out| {
        put_number(out, INTEGER, id);
        operation(out);
    });
    out
}

/// An entry of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its distinguished name.
    pub name: String,
    /// Its attributes that were wanted. Values that are no text are left out.
    pub attributes: Vec<(String, Vec<String>)>,
}

impl Entry {
    /// All values of an attribute, whose name counts without regard to case.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let named =
            self.attributes.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name));
        named.flat_map(|(_, values)| values).map(String::as_str)
    }
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It knows who asks.
    Bound,
    /// One that was searched for.
    Found(Entry),
    /// That is all.
    FoundAll,
    /// More is elsewhere, or something that no answer is about.
    Other,
}

/// How many bytes the message has that begins here; `None` where more has to be read to know it.
pub fn message_len(bytes: &[u8]) -> Result<Option<usize>, LdapError> {
    let Some((head, content)) = ber::head(bytes)? else { return Ok(None) };
    match head.checked_add(content).filter(|len| *len <= MESSAGE_MAX) {
        Some(len) if bytes[0] == SEQUENCE => Ok(Some(len)),
        _ => Err(LdapError::Malformed),
    }
}

/// Reads a message, and which request it answers.
pub fn read(message: &[u8]) -> Result<(u32, Said), LdapError> {
    let mut message = Reader(message).inner(SEQUENCE)?;
    let id = message.number(INTEGER)?;
    let (tag, content) = message.next()?;
    let said = match tag {
        BOUND => result(content, &[SUCCESS]).map(|()| Said::Bound)?,
        FOUND => Said::Found(entry(content)?),
        FOUND_ALL => result(content, &[SUCCESS, SIZE_LIMIT_EXCEEDED]).map(|()| Said::FoundAll)?,
        ELSEWHERE => Said::Other,
        _ if id == 0 => Said::Other,
        _ => return Err(LdapError::Malformed),
    };
    Ok((id, said))
}

fn result(content: &[u8], good: &[u32]) -> Result<(), LdapError> {
    let mut result = Reader(content);
    let code = result.number(ENUMERATED)?;
    if good.contains(&code) {
        return Ok(());
    }
    result.content(OCTETS)?;
    let message = String::from_utf8_lossy(result.content(OCTETS)?);
    Err(LdapError::Refused { code, message: message.chars().take(500).collect() })
}

fn entry(content: &[u8]) -> Result<Entry, LdapError> {
    let mut reader = Reader(content);
    let name = reader.text(OCTETS)?.to_owned();
    let mut found = reader.inner(SEQUENCE)?;
    let mut attributes = Vec::new();
    while !found.is_at_end() {
        let mut attribute = found.inner(SEQUENCE)?;
        let name = attribute.text(OCTETS)?.to_owned();
        let (mut values, mut texts) = (attribute.inner(SET)?, Vec::new());
        while !values.is_at_end() {
            texts.extend(std::str::from_utf8(values.content(OCTETS)?).map(str::to_owned));
        }
        attributes.push((name, texts));
    }
    Ok(Entry { name, attributes })
}

/// Values of an attribute.
const SET: u8 = 0x31;

#[cfg(test)]
mod tests;
