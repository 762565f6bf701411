//! What follows from a replica that cannot be read or is found corrupt: the NameNode is told, and the volume checked.
//!
//! Source: Hadoop 3.5.0 `BlockSender` (`DataNode#handleBadBlock`), `FsDatasetImpl#invalidateMissingBlock`.
//! Deviation: a missing block file is reported as a bad replica, not as a deleted one, so that fsck names it.

use crate::dataset::Block;
use crate::error::DataNodeError;
use crate::node::Node;
use cairn_replica::ReplicaState;

impl Node {
    /// Looks at why a replica here could not be read. A replica whose files are missing, too short, or give
    /// errors is reported to be bad; peers that hang up and replicas that went away meanwhile are not.
    pub(crate) fn note_read_error(&self, block: &Block, error: &DataNodeError) {
        let is_damage = match error {
            DataNodeError::Disk { source, .. } => {
                // Such an error says nothing of the replica.
                !crate::sys::is_out_of_descriptors(source)
            }
            DataNodeError::Checksum(_) => true,
            _ => false,
        };
        let replica = self.dataset.get(block.id);
        let is_there = replica.is_some_and(|replica| {
            replica.state() == ReplicaState::Finalized && replica.gs() == block.gs
        });
        if !is_damage || !is_there {
            return;
        }
        tracing::warn!(block = %block.id, %error, "a replica cannot be read");
        // A file alone may be missing, or all of a volume that is not mounted any more.
        self.check_volume(error);
        if let Some(volume) = self.dataset.volume_of(block.id) {
            self.report_own_bad_block(block, &volume);
        }
    }

    /// Reports a replica here to be bad if an operation that would have changed it found a wrong CRC.
    pub(crate) fn note_corrupt(&self, block: &Block, error: &DataNodeError) {
        let DataNodeError::Corrupt(_) = error else { return };
        let (replica, volume) = (self.dataset.get(block.id), self.dataset.volume_of(block.id));
        if let (Some(replica), Some(volume)) = (replica, volume) {
            tracing::warn!(block = %block.id, %error, "a replica is corrupt");
            let found = Block { gs: replica.gs(), len: replica.on_disk_len(), ..block.clone() };
            self.report_own_bad_block(&found, &volume);
        }
    }
}
