//! Checksums of blocks and block groups, against what they are defined to be.

use crate::cluster::*;
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
