//! What the NameNode asks DataNodes to do, in answers to heartbeats.

use crate::block::{BlockRef, Layout};
use crate::handle::StorageHandle;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// One thing for a DataNode to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Register anew (`DNA_REGISTER`).
    Register,
    /// Copy replicas or units to other nodes (`DNA_TRANSFER`).
    Transfer(Vec<Transfer>),
    /// Delete replicas or units (`DNA_INVALIDATE`).
    Invalidate(Vec<BlockRef>),
    /// Make the replicas of blocks agree, as the primary (`DNA_RECOVERBLOCK`).
    Recover(Vec<BlockRecovery>),
    /// Decode lost units of groups (`DNA_ERASURE_CODING_RECONSTRUCTION`).
    Reconstruct(Vec<Reconstruction>),
    /// Decode or encode lost units of contiguous groups. Only for DataNodes that take groups.
    Rebuild(Vec<GroupRebuild>),
    /// Encode the parities of contiguous groups. Only for DataNodes that take groups.
    Encode(Vec<EncodeOrder>),
    /// Write containers of small blocks. Only for DataNodes that take groups.
    Pack(Vec<PackOrder>),
    /// Write packed blocks as plain replicas. Only for DataNodes that take groups.
    Unpack(Vec<UnpackOrder>),
    /// Read replicas of members of contiguous groups as their disks have them. Only for DataNodes that take groups.
    Prove(Vec<ProveOrder>),
    /// Blocks that no file has any more, kept for the others of their groups: clients are not served. Only for DataNodes
    /// that take groups.
    Retire(Vec<BlockRef>),
    /// Use so many bytes a second for balancing (`DNA_BALANCERBANDWIDTHUPDATE`).
    BalancerBandwidth(u64),
    /// Give up the state before the last upgrade (`DNA_FINALIZE`).
    Finalize,
    /// Keep replicas or units in memory (`DNA_CACHE`).
    Cache(Vec<BlockId>),
    /// Keep them there no longer (`DNA_UNCACHE`).
    Uncache(Vec<BlockId>),
}

/// One replica or unit to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What.
    pub block: BlockRef,
    /// The block or group that needs it, and which unit of that it is.
    pub slot: (BlockId, UnitIndex),
    /// Where to, as a pipeline.
    pub targets: Vec<StorageHandle>,
}

/// One block whose replicas must be made to agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecovery {
    /// The block or group with its stamp and length so far.
    pub block: BlockRef,
    /// The stamp that the recovered replicas get; it also tells attempts apart.
    pub new_gs: GenerationStamp,
    /// How the block is kept.
    pub layout: Layout,
    /// The replicas or units that take part.
    pub locations: Vec<StorageHandle>,
    /// The unit of each location; empty for a replicated block.
    pub units: Vec<UnitIndex>,
    /// The unit of each other place that may have something of the block and is not asked, for its node is dead or
    /// silent or its replica is bad; 0 for a replica. What they have is not known.
    pub away: Vec<UnitIndex>,
    /// Of a replicated block, who may have a replica of it under a stamp that it had before.
    pub earlier: EarlierPlaces,
}

/// DataNodes that a writer has gone on without, and whose replicas are stale: what they have was acknowledged before. The
/// stamp is the one that was heard of last, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierPlaces {
    /// Those that can be asked.
    pub places: Vec<(StorageHandle, Option<GenerationStamp>)>,
    /// The stamps of those that cannot: their nodes are dead, and may come back.
    pub away: Vec<Option<GenerationStamp>>,
}

/// Lost units of one group to decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconstruction {
    /// The group with the length of its data.
    pub group: BlockRef,
    /// How it is kept.
    pub layout: Layout,
    /// Live units to read, at least as many as the group has data units.
    pub sources: Vec<(StorageHandle, UnitIndex)>,
    /// The lost units and where each goes.
    pub targets: Vec<(StorageHandle, UnitIndex)>,
    /// Units that are missing too but must not be decoded now (they are being rebuilt elsewhere).
    pub excluded_units: Vec<UnitIndex>,
    /// Another loss would cost data: it does not wait for other work.
    pub is_urgent: bool,
}

/// Lost units of one contiguous group to bring back, members or parities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRebuild {
    /// The group by its handle, with the length of its parities.
    pub group: BlockRef,
    /// Live units to read, at least as many as the group has members.
    pub sources: Vec<(StorageHandle, UnitIndex)>,
    /// The lost units and where each goes.
    pub targets: Vec<(StorageHandle, UnitIndex)>,
    /// Another loss would cost data: it does not wait for other work.
    pub is_urgent: bool,
}

/// A contiguous group whose parities are to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeOrder {
    /// The group by its handle, and the stamp of its parities.
    pub group: BlockRef,
    /// What to read: the replicas that will stay.
    pub members: Vec<EncodeMember>,
    /// The parities by their slots, and where each goes.
    pub targets: Vec<(StorageHandle, UnitIndex)>,
}

/// A container that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackOrder {
    /// The container, whose length is not known.
    pub container: BlockRef,
    /// Where it goes: to the node that writes it.
    pub storage: StorageHandle,
}

/// A packed block that is to be written as a plain replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackOrder {
    /// The block.
    pub block: BlockRef,
    /// Where the replica goes: to the node that writes it.
    pub storage: StorageHandle,
}

/// A member of a group that is to be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeMember {
    /// Its slot.
    pub slot: UnitIndex,
    /// The block.
    pub block: BlockRef,
    /// Where the replica is that is to be read, and to stay.
    pub storage: StorageHandle,
    /// CRC32C of its bytes as first written.
    pub crc32c: u32,
}

/// A replica that is to be read as its disk has it, so that others may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProveOrder {
    /// The block.
    pub block: BlockRef,
    /// Where it is, on the DataNode that is told.
    pub storage: StorageHandle,
    /// Whether the index of that container is wanted. Where it is not on that storage its end is decoded from other units.
    pub wants_index: bool,
}

/// A copy or reconstruction, as far as handing out is concerned.
pub(crate) trait Order {
    /// The block or group.
    fn group(&self) -> BlockId;
    /// Where what goes.
    fn arrivals(&self) -> Vec<(StorageHandle, UnitIndex)>;
    /// Whether it brings that there.
    fn brings(&self, id: BlockId, target: (StorageHandle, UnitIndex)) -> bool {
        self.group() == id && self.arrivals().contains(&target)
    }
}

impl Order for Transfer {
    fn group(&self) -> BlockId {
        self.slot.0
    }

    fn arrivals(&self) -> Vec<(StorageHandle, UnitIndex)> {
        let (_, unit) = self.slot;
        self.targets.iter().map(|storage| (*storage, unit)).collect()
    }
}

impl Order for Reconstruction {
    fn group(&self) -> BlockId {
        self.group.id
    }

    fn arrivals(&self) -> Vec<(StorageHandle, UnitIndex)> {
        self.targets.clone()
    }
}

impl Order for GroupRebuild {
    fn group(&self) -> BlockId {
        self.group.id
    }

    fn arrivals(&self) -> Vec<(StorageHandle, UnitIndex)> {
        self.targets.clone()
    }
}
