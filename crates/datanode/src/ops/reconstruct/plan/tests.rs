//! Commands that name their indices, that imply them, and that contradict themselves.

use super::*;
use cairn_wire::proto::hdfs::{ECSchemaProto, ExtendedBlockProto};

const CELL: u64 = 64 << 10;

fn info(len: u64, live: &[u8], targets: usize) -> BlockECReconstructionInfoProto {
    let node = |name: String| {
        let mut node = DatanodeInfoProto::default();
        node.id.datanode_uuid = name;
        node
    };
    let mut info = BlockECReconstructionInfoProto {
        block: ExtendedBlockProto {
            block_id: i64::MIN as u64,
            num_bytes: Some(len),
            ..Default::default()
        },
        live_block_indices: live.to_vec(),
        ec_policy: ErasureCodingPolicyProto {
            schema: Some(ECSchemaProto {
                codec_name: "rs".into(),
                data_units: 3,
                parity_units: 2,
                options: Vec::new(),
            }),
            cell_size: Some(CELL as u32),
            ..Default::default()
        },
        ..Default::default()
    };
    info.source_dn_infos.datanodes = live.iter().map(|u| node(format!("s{u}"))).collect();
    info.target_dn_infos.datanodes = (0..targets).map(|at| node(format!("t{at}"))).collect();
    info
}

fn units(info: BlockECReconstructionInfoProto) -> Result<Vec<(u8, String)>, String> {
    let plan = Plan::decode(info).map_err(|error| error.to_string())?;
    Ok(plan.targets.into_iter().map(|t| (t.unit.0, t.node.id.datanode_uuid)).collect())
}

fn named(unit: u8, at: usize) -> (u8, String) {
    (unit, format!("t{at}"))
}

#[test]
fn hadoop_means_the_missing_units_in_order() {
    assert_eq!(units(info(9 * CELL, &[0, 2, 4], 2)), Ok(vec![named(1, 0), named(3, 1)]));
    // Fewer targets than lost units: the first ones.
    assert_eq!(units(info(9 * CELL, &[0, 2, 4], 1)), Ok(vec![named(1, 0)]));
    // A unit without bytes is not lost, and not needed.
    assert_eq!(units(info(CELL, &[3], 2)), Ok(vec![named(0, 0), named(4, 1)]));
}

/// FIELD-NOTES row 2: live units on busy DataNodes are excluded, and are never rebuilt as something else.
/// Row 22: nor is something else rebuilt because there are more targets than missing units.
#[test]
fn row_02_row_22_excluded_units_are_not_rebuilt() {
    let mut busy = info(9 * CELL, &[0, 2, 4], 1);
    busy.exclude_reconstructed_indices = Some(vec![1]);
    assert_eq!(units(busy.clone()), Ok(vec![named(3, 0)]));
    busy.target_dn_infos.datanodes.push(DatanodeInfoProto::default());
    assert!(units(busy).unwrap_err().contains("2 targets for 1 lost units"));
}

#[test]
fn named_units_are_taken_as_named() {
    let mut exact = info(9 * CELL, &[0, 1, 2], 1);
    exact.target_block_indices = Some(vec![4]);
    assert_eq!(units(exact.clone()), Ok(vec![named(4, 0)]));
    for (bytes, complaint) in [
        (vec![3, 4], "1 targets for 2 lost units"),
        (vec![2], "is there"),
        (vec![9], "unit 9 in a group of 5 units"),
    ] {
        exact.target_block_indices = Some(bytes);
        let error = units(exact.clone()).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn contradictions_are_refused() {
    let few = units(info(9 * CELL, &[0, 2], 1)).unwrap_err();
    assert!(few.contains("are named where 3 are needed"), "{few}");
    let mut uneven = info(9 * CELL, &[0, 2, 4], 1);
    uneven.live_block_indices.push(3);
    assert!(units(uneven).unwrap_err().contains("4 indices for 3 sources"));
    let mut crcs = info(9 * CELL, &[0, 2, 4], 1);
    crcs.unit_crc_indices = Some(vec![0, 1]);
    crcs.unit_crc32cs = vec![7];
    assert!(units(crcs).unwrap_err().contains("2 indices for 1 CRCs"));
    let mut whole = info(9 * CELL, &[0, 2, 4], 1);
    whole.block.block_id = 7;
    assert!(units(whole).unwrap_err().contains("not a block group"));
}
