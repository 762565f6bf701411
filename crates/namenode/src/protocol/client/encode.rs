//! The answers that clients ask for most, written as bytes straight from what the cores have: messages would be made
//! of some dozen copies for each place of a block.
//!
//! Tested byte for byte against the messages' own encoding.

use cairn_namespace::encryption::FileEncryption;
use cairn_namespace::inode::Kind;
use cairn_namespace::query::{Entry, SmallFile};
use cairn_redundancy::{Cluster, DataNode};
use cairn_security::block_token::AccessMode;
use cairn_stripe::{BlockId, GenerationStamp, Policy, PolicyId, PolicyLayout, UnitIndex};
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use prost::encoding::encoded_len_varint;

use super::super::convert;
use super::places::Places;
use crate::block_tokens::Issuer;

pub(super) const fn number(field: u8) -> u8 {
    field << 3
}

pub(super) const fn bytes(field: u8) -> u8 {
    field << 3 | 2
}

/// The keys of `HdfsFileStatusProto`: field number and wire type.
mod status {
    use super::{bytes, number};

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
    pub const ENCRYPTION: u8 = bytes(15);
    /// Those from 16 on have two bytes.
    pub const STORAGE_POLICY: [u8; 2] = [0x80, 0x01];
    pub const EC_POLICY: [u8; 2] = [0x8a, 0x01];
    pub const FLAGS: [u8; 2] = [0x90, 0x01];
    /// Field 1 of `FsPermissionProto`.
    pub const PERM: u8 = number(1);
}

/// The bytes of the fields of a status beside its name, owner, group and policy, at most.
const STATUS_MAX: usize = 128;

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_number(out: &mut Vec<u8>, key: u8, value: u64) {
    out.push(key);
    put_varint(out, value);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, key: u8, value: &[u8]) {
    put_number(out, key, value.len() as u64);
    out.extend_from_slice(value);
}

/// Puts a message whose length is known when it is there.
pub(super) fn put_message(out: &mut Vec<u8>, key: u8, put: impl FnOnce(&mut Vec<u8>)) {
    out.push(key);
    let at = out.len();
    put(out);
    let mut len = (out.len() - at) as u64;
    // Most are short, or are moved by a byte.
    let mut prefix = [0; 10];
    let mut count = 0;
    while len >= 0x80 {
        prefix[count] = len as u8 | 0x80;
        (len, count) = (len >> 7, count + 1);
    }
    prefix[count] = len as u8;
    let prefix = &prefix[..=count];
    let end = out.len();
    out.resize(end + prefix.len(), 0);
    out.copy_within(at..end, at + prefix.len());
    out[at..at + prefix.len()].copy_from_slice(prefix);
}

/// Policies as they were encoded.
#[derive(Default)]
pub(super) struct Policies(Vec<(PolicyId, Vec<u8>)>);

impl Policies {
    fn encoded(&mut self, policy: &Policy) -> &[u8] {
        let known = self.0.iter().position(|(id, _)| *id == policy.id);
        let known = known.unwrap_or_else(|| {
            self.0.push((policy.id, convert::policy(policy, None).encode_to_vec()));
            self.0.len() - 1
        });
        &self.0[known].1
    }
}

/// The fields of a status; `name` is empty where the client has asked for this very path. As
/// [`super::locate::file_status`].
pub(super) fn put_status(
    out: &mut Vec<u8>,
    entry: &Entry<'_>,
    name: &str,
    policies: &mut Policies,
) {
    let inode = &entry.inode;
    let file_type = match inode.kind {
        Kind::Directory(_) => pb::HdfsFileStatusProtoFileType::IsDir,
        Kind::File(_) => pb::HdfsFileStatusProtoFileType::IsFile,
    };
    let (len, replication, block_size, children) = match &inode.kind {
        Kind::Directory(directory) => (0, 0, 0, directory.children),
        Kind::File(file) => (file.len, file.redundancy.copies().unwrap_or(1), file.block_size, 0),
    };
    let mut flags = 0;
    for (is_set, flag) in [
        (entry.policy.is_some(), pb::HdfsFileStatusProtoFlags::HasEc),
        (inode.has_acl, pb::HdfsFileStatusProtoFlags::HasAcl),
        (entry.snapshottable, pb::HdfsFileStatusProtoFlags::SnapshotEnabled),
        (entry.encryption.is_inside(), pb::HdfsFileStatusProtoFlags::HasCrypt),
    ] {
        flags |= if is_set { flag as u64 } else { 0 };
    }
    out.reserve(STATUS_MAX + name.len() + inode.owner.len() + inode.group.len());
    put_number(out, status::FILE_TYPE, file_type as u64);
    put_bytes(out, status::PATH, name.as_bytes());
    put_number(out, status::LENGTH, len);
    let perm = u64::from(inode.mode);
    put_number(out, status::PERMISSION, 1 + encoded_len_varint(perm) as u64);
    put_number(out, status::PERM, perm);
    put_bytes(out, status::OWNER, inode.owner.as_bytes());
    put_bytes(out, status::GROUP, inode.group.as_bytes());
    put_number(out, status::MTIME, inode.mtime);
    put_number(out, status::ATIME, inode.atime);
    put_number(out, status::REPLICATION, replication.into());
    put_number(out, status::BLOCK_SIZE, block_size);
    put_number(out, status::FILE_ID, inode.id.0);
    put_number(out, status::CHILDREN, children.min(i32::MAX as u64));
    if let Some(encryption) = entry.encryption.file() {
        put_bytes(out, status::ENCRYPTION, &convert::file_encryption(encryption).encode_to_vec());
    }
    out.extend_from_slice(&status::STORAGE_POLICY);
    put_varint(out, entry.storage_policy.into());
    if let Some(policy) = entry.policy {
        let encoded = policies.encoded(policy);
        out.extend_from_slice(&status::EC_POLICY);
        put_varint(out, encoded.len() as u64);
        out.extend_from_slice(encoded);
    }
    out.extend_from_slice(&status::FLAGS);
    put_varint(out, flags);
}

/// `GetFileInfoResponseProto` with the status of what was asked for.
pub(super) fn file_info(entry: &Entry<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * STATUS_MAX);
    put_message(&mut out, bytes(1), |out| put_status(out, entry, "", &mut Policies::default()));
    out
}

/// The fields of `DatanodeInfoProto`; as [`convert::datanode_info`] without a count of blocks.
fn put_datanode(out: &mut Vec<u8>, node: &DataNode) {
    let (address, usage) = (&node.address, &node.usage);
    put_message(out, bytes(1), |out| {
        put_bytes(out, bytes(1), address.ip.as_bytes());
        put_bytes(out, bytes(2), address.host.as_bytes());
        put_bytes(out, bytes(3), node.uuid.as_bytes());
        put_number(out, number(4), address.xfer_port.into());
        put_number(out, number(5), address.info_port.into());
        put_number(out, number(6), address.ipc_port.into());
        put_number(out, number(7), address.info_secure_port.into());
    });
    put_number(out, number(2), usage.capacity);
    put_number(out, number(3), usage.dfs_used);
    put_number(out, number(4), usage.remaining);
    put_number(out, number(5), usage.block_pool_used);
    put_number(out, number(6), node.last_update_wall_ms);
    put_number(out, number(7), node.xceivers.into());
    put_bytes(out, bytes(8), node.rack.as_bytes());
    put_number(out, number(9), usage.non_dfs_used);
    put_number(out, number(10), convert::admin_state(node.admin) as u64);
    put_number(out, number(11), node.cache_capacity);
    put_number(out, number(12), node.cache_used);
    put_number(out, number(13), node.last_update_mono_ms);
    if let Some(domain) = &node.upgrade_domain {
        put_bytes(out, bytes(14), domain.as_bytes());
    }
    put_number(out, number(15), node.last_report_wall_ms);
    // Those from 16 on have two bytes.
    out.extend_from_slice(&[0x80, 0x01]);
    put_varint(out, node.last_report_mono_ms);
    out.extend_from_slice(&[0x88, 0x01, 0]);
    out.extend_from_slice(&[0x92, 0x01]);
    put_varint(out, node.software_version.len() as u64);
    out.extend_from_slice(node.software_version.as_bytes());
}

/// `TokenProto` without a token: four empty fields.
const NO_TOKEN: [u8; 8] = [bytes(1), 0, bytes(2), 0, bytes(3), 0, bytes(4), 0];

/// The encoded tokens of a block.
pub(super) struct Signed {
    whole: Vec<u8>,
    /// Of a group's units, by their indices.
    units: Vec<Vec<u8>>,
}

impl Signed {
    /// Those with which the block of a small file can be read.
    pub(super) fn of(found: &SmallFile<'_>, issuer: &Issuer<'_>) -> Signed {
        let Some(block) = found.block.filter(|_| issuer.is_on()) else {
            return Signed { whole: NO_TOKEN.to_vec(), units: Vec::new() };
        };
        let token = |id| issuer.token(id, AccessMode::Read).encode_to_vec();
        let policy = found.entry.policy.filter(|policy| policy.layout == PolicyLayout::Striped);
        let width = policy.map_or(0, |policy| policy.schema.units() as u8);
        let units = (0..width).map(|unit| token(block.id.internal(UnitIndex(unit)))).collect();
        Signed { whole: token(block.id), units }
    }

    fn unit(&self, unit: UnitIndex) -> &[u8] {
        self.units.get(usize::from(unit.0)).map_or(&NO_TOKEN, Vec::as_slice)
    }
}

/// A block with its places, as [`super::locate::Locator::located`] has it.
pub(super) struct Located<'a> {
    pub cluster: &'a Cluster,
    pub block_pool: &'a str,
    pub id: BlockId,
    pub gs: GenerationStamp,
    pub len: u64,
    pub offset: u64,
    pub places: &'a Places,
    pub striped: bool,
    pub signed: &'a Signed,
}

impl Located<'_> {
    /// The fields of `LocatedBlockProto`.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let places = &self.places.storages;
        let storages = || places.iter().map(|(handle, _)| self.cluster.storage(*handle));
        put_message(out, bytes(1), |out| {
            put_bytes(out, bytes(1), self.block_pool.as_bytes());
            put_number(out, number(2), self.id.0 as u64);
            put_number(out, number(3), self.gs.0);
            put_number(out, number(4), self.len);
        });
        put_number(out, number(2), self.offset);
        for storage in storages() {
            let node = self.cluster.node(storage.node);
            put_message(out, bytes(3), |out| put_datanode(out, node));
        }
        put_number(out, number(4), self.places.corrupt.into());
        put_bytes(out, bytes(5), &self.signed.whole);
        if !places.is_empty() {
            put_number(out, bytes(6), places.len() as u64);
            out.extend(self.places.cached(self.cluster, self.id).map(u8::from));
        }
        for storage in storages() {
            put_number(out, number(7), storage.storage_type.number() as u64);
        }
        for storage in storages() {
            put_bytes(out, bytes(8), storage.uuid.as_bytes());
        }
        if self.striped {
            put_number(out, bytes(9), places.len() as u64);
            out.extend(places.iter().map(|(_, unit)| unit.0));
            for (_, unit) in places {
                put_bytes(out, bytes(10), self.signed.unit(*unit));
            }
        }
    }
}

/// What `LocatedBlocksProto` has of a file besides its blocks.
pub(super) struct LocatedFile<'a> {
    pub len: u64,
    pub is_under_construction: bool,
    pub is_last_block_complete: bool,
    pub encryption: Option<&'a FileEncryption>,
    pub policy: Option<&'a Policy>,
}

impl LocatedFile<'_> {
    /// `GetBlockLocationsResponseProto` of a file with one block at most, which holds bytes of what was asked for or
    /// does not.
    pub(super) fn locations(&self, block: Option<&Located<'_>>, is_in_range: bool) -> Vec<u8> {
        let mut encoded = Vec::new();
        if let Some(block) = block {
            // A node's fields are about 200 bytes, and there are two of the block.
            encoded.reserve(128 + 320 * block.places.storages.len());
            block.put(&mut encoded);
        }
        let mut out = Vec::with_capacity(128 + 2 * encoded.len());
        put_message(&mut out, bytes(1), |out| {
            put_number(out, number(1), self.len);
            if is_in_range {
                put_bytes(out, bytes(2), &encoded);
            }
            put_number(out, number(3), self.is_under_construction.into());
            if block.is_some() {
                put_bytes(out, bytes(4), &encoded);
            }
            put_number(out, number(5), self.is_last_block_complete.into());
            if let Some(encryption) = self.encryption {
                put_bytes(out, bytes(6), &convert::file_encryption(encryption).encode_to_vec());
            }
            if let Some(policy) = self.policy {
                put_bytes(out, bytes(7), Policies::default().encoded(policy));
            }
        });
        out
    }
}
