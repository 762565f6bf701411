//! A page of a directory, written as clients get it straight from the records in the store.
//!
//! Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListing`.

use cairn_namespace::query::{self, Entry, Opened};
use cairn_namespace::{Caller, InodeId, NamespaceError};
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use prost::encoding::encoded_len_varint;
use std::ops::{Range, RangeInclusive};

use super::encode::{self, Policies};
use super::locate;
use crate::node::NameNode;
use crate::refusal::Refusal;

/// The keys of field 1 of `DirectoryListingProto` and of `GetListingResponseProto`, and of field 2 of the first.
const FIRST: u8 = encode::bytes(1);
const REMAINING: u8 = encode::number(2);

/// The answer to `getListing` without locations, encoded; see [`super::read::listing`].
pub fn encoded(
    node: &NameNode,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
) -> Result<Vec<u8>, Refusal> {
    let limit = node.config.listing_limit.max(1);
    let whole = node.ns.read(|store| {
        let opened = query::open_directory(store, caller, path, start_after, limit)?;
        let directory = match opened {
            Opened::Directory(directory) => directory,
            Opened::Whole(listing) => return Ok(Err(listing)),
        };
        let key = directory.page_key(limit);
        if let Some(kept) = key.as_ref().and_then(|key| store.listing(key)) {
            return Ok(Ok(kept.to_vec()));
        }
        let mut entries = Entries::default();
        let (count, remaining) = directory.visit(store, limit, &mut |entry| entries.add(entry))?;
        let page = entries.listing(count, remaining);
        if let (Some(key), Some(inodes)) = (key, entries.inodes) {
            store.keep_listing(key, (directory.id(), inodes), &page);
        }
        Ok::<_, NamespaceError>(Ok(page))
    })?;
    match whole {
        Ok(page) => Ok(page),
        Err(None) => Ok(Vec::new()),
        Err(Some(listing)) => {
            let entry = |status: &_| locate::file_status(status, &status.inode.name);
            let dir_list = Some(pb::DirectoryListingProto {
                partial_listing: listing.entries.iter().map(entry).collect(),
                remaining_entries: u32::try_from(listing.remaining).unwrap_or(u32::MAX),
            });
            Ok(pb::GetListingResponseProto { dir_list }.encode_to_vec())
        }
    }
}

/// Encoded entries in the order in which they came.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    /// Where each is, by its place on the page.
    places: Vec<Range<usize>>,
    policies: Policies,
    /// The inodes are among these.
    inodes: Option<RangeInclusive<InodeId>>,
}

impl Entries {
    fn add(&mut self, entry: &Entry<'_>) {
        let start = self.bytes.len();
        encode::put_status(&mut self.bytes, entry, entry.inode.name, &mut self.policies);
        let id = entry.inode.id;
        let inodes = self.inodes.take().unwrap_or(id..=id);
        self.inodes = Some(id.min(*inodes.start())..=id.max(*inodes.end()));
        if self.places.len() <= entry.place {
            self.places.resize(entry.place + 1, 0..0);
        }
        self.places[entry.place] = start..self.bytes.len();
    }

    /// `GetListingResponseProto` with the first `count` entries by name.
    fn listing(&self, count: usize, remaining: u64) -> Vec<u8> {
        let remaining = u64::from(u32::try_from(remaining).unwrap_or(u32::MAX));
        let places = &self.places[..count.min(self.places.len())];
        let entry_len = |at: &Range<usize>| 1 + encoded_len_varint(at.len() as u64) + at.len();
        let len: usize = places.iter().map(entry_len).sum();
        let len = len + 1 + encoded_len_varint(remaining);
        let mut out = Vec::with_capacity(1 + encoded_len_varint(len as u64) + len);
        encode::put_number(&mut out, FIRST, len as u64);
        for at in places {
            encode::put_bytes(&mut out, FIRST, &self.bytes[at.clone()]);
        }
        encode::put_number(&mut out, REMAINING, remaining);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::encryption::{Encryption, FileEncryption, FileKey, PROTOCOL_VERSION};
    use cairn_namespace::inode::{Directory, File, InodeRef, Kind};
    use cairn_namespace::query::FileStatus;
    use cairn_namespace::{FileRedundancy, Inode};
    use cairn_stripe::{CodecName, Policy, PolicyId, PolicyLayout, Schema};

    fn record(name: &str, kind: Kind, storage_policy: u8, mode: u16) -> Inode {
        Inode {
            id: InodeId(16_400 + name.len() as u64),
            parent: InodeId::ROOT,
            name: name.to_string(),
            owner: "alice".to_string(),
            group: "staff".to_string(),
            mode,
            acl: Vec::new(),
            mtime: 1_700_000_000_000,
            atime: 300,
            storage_policy,
            kind,
        }
    }

    /// Byte for byte what the messages' own encoding gives.
    #[test]
    fn entries_are_encoded_as_messages_are() {
        let schema = Schema { codec: CodecName::Rs, k: 6, m: 3 };
        let (name, layout) = ("RS-6-3-1024k".to_string(), PolicyLayout::Striped);
        let policy = Policy { id: PolicyId(1), name, schema, cell_len: 1 << 20, layout };
        let file = |redundancy, len| {
            Kind::File(File {
                redundancy,
                block_size: 128 << 20,
                block_count: 1,
                len,
                writer: None,
                short_appends: 0,
            })
        };
        let key = Encryption::File(Box::new(FileEncryption {
            suite: pb::CipherSuiteProto::AesCtrNopadding as i32,
            protocol_version: PROTOCOL_VERSION,
            key_name: "k".to_string(),
            key: FileKey { key: vec![7; 16], iv: vec![9; 16], key_version: "k@0".to_string() },
        }));
        let wide = Directory { children: u64::from(u32::MAX), ..Directory::default() };
        let cases = [
            (
                record("a", file(FileRedundancy::Replicated(3), 5), 0, 0o644),
                None,
                false,
                false,
                key,
            ),
            (
                record("b\u{e4}", file(FileRedundancy::Striped(PolicyId(1)), u64::MAX), 12, 0o1777),
                Some(&policy),
                false,
                true,
                Encryption::None,
            ),
            (
                record("", Kind::Directory(wide), 0, 0),
                Some(&policy),
                true,
                false,
                Encryption::Inside,
            ),
            (
                record("zz", Kind::Directory(Directory::default()), 5, 0o755),
                None,
                true,
                true,
                Encryption::None,
            ),
        ];
        let mut entries = Entries::default();
        let mut expected =
            pb::DirectoryListingProto { remaining_entries: 77, ..Default::default() };
        // They come in any order.
        for (place, (inode, policy, snapshottable, has_acl, encryption)) in
            cases.iter().enumerate().rev()
        {
            let found = InodeRef { has_acl: *has_acl, ..InodeRef::from(inode) };
            entries.add(&Entry {
                place,
                inode: &found,
                policy: *policy,
                storage_policy: inode.storage_policy,
                snapshottable: *snapshottable,
                encryption: encryption.clone(),
            });
        }
        for (inode, policy, snapshottable, has_acl, encryption) in &cases {
            let status = FileStatus {
                inode: std::sync::Arc::new(inode.clone()),
                policy: policy.cloned(),
                storage_policy: inode.storage_policy,
                snapshottable: *snapshottable,
                encryption: encryption.clone(),
            };
            let mut message = locate::file_status(&status, &inode.name);
            if *has_acl {
                let flag = pb::HdfsFileStatusProtoFlags::HasAcl as u32;
                message.flags = message.flags.map(|flags| flags | flag);
            }
            expected.partial_listing.push(message);
        }
        let expected = pb::GetListingResponseProto { dir_list: Some(expected) }.encode_to_vec();
        assert_eq!(entries.listing(cases.len(), 77), expected);
    }
}
