//! Commands of the cluster as Hadoop's messages.
//!
//! Source: Hadoop 3.5.0 `PBHelper#convert(DatanodeCommand)`.

use cairn_master::Lookup;
use cairn_master::orders::{self, Earlier, Truncation};
use cairn_namespace::Result;
use cairn_redundancy::{
    BlockRecovery, BlockRef, Cluster, Command, Layout, Reconstruction, ScrubOrder, StorageHandle,
    Transfer,
};
use cairn_stripe::{BlockId, UnitIndex};
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use super::encoder::{Encoder, block};
use crate::protocol::convert;

/// The order to register anew.
pub(super) fn register() -> dn::DatanodeCommandProto {
    dn::DatanodeCommandProto {
        cmd_type: dn::DatanodeCommandProtoType::RegisterCommand as i32,
        register_cmd: Some(dn::RegisterCommandProto {}),
        ..Default::default()
    }
}

/// The keys of block tokens, where a DataNode is to have others.
pub(super) fn keys(keys: pb::ExportedBlockKeysProto) -> dn::DatanodeCommandProto {
    dn::DatanodeCommandProto {
        cmd_type: dn::DatanodeCommandProtoType::KeyUpdateCommand as i32,
        key_update_cmd: Some(dn::KeyUpdateCommandProto { keys }),
        ..Default::default()
    }
}

/// The commands for a DataNode's heartbeat. `pool` is the block pool's id. An order of which the namespace cannot be
/// asked is not sent, nor any other: they are given out again when their time is over.
pub(super) fn encode(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    pool: &str,
    commands: &[Command],
) -> Result<Vec<dn::DatanodeCommandProto>> {
    let encoder = Encoder { cluster, lookup, pool };
    commands.iter().filter_map(|command| encoder.command(command).transpose()).collect()
}

/// What a DataNode is to scrub, for its heartbeat.
pub(super) fn encode_scrubs(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    pool: &str,
    orders: &[ScrubOrder],
) -> Result<Vec<dn::ScrubOrderProto>> {
    let encoder = Encoder { cluster, lookup, pool };
    orders.iter().map(|order| encoder.scrub(order)).collect()
}

impl Encoder<'_> {
    /// A command as Hadoop has it; none for those that Cairn's own DataNodes are told in another field.
    fn command(&self, command: &Command) -> Result<Option<dn::DatanodeCommandProto>> {
        use dn::DatanodeCommandProtoType as Type;
        let mut proto = dn::DatanodeCommandProto::default();
        let cmd_type = match command {
            Command::Register => return Ok(Some(register())),
            Command::Encode(_)
            | Command::Pack(_)
            | Command::Unpack(_)
            | Command::Rebuild(_)
            | Command::Prove(_)
            | Command::Retire(_) => return Ok(None),
            Command::Transfer(transfers) => {
                proto.blk_cmd = Some(self.transfer(transfers));
                Type::BlockCommand
            }
            Command::Invalidate(blocks) => {
                proto.blk_cmd = Some(self.invalidate(blocks));
                Type::BlockCommand
            }
            Command::Recover(recoveries) => {
                let blocks = recoveries.iter().map(|recovery| self.recovery(recovery));
                let blocks = blocks.collect::<Result<_>>()?;
                proto.recovery_cmd = Some(dn::BlockRecoveryCommandProto { blocks });
                Type::BlockRecoveryCommand
            }
            Command::Reconstruct(works) => {
                let works = works.iter().map(|work| self.reconstruction(work));
                let works = works.collect::<Result<_>>()?;
                proto.blk_ec_reconstruction_cmd = Some(dn::BlockECReconstructionCommandProto {
                    block_ec_reconstructioninfo: works,
                });
                Type::BlockECReconstructionCommand
            }
            Command::BalancerBandwidth(bandwidth) => {
                proto.balancer_cmd =
                    Some(dn::BalancerBandwidthCommandProto { bandwidth: *bandwidth });
                Type::BalancerBandwidthCommand
            }
            Command::Cache(blocks) => {
                proto.blk_id_cmd = Some(self.ids(dn::BlockIdCommandProtoAction::Cache, blocks));
                Type::BlockIdCommand
            }
            Command::Uncache(blocks) => {
                proto.blk_id_cmd = Some(self.ids(dn::BlockIdCommandProtoAction::Uncache, blocks));
                Type::BlockIdCommand
            }
            Command::Finalize => {
                let block_pool_id = self.pool.to_string();
                proto.finalize_cmd = Some(dn::FinalizeCommandProto { block_pool_id });
                Type::FinalizeCommand
            }
        };
        proto.cmd_type = cmd_type as i32;
        Ok(Some(proto))
    }

    fn transfer(&self, transfers: &[Transfer]) -> dn::BlockCommandProto {
        let of_targets = transfers.iter().map(|transfer| transfer.targets.as_slice());
        dn::BlockCommandProto {
            action: dn::BlockCommandProtoAction::Transfer as i32,
            block_pool_id: self.pool.to_string(),
            blocks: transfers.iter().map(|transfer| block(&transfer.block)).collect(),
            targets: of_targets.clone().map(|targets| self.infos(targets)).collect(),
            target_storage_uuids: of_targets.clone().map(|targets| self.uuids(targets)).collect(),
            target_storage_types: of_targets.map(|targets| self.types(targets)).collect(),
        }
    }

    fn invalidate(&self, blocks: &[BlockRef]) -> dn::BlockCommandProto {
        dn::BlockCommandProto {
            action: dn::BlockCommandProtoAction::Invalidate as i32,
            block_pool_id: self.pool.to_string(),
            blocks: blocks.iter().map(block).collect(),
            // Hadoop's DataNode reads one entry of each of these for every block.
            targets: vec![pb::DatanodeInfosProto::default(); blocks.len()],
            target_storage_uuids: vec![pb::StorageUuidsProto::default(); blocks.len()],
            target_storage_types: vec![pb::StorageTypesProto::default(); blocks.len()],
        }
    }

    fn ids(
        &self,
        action: dn::BlockIdCommandProtoAction,
        blocks: &[BlockId],
    ) -> dn::BlockIdCommandProto {
        dn::BlockIdCommandProto {
            action: action as i32,
            block_pool_id: self.pool.to_string(),
            block_ids: blocks.iter().map(|id| id.0 as u64).collect(),
        }
    }

    fn recovery(&self, recovery: &BlockRecovery) -> Result<pb::RecoveringBlockProto> {
        let storages = recovery.locations.as_slice();
        let striped = recovery.layout.is_striped();
        let Truncation { source, len } = orders::truncation(self.lookup.store, recovery)?;
        let truncate_block = len.map(|len| pb::BlockProto {
            block_id: recovery.block.id.0 as u64,
            gen_stamp: recovery.new_gs.0,
            num_bytes: Some(len),
        });
        let ec_policy = striped.then(|| self.policy(recovery.layout)).transpose()?;
        let earlier = orders::earlier(self.lookup.store, recovery)?;
        let (since, earlier, away_count) = match earlier {
            Some(Earlier { since, places, away_count }) => (Some(since.0), places, away_count),
            None => (None, Vec::new(), 0),
        };
        Ok(pb::RecoveringBlockProto {
            new_gen_stamp: recovery.new_gs.0,
            block: pb::LocatedBlockProto {
                b: self.extended(&source.unwrap_or(recovery.block)),
                offset: u64::MAX,
                locs: self.infos(storages).datanodes,
                corrupt: false,
                block_token: convert::no_token(),
                storage_types: self.types(storages).storage_types,
                storage_i_ds: self.uuids(storages).storage_uuids,
                ..Default::default()
            },
            truncate_block,
            ec_policy,
            block_indices: striped.then(|| indices(recovery.units.iter().copied())),
            away_indices: Some(indices(recovery.away.iter().copied())),
            earlier_gen_stamp: since,
            earlier_locs: self.infos(&earlier).datanodes,
            earlier_away_count: since.map(|_| u32::try_from(away_count).unwrap_or(u32::MAX)),
        })
    }

    fn reconstruction(&self, work: &Reconstruction) -> Result<pb::BlockECReconstructionInfoProto> {
        let sources: Vec<StorageHandle> =
            work.sources.iter().map(|(storage, _)| *storage).collect();
        let targets: Vec<StorageHandle> =
            work.targets.iter().map(|(storage, _)| *storage).collect();
        let crcs = orders::recorded_crcs(self.lookup.store, &work.group)?;
        Ok(pb::BlockECReconstructionInfoProto {
            block: self.extended(&work.group),
            source_dn_infos: self.infos(&sources),
            target_dn_infos: self.infos(&targets),
            target_storage_uuids: self.uuids(&targets),
            target_storage_types: self.types(&targets),
            live_block_indices: indices(work.sources.iter().map(|(_, unit)| *unit)),
            ec_policy: self.policy(work.layout)?,
            exclude_reconstructed_indices: Some(indices(work.excluded_units.iter().copied())),
            target_block_indices: Some(indices(work.targets.iter().map(|(_, unit)| *unit))),
            unit_crc_indices: Some(indices(crcs.iter().map(|(unit, _)| *unit))),
            is_urgent: Some(work.is_urgent),
            unit_crc32cs: crcs.into_iter().map(|(_, crc)| crc).collect(),
        })
    }

    fn scrub(&self, order: &ScrubOrder) -> Result<dn::ScrubOrderProto> {
        let storages: Vec<StorageHandle> = order.places.iter().map(|(s, _)| *s).collect();
        let striped = order.layout.is_striped();
        let ec_policy = striped.then(|| self.policy(order.layout)).transpose()?;
        Ok(dn::ScrubOrderProto {
            block: self.extended(&order.block),
            datanodes: self.infos(&storages),
            storage_uuids: self.uuids(&storages),
            unit_indices: striped.then(|| indices(order.places.iter().map(|(_, unit)| *unit))),
            ec_policy,
            bytes_per_second: order.bytes_per_second,
        })
    }

    fn infos(&self, storages: &[StorageHandle]) -> pb::DatanodeInfosProto {
        let nodes = storages.iter().map(|s| self.cluster.node(self.cluster.storage(*s).node));
        let datanodes = nodes.map(|node| convert::datanode_info(node, 0)).collect();
        pb::DatanodeInfosProto { datanodes }
    }

    fn uuids(&self, storages: &[StorageHandle]) -> pb::StorageUuidsProto {
        let uuids = storages.iter().map(|s| self.cluster.storage(*s).uuid.clone());
        pb::StorageUuidsProto { storage_uuids: uuids.collect() }
    }

    fn types(&self, storages: &[StorageHandle]) -> pb::StorageTypesProto {
        let types = storages.iter().map(|s| self.cluster.storage(*s).storage_type as i32);
        pb::StorageTypesProto { storage_types: types.collect() }
    }

    fn policy(&self, layout: Layout) -> Result<pb::ErasureCodingPolicyProto> {
        let Layout::Striped { policy: id, .. } = layout else {
            return Ok(convert::replication_policy());
        };
        self.policy_numbered(id)
    }
}

fn indices(units: impl Iterator<Item = UnitIndex>) -> Vec<u8> {
    units.map(|unit| unit.0).collect()
}
