// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.

/// `hadoop.hdfs.datanodelifeline.LifelineResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LifelineResponseProto {}

/// Methods of `hadoop.hdfs.datanodelifeline.DatanodeLifelineProtocolService`.
pub const DATANODE_LIFELINE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "sendLifeline",
];
