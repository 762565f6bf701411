//! Lost units are rebuilt from real DataNodes: every pattern of losses, lengths that end anywhere, and
//! sources that lie, stall or are gone.

use crate::cluster::*;
use cairn_codec::crc::crc32c;
use cairn_codec::{Codec, CodecKind};
use cairn_datanode::DataNodeConfig;
use cairn_stripe::{BlockId, Geometry, UnitIndex};
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::Received;
use cairn_wire::proto::datanode::{
    BlockECReconstructionCommandProto, DatanodeCommandProto,
    DatanodeCommandProtoType as CommandType,
};
use cairn_wire::proto::hdfs::{
    BlockECReconstructionInfoProto, DatanodeInfoProto, DatanodeInfosProto, ECSchemaProto,
    ErasureCodingPolicyProto, StorageTypesProto, StorageUuidsProto,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A cell that neither divides a step nor is divided by one.
pub const CELL: u64 = 24 << 10;
pub const GS: u64 = 1001;

/// A block group with its units' bytes.
pub struct Group {
    pub id: BlockId,
    geometry: Geometry,
    pub len: u64,
    pub units: Vec<Vec<u8>>,
}

impl Group {
    pub fn new(number: i64, (k, m): (usize, usize), len: u64) -> Group {
        let geometry = Geometry::new(k, m, CELL);
        let data = bytes(len as usize);
        let mut units = vec![Vec::new(); k + m];
        let codec = Codec::new(CodecKind::Rs, k, m).unwrap();
        for stripe in data.chunks(geometry.stripe_len() as usize) {
            let mut cells: Vec<Vec<u8>> =
                stripe.chunks(CELL as usize).map(<[u8]>::to_vec).collect();
            cells.resize(k, Vec::new());
            let parity_len = cells[0].len();
            for (unit, cell) in cells.iter_mut().enumerate() {
                units[unit].extend_from_slice(cell);
                cell.resize(parity_len, 0);
            }
            let mut parity = vec![vec![0; parity_len]; m];
            let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
            let mut out: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
            codec.encode(&cells, &mut out).unwrap();
            units[k..].iter_mut().zip(parity).for_each(|(unit, cell)| unit.extend(cell));
        }
        for (unit, bytes) in units.iter().enumerate() {
            let len = geometry.internal_block_len(len, UnitIndex(unit as u8));
            assert_eq!(bytes.len() as u64, len);
        }
        Group { id: BlockId(i64::MIN + 16 * number), geometry, len, units }
    }

    pub fn unit_id(&self, unit: usize) -> i64 {
        self.id.internal(UnitIndex(unit as u8)).0
    }

    /// Units that have bytes.
    pub fn real(&self) -> Vec<usize> {
        (0..self.units.len()).filter(|unit| !self.units[*unit].is_empty()).collect()
    }

    /// Writes unit `i` to DataNode `i`, but for the lost ones.
    pub async fn write(&self, cluster: &Cluster, lost: &[usize]) {
        for unit in self.real().into_iter().filter(|unit| !lost.contains(unit)) {
            write_block(cluster, &[unit], self.unit_id(unit), GS, &self.units[unit]).await;
        }
    }

    /// The command to rebuild `lost` on `targets`, as Hadoop's NameNode gives it.
    fn command(
        &self,
        cluster: &Cluster,
        lost: &[usize],
        targets: &[usize],
    ) -> BlockECReconstructionInfoProto {
        let live: Vec<usize> = self.real().into_iter().filter(|u| !lost.contains(u)).collect();
        let infos = |nodes: &[usize]| DatanodeInfosProto {
            datanodes: nodes.iter().map(|node| cluster.info(*node)).collect(),
        };
        BlockECReconstructionInfoProto {
            block: block(self.id.0, GS, self.len),
            source_dn_infos: infos(&live),
            target_dn_infos: infos(targets),
            target_storage_uuids: StorageUuidsProto {
                storage_uuids: vec![String::new(); targets.len()],
            },
            target_storage_types: StorageTypesProto { storage_types: vec![1; targets.len()] },
            live_block_indices: live.iter().map(|unit| *unit as u8).collect(),
            ec_policy: self.policy(),
            ..Default::default()
        }
    }

    pub fn policy(&self) -> ErasureCodingPolicyProto {
        ErasureCodingPolicyProto {
            schema: Some(ECSchemaProto {
                codec_name: "rs".into(),
                data_units: self.geometry.k() as u32,
                parity_units: self.geometry.m() as u32,
                options: Vec::new(),
            }),
            cell_size: Some(CELL as u32),
            ..Default::default()
        }
    }

    /// As [`Group::command`], with what Cairn's NameNode adds.
    pub fn exact_command(
        &self,
        cluster: &Cluster,
        lost: &[usize],
        targets: &[usize],
    ) -> BlockECReconstructionInfoProto {
        BlockECReconstructionInfoProto {
            target_block_indices: Some(lost.iter().map(|unit| *unit as u8).collect()),
            unit_crc_indices: Some(self.real().iter().map(|unit| *unit as u8).collect()),
            unit_crc32cs: self.real().iter().map(|u| crc32c(0, &self.units[*u])).collect(),
            ..self.command(cluster, lost, targets)
        }
    }

    /// Waits until the lost units are on their targets, with the right bytes.
    pub async fn check(&self, cluster: &Cluster, lost: &[usize], targets: &[usize]) {
        for (unit, target) in lost.iter().zip(targets) {
            let (id, want) = (self.unit_id(*unit), &self.units[*unit]);
            let event = cluster.wait_event(*target, id, Received).await;
            assert_eq!(event.block.num_bytes, Some(want.len() as u64));
            assert_eq!(event.crc32c, Some(crc32c(0, want)), "unit {unit} of {} bytes", self.len);
            let len = want.len() as u64;
            let mut stream = cluster.connect(*target).await;
            let got = read(&mut stream, block(id, GS, len), 0, len).await.unwrap();
            assert!(got == *want, "unit {unit} of a group of {} bytes", self.len);
        }
    }
}

pub fn order(info: BlockECReconstructionInfoProto) -> DatanodeCommandProto {
    DatanodeCommandProto {
        blk_ec_reconstruction_cmd: Some(BlockECReconstructionCommandProto {
            block_ec_reconstructioninfo: vec![info],
        }),
        ..command(CommandType::BlockECReconstructionCommand)
    }
}

/// Sends a command and waits until the DataNode is done with it, well or badly.
async fn run(cluster: &Cluster, node: usize, info: BlockECReconstructionInfoProto) {
    cluster.send_command(node, order(info));
    let uuid = cluster.uuid(node);
    cluster.wait("the command to be taken", |r| !r.commands.contains_key(&uuid)).await;
    for _ in 0..2 {
        // Heartbeats sent before the command was obeyed do not count.
        cluster.name_node.record.lock().unwrap().transfers.remove(&uuid);
        cluster.wait("the end of transfers", |r| r.transfers.get(&uuid) == Some(&0)).await;
    }
}

/// All sets of 1 to `most` of `count` units.
fn patterns(count: usize, most: u32) -> Vec<Vec<usize>> {
    let of_mask = |mask: u32| (0..count).filter(|unit| mask >> unit & 1 == 1).collect();
    (1u32..1 << count).filter(|mask| mask.count_ones() <= most).map(of_mask).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_loss_of_rs_3_2_is_rebuilt_at_every_length() {
    let cluster = Cluster::start(7).await;
    let mut number = 0;
    // Less than a cell; a cell; two and a part; a stripe; stripes and a part, in several steps.
    for len in [1, CELL, 2 * CELL + 7, 3 * CELL, 3 * 5 * CELL + CELL + 4097] {
        for lost in patterns(5, 2) {
            number += 1;
            let group = Group::new(number, (3, 2), len);
            let lost: Vec<usize> = lost.into_iter().filter(|u| group.real().contains(u)).collect();
            if lost.is_empty() {
                continue;
            }
            group.write(&cluster, &lost).await;
            // The first target rebuilds; it has no source, so all are read from elsewhere.
            let targets = &[5, 6][..lost.len()];
            let info = match number % 2 {
                0 => group.command(&cluster, &lost, targets),
                _ => group.exact_command(&cluster, &lost, targets),
            };
            cluster.send_command(5, order(info));
            group.check(&cluster, &lost, targets).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_of_rs_6_3_are_rebuilt() {
    let cluster = Cluster::start(12).await;
    let len = 6 * 3 * CELL + 2 * CELL + 99;
    let some =
        [vec![0], vec![8], vec![2, 3], vec![5, 7], vec![0, 4, 8], vec![6, 7, 8], vec![1, 2, 5]];
    for (number, lost) in (1..).zip(some) {
        let group = Group::new(number, (6, 3), len);
        group.write(&cluster, &lost).await;
        let targets = &[9, 10, 11][..lost.len()];
        // A source does the work: one unit is read without the network, all targets are remote.
        let worker = (0..9).find(|unit| !lost.contains(unit)).unwrap();
        cluster.send_command(worker, order(group.exact_command(&cluster, &lost, targets)));
        group.check(&cluster, &lost, targets).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_with_bad_bytes_is_reported_and_passed_over() {
    let cluster = Cluster::start(6).await;
    let group = Group::new(1, (3, 2), 3 * 7 * CELL + 5);
    group.write(&cluster, &[4]).await;
    let id = group.unit_id(1);
    let path = cluster.files(1, id).into_iter().find(|path| path.ends_with(format!("blk_{id}")));
    let path = cluster.dir(1).join(path.unwrap());
    let mut content = std::fs::read(&path).unwrap();
    // In the second step: what the first gave is good, and stays.
    content[100_000] ^= 1;
    std::fs::write(&path, content).unwrap();
    cluster.send_command(5, order(group.command(&cluster, &[4], &[5])));
    group.check(&cluster, &[4], &[5]).await;
    let bad = (id, cluster.uuid(1));
    cluster.wait("the bad replica's report", |r| r.bad.contains(&bad)).await;
}

/// A DataNode that takes connections and never says a word.
async fn mute() -> DatanodeInfoProto {
    mute_counted().await.0
}

/// The same, with the number of its connections.
pub async fn mute_counted() -> (DatanodeInfoProto, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut info = DatanodeInfoProto::default();
    info.id.ip_addr = "127.0.0.1".into();
    info.id.datanode_uuid = "mute".into();
    info.id.xfer_port = listener.local_addr().unwrap().port().into();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            held.push(stream);
        }
    });
    (info, connections)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_stalls_or_is_gone_is_replaced() {
    const MOST: Duration = Duration::from_secs(60);
    let patient = |config: &mut DataNodeConfig| config.read_timeout = 2 * MOST;
    let mut cluster = Cluster::start_tuned(11, patient).await;
    let group = Group::new(1, (6, 3), 6 * 5 * CELL + 5);
    group.write(&cluster, &[3]).await;
    let mut info = group.exact_command(&cluster, &[3], &[9]);
    info.source_dn_infos.datanodes[0] = mute().await;
    cluster.kill_node(1);
    let start = std::time::Instant::now();
    cluster.send_command(9, order(info));
    group.check(&cluster, &[3], &[9]).await;
    assert!(start.elapsed() < MOST, "took {:?}", start.elapsed());
}

/// FIELD-NOTES row 2: a source whose chunks have good CRCs and whose bytes are not those of its unit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_02_a_source_that_lies_is_found_by_the_recorded_crcs() {
    let cluster = Cluster::start(7).await;
    let group = Group::new(1, (3, 2), 3 * 4 * CELL);
    group.write(&cluster, &[0, 2]).await;
    write_block(&cluster, &[2], group.unit_id(2), GS, &vec![0; group.units[2].len()]).await;
    cluster.send_command(5, order(group.exact_command(&cluster, &[0], &[5])));
    group.check(&cluster, &[0], &[5]).await;
    let bad = (group.unit_id(2), cluster.uuid(2));
    cluster.wait("the lying replica's report", |r| r.bad.contains(&bad)).await;
}

/// FIELD-NOTES row 6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_06_what_is_not_proven_never_becomes_a_replica() {
    let cluster = Cluster::start(7).await;
    let group = Group::new(1, (3, 2), 3 * 4 * CELL + 1);
    group.write(&cluster, &[1, 3]).await;
    let mut info = group.exact_command(&cluster, &[1, 3], &[5, 6]);
    // Only the lost unit's CRC is known, and it is another: no source can be told to be wrong.
    info.unit_crc_indices = Some(vec![1]);
    info.unit_crc32cs = vec![7];
    run(&cluster, 5, info).await;
    for (unit, node) in [(1, 5), (3, 6)] {
        assert_eq!(cluster.files(node, group.unit_id(unit)), Vec::<std::path::PathBuf>::new());
    }
    let record = cluster.name_node.record.lock().unwrap();
    let units = [group.unit_id(1), group.unit_id(3)];
    assert!(record.events.iter().all(|(_, event)| !units.contains(&(event.block.block_id as i64))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_gone_does_not_hold_the_others_up() {
    let mut cluster = Cluster::start(7).await;
    let group = Group::new(1, (3, 2), 3 * 6 * CELL);
    group.write(&cluster, &[0, 4]).await;
    let info = group.exact_command(&cluster, &[0, 4], &[5, 6]);
    cluster.kill_node(6);
    cluster.send_command(5, order(info));
    group.check(&cluster, &[0], &[5]).await;
}

/// FIELD-NOTES row 16: the same order twice is obeyed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_16_the_same_work_is_not_done_twice() {
    let cluster = Cluster::start(6).await;
    let group = Group::new(1, (3, 2), 3 * 4 * CELL);
    group.write(&cluster, &[2]).await;
    let info = group.exact_command(&cluster, &[2], &[5]);
    // Two of four sources say nothing: it takes until they are given up.
    let mut stuck = info.clone();
    stuck.source_dn_infos.datanodes[0] = mute().await;
    stuck.source_dn_infos.datanodes[1] = mute().await;
    for _ in 0..3 {
        cluster.send_command(5, order(stuck.clone()));
    }
    let uuid = cluster.uuid(5);
    cluster.wait("the work to start", |r| r.transfers.get(&uuid) == Some(&1)).await;
    for _ in 0..3 {
        cluster.name_node.record.lock().unwrap().transfers.remove(&uuid);
        cluster.wait("a heartbeat", |r| r.transfers.contains_key(&uuid)).await;
    }
    assert_eq!(cluster.name_node.record.lock().unwrap().most_transfers, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_is_there_already_stays() {
    let cluster = Cluster::start(6).await;
    let group = Group::new(1, (3, 2), 3 * 4 * CELL);
    group.write(&cluster, &[2]).await;
    let info = group.exact_command(&cluster, &[2], &[5]);
    cluster.send_command(5, order(info.clone()));
    group.check(&cluster, &[2], &[5]).await;
    run(&cluster, 5, info).await;
    group.check(&cluster, &[2], &[5]).await;
}

/// Passes connections on to a DataNode; after the first `prompt` bytes of each, the answers come late.
pub async fn late(
    cluster: &Cluster,
    node: usize,
    prompt: usize,
    delay: Duration,
) -> DatanodeInfoProto {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut info = cluster.info(node);
    let real = cluster.node(node).xfer_addr();
    info.id.xfer_port = listener.local_addr().unwrap().port().into();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = tokio::net::TcpStream::connect(real).await.unwrap();
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
                (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut near_in, &mut far_out).await });
            tokio::spawn(async move {
                let (mut passed, mut buffer) = (0, vec![0; 8 << 10]);
                while let Ok(count @ 1..) = far_in.read(&mut buffer).await {
                    if passed < prompt && passed + count >= prompt {
                        tokio::time::sleep(delay).await;
                    }
                    passed += count;
                    if near_out.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    info
}

/// FIELD-NOTES row 3: answers that come after others were asked, in the middle of a unit and while later
/// steps and other groups are decoded, change nothing that was rebuilt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_03_answers_that_come_too_late_write_nowhere() {
    let cluster = Cluster::start(10).await;
    // Beyond the 300 ms after which these DataNodes ask another source, and before the work is over.
    let sources = [(0, 90_000, 330), (3, 150_000, 400), (5, 40_000, 360)];
    let mut infos = Vec::new();
    for (node, prompt, ms) in sources {
        infos.push((node, late(&cluster, node, prompt, Duration::from_millis(ms)).await));
    }
    let groups: Vec<Group> =
        (1..=3).map(|number| Group::new(number, (6, 3), 6 * 20 * CELL + 77)).collect();
    for group in &groups {
        group.write(&cluster, &[1]).await;
        let mut info = group.exact_command(&cluster, &[1], &[9]);
        // Without the record, only what was read counts.
        info.unit_crc_indices = None;
        info.unit_crc32cs = Vec::new();
        for (node, late) in &infos {
            let at = info.live_block_indices.iter().position(|unit| usize::from(*unit) == *node);
            info.source_dn_infos.datanodes[at.unwrap()] = late.clone();
        }
        cluster.send_command(9, order(info));
    }
    for group in &groups {
        group.check(&cluster, &[1], &[9]).await;
    }
}
