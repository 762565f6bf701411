//! Who may use which protocol, at a member that follows.

use super::*;
use cairn_wire::rpc::{self, Preamble};
use std::io::{Read, Write};
use std::net::TcpStream;

const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";

/// The class of the exception for a call of DataNodes, over a connection that was opened for clients.
fn asks_as_datanode(addr: &str, user: &str) -> String {
    let id = [7; 16];
    let user_info = hadoop::UserInformationProto {
        effective_user: Some(user.to_string()),
        ..Default::default()
    };
    let context = hadoop::IpcConnectionContextProto {
        user_info: Some(user_info),
        protocol: Some(CLIENT.to_string()),
    };
    let call = hadoop::RequestHeaderProto {
        method_name: "versionRequest".to_string(),
        declaring_class_protocol_name: DATANODE.to_string(),
        client_protocol_version: 1,
    };
    let header = |call_id| rpc::request_header(call_id, rpc::RETRY_COUNT_NONE, &id);
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&Preamble::simple().encode()).unwrap();
    let opened = rpc::encode_frame(&header(rpc::CALL_ID_CONNECTION_CONTEXT), Some(&context));
    stream.write_all(&opened).unwrap();
    let asked = rpc::encode_request(&header(1), &call, &pb::VersionRequestProto {});
    stream.write_all(&asked).unwrap();
    let mut len = [0; 4];
    stream.read_exact(&mut len).unwrap();
    let mut answer = vec![0; rpc::frame_len(len, 1 << 20).unwrap()];
    stream.read_exact(&mut answer).unwrap();
    let answer: hadoop::RpcResponseHeaderProto =
        rpc::take_delimited(&mut answer.into(), "the answer").unwrap();
    answer.exception_class_name.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_for_clients_is_none_for_datanodes_where_a_member_follows() {
    let mut three = Three::new().await;
    let acl = |protocol: &str, users: &str| {
        (format!("security.{protocol}.protocol.acl"), users.to_string())
    };
    three.policy = Some(vec![acl("client", "*"), acl("datanode", "hdfs")]);
    // It joins when it hears of a leader, and hears of none.
    three.start(1).await;
    let addr = three.members[NAMES[1]].rpc.clone();
    let asks = async |user: &'static str| {
        let addr = addr.clone();
        tokio::task::spawn_blocking(move || asks_as_datanode(&addr, user)).await.unwrap()
    };
    assert_eq!(asks("bob").await, class::AUTHORIZATION);
    assert_eq!(asks("hdfs").await, class::STANDBY);
    three.stop(1).await;
}
