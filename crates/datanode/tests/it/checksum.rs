//! Checksums of blocks and block groups, against what they are defined to be.

use crate::cluster::*;
use crate::reconstruct::{CELL, Group};
use cairn_codec::crc::crc32c;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use md5::{Digest, Md5};

const ID: i64 = 1_073_741_825;

fn composite(stripe: u64) -> Option<BlockChecksumOptionsProto> {
    let kind = BlockChecksumTypeProto::CompositeCrc as i32;
    Some(BlockChecksumOptionsProto { block_checksum_type: Some(kind), stripe_length: Some(stripe) })
}

async fn checksum_of(
    cluster: &Cluster,
    len: u64,
    options: Option<BlockChecksumOptionsProto>,
) -> OpBlockChecksumResponseProto {
    let mut stream = cluster.connect(0).await;
    let request = OpBlockChecksumProto {
        header: base_header(block(ID, 1001, len)),
        block_checksum_options: options,
        ..Default::default()
    };
    stream.writer.send_op(Op::BlockChecksum, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Success as i32, "{:?}", answer.message);
    answer.checksum_response.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_has_the_md5_of_its_crcs_and_the_crc_of_its_bytes() {
    let cluster = Cluster::start(1).await;
    let data = bytes(10_000);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    for len in [10_000, 9_999, 512, 5_000, 1] {
        let part = &data[..len as usize];
        let got = checksum_of(&cluster, len, None).await;
        assert_eq!((got.bytes_per_crc, got.crc_per_block), (512, 20));
        assert_eq!(got.block_checksum, Md5::digest(crcs(part)).to_vec(), "{len}");
        let got = checksum_of(&cluster, len, composite(0)).await;
        assert_eq!(got.block_checksum, crc32c(0, part).to_be_bytes(), "{len}");
    }
    let got = checksum_of(&cluster, 10_000, composite(4096)).await;
    let want: Vec<u8> = data.chunks(4096).flat_map(|cell| crc32c(0, cell).to_be_bytes()).collect();
    assert_eq!(got.block_checksum, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_group_has_the_checksum_of_its_data_units() {
    let cluster = Cluster::start(3).await;
    let (cell, group) = (1024, i64::MIN + 16);
    let data = bytes(2 * 3 * cell + 1500);
    // RS-3-2 without its parity: the first cells of the last stripe are one full and one short.
    let mut units = vec![Vec::new(); 3];
    for (index, bytes) in data.chunks(cell).enumerate() {
        units[index % 3].extend_from_slice(bytes);
    }
    for (unit, bytes) in units.iter().enumerate() {
        write_block(&cluster, &[unit], group + unit as i64, 1001, bytes).await;
    }
    let request = |options| OpBlockGroupChecksumProto {
        header: base_header(block(group, 1001, data.len() as u64)),
        datanodes: DatanodeInfosProto { datanodes: (0..3).map(|n| cluster.info(n)).collect() },
        block_tokens: vec![TokenProto::default(); 3],
        ec_policy: ErasureCodingPolicyProto {
            id: 70,
            cell_size: Some(cell as u32),
            schema: Some(ECSchemaProto {
                codec_name: "rs".into(),
                data_units: 3,
                parity_units: 2,
                options: Vec::new(),
            }),
            ..Default::default()
        },
        block_indices: vec![0, 1, 2],
        requested_num_bytes: data.len() as u64,
        block_checksum_options: options,
    };
    let mut stream = cluster.connect(1).await;
    stream.writer.send_op(Op::BlockGroupChecksum, &request(None)).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    // Three MD5s, then zeros up to the 64 bytes that Hadoop's buffer has grown to.
    let mut md5s: Vec<u8> =
        units.iter().flat_map(|unit| Md5::digest(crcs(unit)).to_vec()).collect();
    md5s.resize(64, 0);
    assert_eq!(answer.checksum_response.unwrap().block_checksum, Md5::digest(&md5s).to_vec());

    stream.writer.send_op(Op::BlockGroupChecksum, &request(composite(0))).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.checksum_response.unwrap().block_checksum, crc32c(0, &data).to_be_bytes());
}

/// The checksum of a group whose units `named` are said to be on the DataNodes of their numbers.
async fn group_checksum(
    cluster: &Cluster,
    group: &Group,
    named: &[usize],
    len: u64,
    options: Option<BlockChecksumOptionsProto>,
) -> Result<Vec<u8>, String> {
    let request = OpBlockGroupChecksumProto {
        header: base_header(block(group.id.0, 1001, group.len)),
        datanodes: DatanodeInfosProto {
            datanodes: named.iter().map(|unit| cluster.info(*unit)).collect(),
        },
        block_tokens: vec![TokenProto::default(); named.len()],
        ec_policy: ErasureCodingPolicyProto {
            id: 70,
            cell_size: Some(CELL as u32),
            schema: Some(ECSchemaProto {
                codec_name: "rs".into(),
                data_units: 3,
                parity_units: 2,
                options: Vec::new(),
            }),
            ..Default::default()
        },
        block_indices: named.iter().map(|unit| *unit as u32).collect(),
        requested_num_bytes: len,
        block_checksum_options: options,
    };
    let mut stream = cluster.connect(5).await;
    stream.writer.send_op(Op::BlockGroupChecksum, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    match answer.checksum_response {
        Some(checksum) => Ok(checksum.block_checksum),
        None => Err(answer.message.unwrap()),
    }
}

/// A unit that is gone is decoded, and what has just failed is no source: neither of what is lost nor of what its
/// DataNode still claims to have.
#[tokio::test(flavor = "multi_thread")]
async fn row_25_the_checksum_of_a_group_with_lost_units_is_that_of_a_whole_one() {
    let cluster = Cluster::start(6).await;
    let lens = [7, 2 * CELL + 1, 3 * CELL, 7 * CELL + 1000, 90 * CELL + 777];
    for (number, len) in lens.into_iter().enumerate() {
        let whole = Group::new(2 * number as i64 + 1, (3, 2), len);
        whole.write(&cluster, &[]).await;
        for lost in [vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![0, 3], vec![2, 4]] {
            if !lost.iter().all(|unit| whole.real().contains(unit)) {
                continue;
            }
            let number =
                1000 + 100 * number as i64 + 10 * lost[0] as i64 + *lost.last().unwrap() as i64;
            let broken = Group::new(number, (3, 2), len);
            broken.write(&cluster, &lost).await;
            let named: Vec<usize> =
                whole.real().into_iter().filter(|unit| !lost.contains(unit)).collect();
            for (options, len) in
                [(None, len), (composite(0), len), (None, len.div_ceil(2)), (composite(0), len - 1)]
            {
                let all = whole.real();
                let want = group_checksum(&cluster, &whole, &all, len, options.clone());
                let want = want.await.unwrap();
                // Lost ones are not named, or are said to be where they are not.
                for named in [&named, &broken.real()] {
                    let got = group_checksum(&cluster, &broken, named, len, options.clone()).await;
                    assert_eq!(got.as_ref(), Ok(&want), "{lost:?} of {named:?}, {len} bytes");
                }
            }
        }
    }
    let broken = Group::new(5000, (3, 2), 9 * CELL);
    broken.write(&cluster, &[0, 1, 4]).await;
    for named in [vec![2, 3], vec![0, 1, 2, 3, 4]] {
        let got = group_checksum(&cluster, &broken, &named, broken.len, None).await;
        got.expect_err("three of five are lost");
    }
}
