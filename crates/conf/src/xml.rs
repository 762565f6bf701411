//! Hadoop's configuration files: `<configuration>` with one `<property>` a key.

use anyhow::{Context, Result, bail};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Decoder, Reader};
use std::fmt::Write as _;

/// One `<property>` of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Property {
    /// The key.
    pub name: String,
    /// The text as it stands in the file; `None` where there is none, which sets nothing.
    pub value: Option<String>,
    /// Whether later files may change it.
    pub is_final: bool,
}

/// The properties of a file's text, in their order.
pub fn parse(text: &str) -> Result<Vec<Property>> {
    let mut reader = Reader::from_str(text);
    let mut properties = Vec::new();
    let mut path: Vec<Vec<u8>> = Vec::new();
    let mut current = Property::default();
    let mut word = String::new();
    let mut is_there = false;
    loop {
        match reader.read_event()? {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == b"include" => {
                bail!("it includes another file, which is not supported")
            }
            Event::Empty(tag) if path.len() == 1 && tag.local_name().as_ref() == b"property" => {
                properties.extend(
                    Some(short_form(&tag, reader.decoder())?)
                        .filter(|short| !short.name.is_empty()),
                );
            }
            Event::Start(tag) => {
                if path.is_empty() && tag.local_name().as_ref() != b"configuration" {
                    bail!("it is no configuration");
                }
                is_there = true;
                path.push(tag.local_name().as_ref().to_vec());
                word.clear();
                if path.len() == 2 {
                    current = short_form(&tag, reader.decoder())?;
                }
            }
            Event::Text(piece) => word.push_str(&piece.decode()?),
            Event::CData(piece) => word.push_str(&String::from_utf8_lossy(&piece)),
            Event::GeneralRef(name) => word.push(character(&name)?),
            Event::End(_) => {
                close(&path, &mut current, &word, &mut properties);
                path.pop();
                word.clear();
            }
            Event::Empty(tag) if tag.local_name().as_ref() == b"configuration" => is_there = true,
            Event::Eof if path.is_empty() && is_there => return Ok(properties),
            Event::Eof if path.is_empty() => bail!("there is no configuration in it"),
            Event::Eof => bail!("it ends inside <{}>", String::from_utf8_lossy(&path.concat())),
            _ => {}
        }
    }
}

/// What the attributes of a `<property>` say.
///
/// Source: Hadoop 3.5.0 `Configuration.Parser#handleStartProperty`.
fn short_form(tag: &BytesStart<'_>, decoder: Decoder) -> Result<Property> {
    let mut property = Property::default();
    for attribute in tag.attributes() {
        let attribute = attribute?;
        let value = attribute.decode_and_unescape_value(decoder)?.into_owned();
        match attribute.key.local_name().as_ref() {
            b"name" => property.name = value,
            b"value" => property.value = Some(value),
            b"final" => property.is_final = value == "true",
            _ => {}
        }
    }
    Ok(property)
}

/// Source: Hadoop 3.5.0 `Configuration.Parser#handleEndElement`: an element without text has no value.
fn close(path: &[Vec<u8>], current: &mut Property, word: &str, out: &mut Vec<Property>) {
    let names: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
    match names.as_slice() {
        [b"configuration", b"property", b"name"] => current.name = word.trim().to_string(),
        [b"configuration", b"property", b"value"] if !word.is_empty() => {
            current.value = Some(word.to_string());
        }
        [b"configuration", b"property", b"final"] => current.is_final = word.trim() == "true",
        [b"configuration", b"property"] if !current.name.is_empty() => {
            out.push(std::mem::take(current));
        }
        _ => {}
    }
}

fn character(name: &quick_xml::events::BytesRef<'_>) -> Result<char> {
    if let Some(c) = name.resolve_char_ref()? {
        return Ok(c);
    }
    let name = name.decode()?;
    match name.as_ref() {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => Err(anyhow::anyhow!("unknown entity")).context(other.to_string()),
    }
}

/// The text of a file with these keys.
pub fn write<'a>(properties: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::from("<?xml version=\"1.0\"?>\n<configuration>\n");
    for (name, value) in properties {
        let _ = writeln!(
            out,
            "  <property><name>{}</name><value>{}</value></property>",
            quick_xml::escape::escape(name),
            quick_xml::escape::escape(value)
        );
    }
    out.push_str("</configuration>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let read = parse(&write([("a.b", "x & <y>"), ("b", " "), ("c", "")])).unwrap();
        let read: Vec<(&str, Option<&str>)> =
            read.iter().map(|p| (p.name.as_str(), p.value.as_deref())).collect();
        assert_eq!(read, [("a.b", Some("x & <y>")), ("b", Some(" ")), ("c", None)]);
    }

    #[test]
    fn comments_entities_and_final_are_understood() {
        let text = "<?xml version='1.0'?><!-- c --><configuration><property>\
            <name> k </name><value>&#65;&amp;b</value><final>true</final>\
            <description>d</description></property></configuration>";
        let want = Property { name: "k".into(), value: Some("A&b".into()), is_final: true };
        assert_eq!(parse(text).unwrap(), [want]);
    }

    #[test]
    fn the_short_form_is_understood() {
        let text = "<configuration><property name='a' value='1 &amp; 2' final='true'/>\
            <property name='b' value='3'></property>\
            <property name='c' value='4'><value>5</value></property></configuration>";
        let property = |name: &str, value: &str, is_final| Property {
            name: name.to_string(),
            value: Some(value.to_string()),
            is_final,
        };
        let want =
            [property("a", "1 & 2", true), property("b", "3", false), property("c", "5", false)];
        assert_eq!(parse(text).unwrap(), want);
    }

    #[test]
    fn a_configuration_may_be_empty() {
        for text in ["<configuration/>", "<?xml version='1.0'?><configuration></configuration>\n"] {
            assert_eq!(parse(text).unwrap(), []);
        }
    }

    #[test]
    fn broken_files_are_errors() {
        for text in [
            "<configuration>",
            "<configuration></x>",
            "<configuration>&no;</configuration>",
            "",
            "garbage",
            "<x/>",
            "<x></x>",
            "<configuration><xi:include href='a.xml'/></configuration>",
            "<configuration><xi:include href='a.xml'></xi:include></configuration>",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
