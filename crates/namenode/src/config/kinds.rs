//! What values of a NameNode's keys can be, beside what those of all roles can.

use std::net::IpAddr;
use std::path::PathBuf;

use cairn_keys::{BYTES, Kind, WrongValue, positive, value};
use cairn_stripe::StoragePolicy;

use super::choices::{ChecksumType, Durability, HostsFormat, SatisfierMode};
use crate::host_names;

pub(super) const DURABILITY: Kind<Durability> =
    Kind::new("stable or page-cache", |text| match text {
        "stable" => Ok(Durability::Stable),
        "page-cache" => Ok(Durability::PageCache),
        _ => Err("it takes stable or page-cache".into()),
    });

pub(super) const LENGTH: Kind<usize> = Kind::new("bytes", |text| {
    usize::try_from(BYTES.parse(text)?).map_err(|_| "it is too large".into())
});

pub(super) const OPTIONAL_FILE: Kind<Option<PathBuf>> =
    Kind::new("file", |text| Ok((!text.is_empty()).then(|| PathBuf::from(text))));

pub(super) const FOLDERS: Kind<Vec<PathBuf>> =
    Kind::new("folders", |text| Ok(value::list(text).map(value::folder).collect()));

pub(super) const WORDS: Kind<Vec<String>> =
    Kind::new("words with commas", |text| Ok(value::list(text).map(str::to_string).collect()));

pub(super) const CHECKSUM: Kind<ChecksumType> =
    Kind::new("NULL, CRC32 or CRC32C", |text| match text.to_ascii_uppercase().as_str() {
        "NULL" => Ok(ChecksumType::Null),
        "CRC32" => Ok(ChecksumType::Crc32),
        "CRC32C" => Ok(ChecksumType::Crc32c),
        _ => Err("it takes NULL, CRC32 or CRC32C".into()),
    });

/// Whether it is within bounds is looked at when all is read: what is said of it then has no more than Hadoop's words.
pub(super) const ITEMS: Kind<u64> = Kind::new("number from 1 to 6400000", |text| {
    Ok(u64::try_from(text.parse::<i64>()?).unwrap_or(0))
});

pub(super) const PROTECTED: Kind<Vec<String>> =
    Kind::new("paths with commas", |text| Ok(protected(value::list(text))));

pub(super) const POSITIVE_SHARE: Kind<f64> =
    Kind::new("number above 0", |text| match text.parse::<f64>()? {
        number if number > 0.0 => Ok(number),
        number => Err(format!("{number} is not above 0").into()),
    });

/// Source: Hadoop 3.5.0 `DatanodeManager#DatanodeManager`.
pub(super) const STALE_SHARE: Kind<f64> =
    Kind::new("number above 0, up to 1", |text| match text.parse::<f64>()? {
        ratio if ratio > 0.0 && ratio <= 1.0 => Ok(ratio),
        ratio => Err(format!("{ratio} is not above 0 and at most 1").into()),
    });

pub(super) const OPTIONAL_SHARE: Kind<Option<f64>> = Kind::new("number", |text| {
    (!text.is_empty()).then(|| text.parse::<f64>().map_err(WrongValue::from)).transpose()
});

pub(super) const OPTIONAL_COUNT: Kind<Option<u16>> = Kind::new("number above 0", |text| {
    (!text.is_empty()).then(|| positive::<u16>().parse(text)).transpose()
});

/// Tells whether an address has a name.
type NameCheck = fn(IpAddr) -> bool;

/// With `None` nobody is asked.
pub(super) const NAME_CHECK: Kind<Option<NameCheck>> = Kind::new("true or false", |text| {
    let check: NameCheck = host_names::is_resolved;
    Ok(value::boolean(text)?.then_some(check))
});

pub(super) const HOSTS_FORMAT: Kind<HostsFormat> =
    Kind::new("HostFileManager or CombinedHostFileManager", |text| {
        // What a class name of Hadoop's ends with.
        match text.rsplit(['.', '$']).next().unwrap_or(text) {
            "HostFileManager" => Ok(HostsFormat::Lists),
            "CombinedHostFileManager" => Ok(HostsFormat::Combined),
            _ => Err("it takes HostFileManager or CombinedHostFileManager".into()),
        }
    });

pub(super) const POLICY: Kind<StoragePolicy> = Kind::new("storage policy", |text| {
    let found = StoragePolicy::ALL.into_iter().find(|policy| policy.name == text);
    found.ok_or_else(|| "it takes the name of a storage policy, in capitals".into())
});

pub(super) const SATISFIER: Kind<SatisfierMode> =
    Kind::new("none or external", |text| match text.to_ascii_uppercase().as_str() {
        "NONE" => Ok(SatisfierMode::None),
        "EXTERNAL" => Ok(SatisfierMode::External),
        _ => Err("it takes none or external".into()),
    });

/// Whether any of what is counted in hundredths is measured.
pub(super) const SAMPLED: Kind<bool> =
    Kind::new("number up to 100", |text| Ok(text.parse::<i32>()? > 0));

/// Source: Hadoop 3.5.0 `CallerContext.Builder#checkFieldSeparator`.
pub(super) const SEPARATOR: Kind<String> = Kind::new("text", |text| match text {
    "\t" | "\n" | "=" => Err(format!("Illegal field separator: {text}").into()),
    _ => Ok(text.to_string()),
});

/// The paths as the NameNode knows them, sorted; what is no absolute path or reserved is left out.
///
/// Source: Hadoop 3.5.0 `FSDirectory#normalizePaths`.
fn protected<'a>(listed: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut paths = Vec::new();
    for path in listed {
        // What follows two slashes is a host.
        let is_absolute = path.starts_with('/') && !path.starts_with("//");
        if !is_absolute || path == "/.reserved" || path.starts_with("/.reserved/") {
            tracing::error!(path, "fs.protected.directories names what cannot be protected");
            continue;
        }
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        paths.push(format!("/{}", names.join("/")));
    }
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_directories_are_absolute_paths() {
        let listed = "/b/,/a//c,/b, //h/c,rel,/.reserved/raw/a,hdfs://h/x";
        assert_eq!(PROTECTED.parse(listed).unwrap(), ["/a/c", "/b"]);
    }
}
