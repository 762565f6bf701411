//! DataNodes that are made up: they register, send heartbeats, and tell of blocks that they do not have.

use crate::connection::{BLOCK_LEN, Connection, Load, whole};
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The call id of reports on connections of clients, which theirs never have.
pub const CALL_ID: i32 = i32::MAX;

const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";
/// Layout version of Hadoop's DataNodes.
const LAYOUT: i32 = -57;
const FIRST_PORT: usize = 2000;
const HEARTBEAT: Duration = Duration::from_secs(3);
const CAPACITY: u64 = 1 << 50;

struct Node {
    registration: dn::DatanodeRegistrationProto,
    storages: Vec<String>,
    /// What each storage holds, as a full report lists it, and how many replicas that are.
    held: Mutex<Vec<(Vec<u8>, u64)>>,
}

/// All of them; a clone is another handle.
#[derive(Clone)]
pub struct Nodes {
    pool: Arc<str>,
    nodes: Arc<Vec<Node>>,
    by_port: Arc<BTreeMap<u32, usize>>,
    filled: Arc<Mutex<Filled>>,
}

/// What `fill` has made: blocks or groups whose ids and stamps follow those that a new file system begins with.
#[derive(Clone, Copy, Default)]
struct Filled {
    blocks: u64,
    /// Copies, or units.
    units: u64,
    is_striped: bool,
}

/// The ids and the stamp that come before the first block, group and stamp.
const LAST_RESERVED_BLOCK: u64 = 1 << 30;
const FIRST_GROUP_BASE: u64 = 1 << 63;
const GROUP_IDS: u64 = 16;
const LAST_RESERVED_STAMP: u64 = 1000;

impl Filled {
    /// What a storage has of it, as a full report lists it, and how many that are: block `i` has its unit `u` on the
    /// node `i + u` of them all, and the storages of a node take turns.
    fn on(&self, (node, nodes): (u64, u64), (storage, storages): (u64, u64)) -> (Vec<u8>, u64) {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for block in 0..self.blocks {
            let unit = (node + nodes - block % nodes) % nodes;
            if unit >= self.units || block / nodes % storages != storage {
                continue;
            }
            let id = match self.is_striped {
                true => FIRST_GROUP_BASE + GROUP_IDS * (block + 1) + unit,
                false => LAST_RESERVED_BLOCK + 1 + block,
            };
            replica(&mut bytes, id, LAST_RESERVED_STAMP + 1 + block);
            count += 1;
        }
        (bytes, count)
    }
}

/// A finalized replica in a full report.
fn replica(out: &mut Vec<u8>, id: u64, stamp: u64) {
    // The numbers of a report are zigzag, but only the id's sign is ever set.
    varint(out, (id << 1) ^ ((id as i64 >> 63) as u64));
    varint(out, BLOCK_LEN);
    varint(out, stamp);
    varint(out, 0);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Nodes {
    /// Registers them, tells that they are empty, and keeps them alive while the runtime is at work.
    pub async fn register(load: &Load, count: usize, storages: usize) -> Result<Nodes, String> {
        let mut connection = Connection::open(&load.addr, &load.superuser, DATANODE).await?;
        let version: pb::VersionResponseProto =
            connection.call(DATANODE, "versionRequest", &pb::VersionRequestProto {}).await?;
        let info = version.info;
        let mut nodes = Vec::new();
        let mut by_port = BTreeMap::new();
        for index in 0..count {
            let port = (FIRST_PORT + 10 * index) as u32;
            by_port.insert(port, index);
            nodes.push(Node {
                registration: dn::DatanodeRegistrationProto {
                    datanode_id: pb::DatanodeIDProto {
                        ip_addr: "127.0.0.1".to_string(),
                        host_name: "127.0.0.1".to_string(),
                        datanode_uuid: format!("00000000-0000-4000-8000-{index:012}"),
                        xfer_port: port,
                        info_port: port + 1,
                        ipc_port: port + 2,
                        info_secure_port: Some(0),
                    },
                    storage_info: pb::StorageInfoProto {
                        layout_version: LAYOUT as u32,
                        ..info.storage_info.clone()
                    },
                    keys: pb::ExportedBlockKeysProto::default(),
                    software_version: "3.5.0".to_string(),
                    process_number: None,
                },
                storages: (0..storages)
                    .map(|storage| format!("DS-00000000-0000-4000-{storage:04}-{index:012}"))
                    .collect(),
                held: Mutex::new(vec![(Vec::new(), 0); storages]),
            });
        }
        let pool = info.block_pool_id.as_str().into();
        let (nodes, by_port) = (Arc::new(nodes), Arc::new(by_port));
        let nodes = Nodes { pool, nodes, by_port, filled: Arc::default() };
        nodes.report(load).await?;
        for index in 0..count {
            tokio::spawn(nodes.clone().beat(load.clone(), index));
        }
        Ok(nodes)
    }

    /// Heartbeats for ever; a NameNode that is away is looked for again.
    async fn beat(self, load: Load, index: usize) {
        let mut connection = None;
        loop {
            if connection.is_none() {
                connection = Connection::open(&load.addr, &load.superuser, DATANODE).await.ok();
            }
            if let Some(open) = &mut connection
                && open
                    .call::<dn::HeartbeatResponseProto>(
                        DATANODE,
                        "sendHeartbeat",
                        &self.heartbeat(index),
                    )
                    .await
                    .is_err()
            {
                connection = None;
            }
            tokio::time::sleep(HEARTBEAT).await;
        }
    }

    fn heartbeat(&self, index: usize) -> dn::HeartbeatRequestProto {
        let node = &self.nodes[index];
        let report = |uuid: &String| pb::StorageReportProto {
            storage_uuid: uuid.clone(),
            capacity: Some(CAPACITY),
            remaining: Some(CAPACITY),
            storage: Some(storage(uuid)),
            ..Default::default()
        };
        dn::HeartbeatRequestProto {
            registration: node.registration.clone(),
            reports: node.storages.iter().map(report).collect(),
            xmits_in_progress: Some(0),
            xceiver_count: Some(1),
            failed_volumes: Some(0),
            ..Default::default()
        }
    }

    fn filled(&self) -> Filled {
        *self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on they have what `fill` has made: `blocks` blocks of that many copies, or groups of that many units.
    pub fn hold(&self, blocks: u64, units: u64, is_striped: bool) -> Result<(), String> {
        if units > self.nodes.len() as u64 {
            return Err(format!("{units} copies or units need as many DataNodes"));
        }
        let filled = Filled { blocks, units, is_striped };
        *self.filled.lock().unwrap_or_else(PoisonError::into_inner) = filled;
        Ok(())
    }

    /// Registers all anew and sends their full reports, all at the same time; the number of replicas in them.
    pub async fn report(&self, load: &Load) -> Result<u64, String> {
        let mut reports = JoinSet::new();
        for index in 0..self.nodes.len() {
            let (nodes, load) = (self.clone(), load.clone());
            reports.spawn(async move { nodes.report_of(index, &load).await });
        }
        let mut replicas = 0;
        while let Some(report) = reports.join_next().await {
            replicas += report.map_err(|error| error.to_string())??;
        }
        Ok(replicas)
    }

    async fn report_of(&self, index: usize, load: &Load) -> Result<u64, String> {
        let node = &self.nodes[index];
        let mut connection = Connection::open(&load.addr, &load.superuser, DATANODE).await?;
        let registration = node.registration.clone();
        let body = dn::RegisterDatanodeRequestProto { registration };
        let _: dn::RegisterDatanodeResponseProto =
            connection.call(DATANODE, "registerDatanode", &body).await?;
        let mut beat = self.heartbeat(index);
        beat.request_full_block_report_lease = Some(true);
        let answer: dn::HeartbeatResponseProto =
            connection.call(DATANODE, "sendHeartbeat", &beat).await?;
        let held = node.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (total, mut replicas) = (held.len() as i32, 0);
        for (at, (mut bytes, mut count)) in held.into_iter().enumerate() {
            let place = (index as u64, self.nodes.len() as u64);
            let more = self.filled().on(place, (at as u64, node.storages.len() as u64));
            bytes.extend(more.0);
            count += more.1;
            replicas += count;
            let body = dn::BlockReportRequestProto {
                registration: node.registration.clone(),
                block_pool_id: self.pool.to_string(),
                reports: vec![dn::StorageBlockReportProto {
                    storage: storage(&node.storages[at]),
                    blocks: Vec::new(),
                    number_of_blocks: Some(count),
                    blocks_buffers: if bytes.is_empty() { Vec::new() } else { vec![bytes] },
                }],
                context: Some(dn::BlockReportContextProto {
                    total_rpcs: total,
                    cur_rpc: at as i32,
                    id: 1 + index as i64,
                    lease_id: answer.full_block_report_lease_id,
                }),
            };
            let _: dn::BlockReportResponseProto =
                connection.call(DATANODE, "blockReport", &body).await?;
        }
        Ok(replicas)
    }

    /// Puts calls that tell of new replicas of `blocks`, where the NameNode wanted them.
    pub fn received<'a>(
        &self,
        to: &mut Connection,
        blocks: impl Iterator<Item = &'a pb::LocatedBlockProto>,
    ) {
        let mut told: BTreeMap<(usize, usize), Vec<dn::ReceivedDeletedBlockInfoProto>> =
            BTreeMap::new();
        for located in blocks {
            let block = whole(located, BLOCK_LEN);
            for (location, uuid) in located.locs.iter().zip(&located.storage_i_ds) {
                let Some(&index) = self.by_port.get(&location.id.xfer_port) else { continue };
                let node = &self.nodes[index];
                let Some(at) = node.storages.iter().position(|known| known == uuid) else {
                    continue;
                };
                let mut held = node.held.lock().unwrap_or_else(PoisonError::into_inner);
                let (bytes, count) = &mut held[at];
                replica(bytes, block.block_id, block.generation_stamp);
                *count += 1;
                told.entry((index, at)).or_default().push(dn::ReceivedDeletedBlockInfoProto {
                    block: pb::BlockProto {
                        block_id: block.block_id,
                        gen_stamp: block.generation_stamp,
                        num_bytes: Some(BLOCK_LEN),
                    },
                    status: dn::ReceivedDeletedBlockInfoProtoBlockStatus::Received as i32,
                    ..Default::default()
                });
            }
        }
        for ((index, at), blocks) in told {
            let node = &self.nodes[index];
            let body = dn::BlockReceivedAndDeletedRequestProto {
                registration: node.registration.clone(),
                block_pool_id: self.pool.to_string(),
                blocks: vec![dn::StorageReceivedDeletedBlocksProto {
                    storage_uuid: node.storages[at].clone(),
                    blocks,
                    storage: Some(storage(&node.storages[at])),
                }],
                ..Default::default()
            };
            to.put(CALL_ID, DATANODE, "blockReceivedAndDeleted", &body);
        }
    }
}

fn storage(uuid: &str) -> pb::DatanodeStorageProto {
    pb::DatanodeStorageProto { storage_uuid: uuid.to_string(), ..Default::default() }
}
