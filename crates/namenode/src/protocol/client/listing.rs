//! A page of a directory, written as clients get it straight from the records in the store.
//!
//! Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListing`.

use cairn_namespace::inode::Kind;
use cairn_namespace::query::{Entry, Page, visit_listing};
use cairn_namespace::{Caller, FileRedundancy};
use cairn_stripe::PolicyId;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use prost::encoding::encoded_len_varint;
use std::ops::Range;

use super::super::convert;
use super::super::refusal::Refusal;
use super::locate;
use crate::NameNode;

/// The keys of `HdfsFileStatusProto`: field number and wire type.
mod key {
    const fn number(field: u8) -> u8 {
        field << 3
    }

    const fn bytes(field: u8) -> u8 {
        field << 3 | 2
    }

    pub const FILE_TYPE: u8 = number(1);
    pub const PATH: u8 = bytes(2);
    pub const LENGTH: u8 = number(3);
    pub const PERMISSION: u8 = bytes(4);
    pub const OWNER: u8 = bytes(5);
    pub const GROUP: u8 = bytes(6);
    pub const MTIME: u8 = number(7);
    pub const ATIME: u8 = number(8);
    pub const REPLICATION: u8 = number(10);
    pub const BLOCK_SIZE: u8 = number(11);
    pub const FILE_ID: u8 = number(13);
    pub const CHILDREN: u8 = number(14);
    /// Those from 16 on have two bytes.
    pub const STORAGE_POLICY: [u8; 2] = [0x80, 0x01];
    pub const EC_POLICY: [u8; 2] = [0x8a, 0x01];
    pub const FLAGS: [u8; 2] = [0x90, 0x01];
    /// Field 1 of `FsPermissionProto`.
    pub const PERM: u8 = number(1);
    /// Field 1 of `DirectoryListingProto` and of `GetListingResponseProto`.
    pub const FIRST: u8 = bytes(1);
    /// Field 2 of `DirectoryListingProto`.
    pub const REMAINING: u8 = number(2);
}

/// The answer to `getListing` without locations, encoded; see [`super::read::listing`].
pub fn encoded(
    node: &NameNode,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
) -> Result<Vec<u8>, Refusal> {
    let limit = node.config.listing_limit.max(1);
    let mut entries = Entries::default();
    let page = node.ns.read(|store| {
        visit_listing(store, caller, path, start_after, limit, &mut |entry| entries.add(entry))
    })?;
    match page {
        Page::Visited(count, remaining) => Ok(entries.listing(count, remaining)),
        Page::Whole(None) => Ok(Vec::new()),
        Page::Whole(Some(listing)) => {
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
    /// Policies as they were encoded.
    policies: Vec<(PolicyId, Vec<u8>)>,
}

/// The bytes of the fields of an entry beside its name, owner, group and policy, at most.
const FIXED_MAX: usize = 128;

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_number(out: &mut Vec<u8>, key: u8, value: u64) {
    out.push(key);
    put_varint(out, value);
}

fn put_bytes(out: &mut Vec<u8>, key: u8, value: &[u8]) {
    put_number(out, key, value.len() as u64);
    out.extend_from_slice(value);
}

impl Entries {
    /// As [`locate::file_status`].
    fn add(&mut self, entry: &Entry<'_>) {
        let (inode, out) = (&entry.inode, &mut self.bytes);
        let start = out.len();
        let is_directory = matches!(inode.kind, Kind::Directory(_));
        let file_type = match is_directory {
            true => pb::HdfsFileStatusProtoFileType::IsDir,
            false => pb::HdfsFileStatusProtoFileType::IsFile,
        };
        let (len, replication, block_size, children) = match &inode.kind {
            Kind::Directory(directory) => (0, 0, 0, directory.children),
            Kind::File(file) => {
                let copies = match file.redundancy {
                    FileRedundancy::Replicated(copies) => copies,
                    FileRedundancy::Striped(_) => 1,
                };
                (file.len, copies, file.block_size, 0)
            }
        };
        let mut flags = 0;
        for (is_set, flag) in [
            (entry.policy.is_some(), pb::HdfsFileStatusProtoFlags::HasEc),
            (inode.has_acl, pb::HdfsFileStatusProtoFlags::HasAcl),
            (entry.snapshottable, pb::HdfsFileStatusProtoFlags::SnapshotEnabled),
        ] {
            flags |= if is_set { flag as u64 } else { 0 };
        }
        out.reserve(FIXED_MAX + inode.name.len() + inode.owner.len() + inode.group.len());
        put_number(out, key::FILE_TYPE, file_type as u64);
        put_bytes(out, key::PATH, inode.name.as_bytes());
        put_number(out, key::LENGTH, len);
        let perm = u64::from(inode.mode);
        put_number(out, key::PERMISSION, 1 + encoded_len_varint(perm) as u64);
        put_number(out, key::PERM, perm);
        put_bytes(out, key::OWNER, inode.owner.as_bytes());
        put_bytes(out, key::GROUP, inode.group.as_bytes());
        put_number(out, key::MTIME, inode.mtime);
        put_number(out, key::ATIME, inode.atime);
        put_number(out, key::REPLICATION, replication.into());
        put_number(out, key::BLOCK_SIZE, block_size);
        put_number(out, key::FILE_ID, inode.id.0);
        put_number(out, key::CHILDREN, children.min(i32::MAX as u64));
        out.extend_from_slice(&key::STORAGE_POLICY);
        put_varint(out, entry.storage_policy.into());
        if let Some(policy) = entry.policy {
            let known = self.policies.iter().position(|(id, _)| *id == policy.id);
            let known = known.unwrap_or_else(|| {
                let encoded = convert::policy(policy, None).encode_to_vec();
                self.policies.push((policy.id, encoded));
                self.policies.len() - 1
            });
            let encoded = &self.policies[known].1;
            out.extend_from_slice(&key::EC_POLICY);
            put_varint(out, encoded.len() as u64);
            out.extend_from_slice(encoded);
        }
        out.extend_from_slice(&key::FLAGS);
        put_varint(out, flags);
        let end = out.len();
        if self.places.len() <= entry.place {
            self.places.resize(entry.place + 1, 0..0);
        }
        self.places[entry.place] = start..end;
    }

    /// `GetListingResponseProto` with the first `count` entries by name.
    fn listing(&self, count: usize, remaining: u64) -> Vec<u8> {
        let remaining = u64::from(u32::try_from(remaining).unwrap_or(u32::MAX));
        let places = &self.places[..count.min(self.places.len())];
        let entry_len = |at: &Range<usize>| 1 + encoded_len_varint(at.len() as u64) + at.len();
        let len: usize = places.iter().map(entry_len).sum();
        let len = len + 1 + encoded_len_varint(remaining);
        let mut out = Vec::with_capacity(1 + encoded_len_varint(len as u64) + len);
        put_number(&mut out, key::FIRST, len as u64);
        for at in places {
            put_bytes(&mut out, key::FIRST, &self.bytes[at.clone()]);
        }
        put_number(&mut out, key::REMAINING, remaining);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::inode::{Directory, File, InodeRef};
    use cairn_namespace::query::FileStatus;
    use cairn_namespace::{Inode, InodeId};
    use cairn_stripe::{CodecName, Policy, Schema};

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
        let name = "RS-6-3-1024k".to_string();
        let policy = Policy { id: PolicyId(1), name, schema, cell_len: 1 << 20 };
        let file = |redundancy, len| {
            Kind::File(File {
                redundancy,
                block_size: 128 << 20,
                block_count: 1,
                len,
                writer: None,
            })
        };
        let wide = Directory { children: u64::from(u32::MAX), ..Directory::default() };
        let cases = [
            (record("a", file(FileRedundancy::Replicated(3), 5), 0, 0o644), None, false, false),
            (
                record("b\u{e4}", file(FileRedundancy::Striped(PolicyId(1)), u64::MAX), 12, 0o1777),
                Some(&policy),
                false,
                true,
            ),
            (record("", Kind::Directory(wide), 0, 0), Some(&policy), true, false),
            (record("zz", Kind::Directory(Directory::default()), 5, 0o755), None, true, true),
        ];
        let mut entries = Entries::default();
        let mut expected =
            pb::DirectoryListingProto { remaining_entries: 77, ..Default::default() };
        // They come in any order.
        for (place, (inode, policy, snapshottable, has_acl)) in cases.iter().enumerate().rev() {
            let InodeId(id) = inode.id;
            let found = InodeRef {
                id: InodeId(id),
                name: &inode.name,
                owner: &inode.owner,
                group: &inode.group,
                mode: inode.mode,
                has_acl: *has_acl,
                mtime: inode.mtime,
                atime: inode.atime,
                storage_policy: inode.storage_policy,
                kind: inode.kind.clone(),
            };
            entries.add(&Entry {
                place,
                inode: found,
                policy: *policy,
                storage_policy: inode.storage_policy,
                snapshottable: *snapshottable,
            });
        }
        for (inode, policy, snapshottable, has_acl) in &cases {
            let status = FileStatus {
                inode: std::sync::Arc::new(inode.clone()),
                policy: policy.cloned(),
                storage_policy: inode.storage_policy,
                snapshottable: *snapshottable,
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
