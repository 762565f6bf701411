//! Passing on what another DataNode answers to a client's question.

use crate::error::{DataNodeError, transfer_error};
use crate::messages;
use crate::node::Node;
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, ClientReadStatusProto, DatanodeInfoProto, OpReadBlockProto, Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;

/// Why a read was not served.
pub(super) enum Unserved {
    /// Nothing was sent.
    Refused(DataNodeError),
    /// Some was: the reader must not take what it has for all.
    Begun(DataNodeError),
}

impl From<DataNodeError> for Unserved {
    fn from(error: DataNodeError) -> Unserved {
        Unserved::Refused(error)
    }
}

/// Puts a read to `from`, and passes the packets on, CRCs and all: the client checks them.
pub(super) async fn read(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    from: &DatanodeInfoProto,
) -> std::result::Result<(), Unserved> {
    let source = messages::xfer_name(from);
    let failed = |error| transfer_error(format!("relaying from {source}"), error);
    let token = request.header.base_header.token.clone().unwrap_or_default();
    let mut peer = node.connect_to_source(from, &token).await?;
    let marked = OpReadBlockProto { from_server: Some(true), ..request.clone() };
    peer.writer.send_op(Op::ReadBlock, &marked).await.map_err(failed)?;
    let answer: BlockOpResponseProto =
        peer.reader.read_message("read answer").await.map_err(failed)?;
    if answer.status != Status::Success as i32 {
        return Err(DataNodeError::Peer(answer.message.unwrap_or_default()).into());
    }
    // The first bytes are there before anything is promised.
    let mut packet = peer.reader.read_packet().await.map_err(failed)?;
    stream.writer.hold_message(&BlockOpResponseProto { storage_uuid: None, ..answer });
    let flow = &node.metrics.read_by_clients;
    let passed = async {
        loop {
            let header = &packet.header;
            stream.writer.send_packet(header, &packet.checksums, &packet.data).await?;
            flow.bytes.add(packet.data.len() as u64);
            if header.last_packet {
                break;
            }
            packet = peer.reader.read_packet().await.map_err(failed)?;
        }
        flow.blocks.add(1);
        let verdict = ClientReadStatusProto { status: Status::Success as i32 };
        // Its failure to hear that changes nothing.
        let _ = peer.writer.send_message(&verdict).await;
        Ok(())
    };
    passed.await.map_err(Unserved::Begun)
}
