//! Turns the message lists into `prost` structures, one Rust file for each protobuf package.
//!
//! The lists hold facts only (names, numbers, types), so no protobuf compiler is needed. A nested
//! type `Outer.Inner` becomes `OuterInner`; a service becomes the list of its method names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const LISTS: [&str; 2] = ["hadoop-3.5.0-messages.txt", "cairn-extensions.txt"];

/// Protobuf packages that Cairn speaks, and the Rust module of each.
const PACKAGES: [(&str, &str); 6] = [
    ("hadoop.common", "common"),
    ("hadoop.fs", "fs"),
    ("hadoop.hdfs", "hdfs"),
    ("hadoop.hdfs.datanode", "datanode"),
    ("hadoop.hdfs.datanodelifeline", "datanodelifeline"),
    ("hadoop.hdfs.namenode", "namenode"),
];

/// Hadoop files that no part of Cairn reads or writes.
const SKIPPED: [&str; 5] =
    ["AliasMapProtocol", "ZKFCProtocol", "editlog", "JournalProtocol", "HAZKInfo"];

type Result<T> = std::result::Result<T, String>;

struct Field {
    number: u32,
    name: String,
    label: &'static str,
    ty: String,
    default: Option<String>,
    packed: bool,
}

#[derive(Default)]
struct Lists {
    /// Full name to fields, in name order so that the output is stable.
    messages: BTreeMap<String, Vec<Field>>,
    enums: BTreeMap<String, Vec<(String, i32)>>,
    services: BTreeMap<String, Vec<String>>,
}

/// Writes the generated files.
pub fn write() -> Result<()> {
    for (path, text) in generate()? {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Fails when a generated file differs from what the lists say.
pub fn check() -> Result<()> {
    for (path, text) in generate()? {
        let found = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if found != text {
            return Err(format!("{} is stale: run `cargo xtask proto`", path.display()));
        }
    }
    Ok(())
}

fn generate() -> Result<Vec<(PathBuf, String)>> {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/wire");
    let mut lists = Lists::default();
    for name in LISTS {
        let path = wire.join("proto").join(name);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        lists.read(&text)?;
    }
    PACKAGES
        .iter()
        .map(|(package, module)| {
            let text = lists.rust_of(package)?;
            Ok((wire.join("src/proto").join(format!("{module}.rs")), text))
        })
        .collect()
}

impl Lists {
    fn read(&mut self, text: &str) -> Result<()> {
        let mut skip = false;
        let mut message = String::new();
        let mut service = String::new();
        for line in text.lines() {
            if let Some(file) = line.strip_prefix("## ") {
                let file = file.split('.').next().unwrap_or_default();
                skip = SKIPPED.contains(&file);
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if skip || words.is_empty() || words[0].starts_with('#') {
                continue;
            }
            match words.as_slice() {
                ["message", name] => {
                    message = name.to_string();
                    self.messages.entry(message.clone()).or_default();
                }
                ["enum", name, values @ ..] => {
                    let values = values.iter().map(|v| enum_value(v)).collect::<Result<_>>()?;
                    self.enums.insert(name.to_string(), values);
                }
                ["service", name] => {
                    service = name.to_string();
                    self.services.entry(service.clone()).or_default();
                }
                ["rpc", method, ..] => {
                    let methods = self.services.entry(service.clone()).or_default();
                    methods.push(method.to_string());
                }
                [number, rest @ ..] => {
                    let field = field(number, rest).ok_or_else(|| format!("bad line: {line}"))?;
                    self.messages.entry(message.clone()).or_default().push(field);
                }
                [] => {}
            }
        }
        Ok(())
    }

    fn rust_of(&self, package: &str) -> Result<String> {
        let mut out = String::from(
            "// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.\n",
        );
        for (name, fields) in of_package(&self.messages, package) {
            self.message(&mut out, package, name, fields)?;
        }
        for (name, values) in of_package(&self.enums, package) {
            let rust = type_name(name, package);
            let _ = writeln!(out, "\n/// `{name}`.");
            let _ = writeln!(
                out,
                "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]\n#[repr(i32)]\npub enum {rust} {{"
            );
            for (value, number) in values {
                let _ = writeln!(out, "    /// `{value}`.\n    {} = {number},", camel(value));
            }
            out.push_str("}\n");
        }
        for (name, methods) in of_package(&self.services, package) {
            let rust = screaming(&type_name(name, package));
            let _ = writeln!(out, "\n/// Methods of `{name}`.");
            let _ = writeln!(out, "pub const {rust}_METHODS: &[&str] = &[");
            for method in methods {
                let _ = writeln!(out, "    \"{method}\",");
            }
            out.push_str("];\n");
        }
        Ok(out)
    }

    fn message(&self, out: &mut String, package: &str, name: &str, fields: &[Field]) -> Result<()> {
        let rust = type_name(name, package);
        let _ = writeln!(out, "\n/// `{name}`.");
        let _ = writeln!(out, "#[derive(Clone, PartialEq, ::prost::Message)]");
        if fields.is_empty() {
            let _ = writeln!(out, "pub struct {rust} {{}}");
            return Ok(());
        }
        let _ = writeln!(out, "pub struct {rust} {{");
        for f in fields {
            let (kind, ty) = self.kind_of(&f.ty, package)?;
            let mut attr = format!("{kind}, {}, tag = \"{}\"", f.label, f.number);
            if f.packed {
                attr.push_str(", packed = \"true\"");
            } else if f.label == "repeated"
                && !matches!(f.ty.as_str(), "string" | "bytes")
                && kind != "message"
            {
                attr.push_str(", packed = \"false\"");
            }
            if let Some(default) = &f.default {
                let value =
                    if kind.starts_with("enumeration") { camel(default) } else { default.clone() };
                let _ = write!(attr, ", default = \"{value}\"");
            }
            let ty = match f.label {
                "optional" => format!("::core::option::Option<{ty}>"),
                "repeated" => format!("::std::vec::Vec<{ty}>"),
                _ => ty,
            };
            let _ = writeln!(out, "    /// Field {} `{}`.", f.number, f.name);
            let _ = writeln!(out, "    #[prost({attr})]\n    pub {}: {ty},", ident(&f.name));
        }
        out.push_str("}\n");
        Ok(())
    }

    /// The `prost` kind of a field and its Rust type.
    fn kind_of(&self, ty: &str, package: &str) -> Result<(String, String)> {
        let rust = match ty {
            "bool" => "bool",
            "int32" | "sint32" | "sfixed32" => "i32",
            "int64" | "sint64" | "sfixed64" => "i64",
            "uint32" | "fixed32" => "u32",
            "uint64" | "fixed64" => "u64",
            "double" => "f64",
            "float" => "f32",
            "string" => "::std::string::String",
            "bytes" => return Ok(("bytes = \"vec\"".into(), "::std::vec::Vec<u8>".into())),
            _ => {
                let path = self.path_of(ty, package)?;
                return Ok(if self.enums.contains_key(ty) {
                    (format!("enumeration = \"{path}\""), "i32".into())
                } else {
                    ("message".into(), path)
                });
            }
        };
        Ok((ty.into(), rust.into()))
    }

    fn path_of(&self, ty: &str, from: &str) -> Result<String> {
        if !self.messages.contains_key(ty) && !self.enums.contains_key(ty) {
            return Err(format!("unknown type {ty}"));
        }
        let (package, module) = package_of(ty).ok_or_else(|| format!("no module for {ty}"))?;
        let name = type_name(ty, package);
        Ok(if package == from { name } else { format!("super::{module}::{name}") })
    }
}

fn of_package<'a, T>(
    all: &'a BTreeMap<String, T>,
    package: &'a str,
) -> impl Iterator<Item = (&'a String, &'a T)> {
    all.iter().filter(move |(name, _)| package_of(name).is_some_and(|(p, _)| p == package))
}

/// The longest package whose name starts the full name, which is followed by a type's capital.
fn package_of(full: &str) -> Option<(&'static str, &'static str)> {
    PACKAGES.iter().copied().find(|(package, _)| {
        full.strip_prefix(package)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

fn type_name(full: &str, package: &str) -> String {
    full[package.len() + 1..].split('.').collect()
}

fn enum_value(word: &str) -> Result<(String, i32)> {
    let (name, number) = word.split_once('=').ok_or_else(|| format!("bad value {word}"))?;
    Ok((name.into(), number.parse().map_err(|_| format!("bad value {word}"))?))
}

fn field(number: &str, rest: &[&str]) -> Option<Field> {
    let mut words = rest.iter().copied();
    let name = words.next()?.to_string();
    let mut ty = words.next()?;
    let label = match ty {
        "required" => "required",
        "repeated" => "repeated",
        _ => "optional",
    };
    if label != "optional" {
        ty = words.next()?;
    }
    let (mut default, mut packed) = (None, false);
    for word in words {
        match word.strip_prefix('=') {
            Some(value) => default = Some(value.to_string()),
            None => packed = word == "packed",
        }
    }
    // A required field with a default is always sent, so the default says nothing.
    if label == "required" {
        default = None;
    }
    Some(Field { number: number.parse().ok()?, name, label, ty: ty.into(), default, packed })
}

/// `UPPER_SNAKE` or `mixedCase` to `CamelCase`.
fn camel(name: &str) -> String {
    let shouting = !name.chars().any(|c| c.is_ascii_lowercase());
    name.split('_')
        .map(|part| {
            let mut chars = part.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase()).into_iter();
            let rest = chars.map(|c| if shouting { c.to_ascii_lowercase() } else { c });
            first.chain(rest).collect::<String>()
        })
        .collect()
}

/// `mixedCase` to `snake_case`; a run of capitals is one word.
fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        let after_lower = i > 0 && !chars[i - 1].is_ascii_uppercase() && chars[i - 1] != '_';
        let before_lower = i > 0
            && chars[i - 1] != '_'
            && chars.get(i + 1).is_some_and(|n| n.is_ascii_lowercase());
        if c.is_ascii_uppercase() && (after_lower || before_lower) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn screaming(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

fn ident(name: &str) -> String {
    let name = snake(name);
    match name.as_str() {
        "type" | "move" | "ref" | "match" | "use" => format!("r#{name}"),
        _ => name,
    }
}
