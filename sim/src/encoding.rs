//! An encode of a contiguous group under way, and groups as DataNodes are told that they are recorded.

use crate::data_node::{CHECKSUM, CHUNK_LEN};
use crate::name_node::NamedOrder;
use cairn_master::contiguous::MadeMember;
use cairn_namespace::Group;
use cairn_namespace::group::{ChecksumShape, ParityRecord};
use cairn_replica::Checksum;
use cairn_replica::group::{Formed, Unbelieved};
use cairn_stripe::group::{GroupRecord, Layout, Member};
use cairn_stripe::{Policy, UnitIndex};

/// An encode under way.
#[derive(Clone, Debug)]
pub(crate) struct Encoding {
    pub(crate) named: NamedOrder,
    pub(crate) policy: Policy,
    /// The members' bytes and the storages that they were read from.
    pub(crate) read: Vec<(Vec<u8>, String)>,
    /// What was read, and the parities' bytes.
    pub(crate) made: Option<(Vec<MadeMember>, Vec<Vec<u8>>)>,
    pub(crate) written: usize,
    pub(crate) read_back: Vec<(UnitIndex, ParityRecord)>,
}

impl Encoding {
    pub(crate) fn new(named: NamedOrder, policy: Policy) -> Encoding {
        let (read, read_back) = (Vec::new(), Vec::new());
        Encoding { named, policy, read, made: None, written: 0, read_back }
    }

    /// Where the bytes of its units lie.
    pub(crate) fn layout(&self) -> Result<Layout, String> {
        let schema = &self.policy.schema;
        let mut lens = vec![0; schema.data_units()];
        self.named.order.members.iter().for_each(|m| lens[m.slot.as_usize()] = m.block.len);
        let longest = lens.iter().max().copied().unwrap_or(0);
        let layout = Layout::new(schema.parity_units(), lens, longest, CHUNK_LEN);
        layout.map_err(|error| error.to_string())
    }
}

/// A group as its DataNodes are told it is recorded.
pub(crate) fn formed(group: &Group, policy: &Policy) -> Result<Formed, Unbelieved> {
    let member = |member: &cairn_namespace::group::Member| Member {
        id: member.id,
        gs: member.gs,
        len: member.len,
        crc32c: member.crc32c,
        sums_crc32c: member.sums_crc32c.unwrap_or_default(),
    };
    let ChecksumShape { kind, bytes_per_checksum } = shape();
    let record = GroupRecord {
        handle: group.handle,
        gs: group.gs,
        policy: group.policy,
        schema: policy.schema,
        checksum_type: kind,
        chunk_len: bytes_per_checksum,
        data_len: group.data_len,
        members: group.members.iter().map(|of| of.as_ref().map(member)).collect(),
    };
    let parities = group.parities.iter().map(|parity| (parity.len, parity.crc32c)).collect();
    Formed::new(record, CHECKSUM, parities)
}

/// How all members are checked, as it is recorded.
pub(crate) fn shape() -> ChecksumShape {
    let Checksum { kind, chunk_len } = CHECKSUM;
    ChecksumShape { kind: kind.id(), bytes_per_checksum: chunk_len as u32 }
}
