// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.

/// `hadoop.common.CancelDelegationTokenRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CancelDelegationTokenRequestProto {
    /// Field 1 `token`.
    #[prost(message, required, tag = "1")]
    pub token: TokenProto,
}

/// `hadoop.common.CancelDelegationTokenResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CancelDelegationTokenResponseProto {}

/// `hadoop.common.CredentialsKVProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CredentialsKVProto {
    /// Field 1 `alias`.
    #[prost(string, required, tag = "1")]
    pub alias: ::std::string::String,
    /// Field 2 `token`.
    #[prost(message, optional, tag = "2")]
    pub token: ::core::option::Option<TokenProto>,
    /// Field 3 `secret`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub secret: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.common.CredentialsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CredentialsProto {
    /// Field 1 `tokens`.
    #[prost(message, repeated, tag = "1")]
    pub tokens: ::std::vec::Vec<CredentialsKVProto>,
    /// Field 2 `secrets`.
    #[prost(message, repeated, tag = "2")]
    pub secrets: ::std::vec::Vec<CredentialsKVProto>,
}

/// `hadoop.common.GenericRefreshRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GenericRefreshRequestProto {
    /// Field 1 `identifier`.
    #[prost(string, optional, tag = "1")]
    pub identifier: ::core::option::Option<::std::string::String>,
    /// Field 2 `args`.
    #[prost(string, repeated, tag = "2")]
    pub args: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.common.GenericRefreshResponseCollectionProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GenericRefreshResponseCollectionProto {
    /// Field 1 `responses`.
    #[prost(message, repeated, tag = "1")]
    pub responses: ::std::vec::Vec<GenericRefreshResponseProto>,
}

/// `hadoop.common.GenericRefreshResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GenericRefreshResponseProto {
    /// Field 1 `exitStatus`.
    #[prost(int32, optional, tag = "1")]
    pub exit_status: ::core::option::Option<i32>,
    /// Field 2 `userMessage`.
    #[prost(string, optional, tag = "2")]
    pub user_message: ::core::option::Option<::std::string::String>,
    /// Field 3 `senderName`.
    #[prost(string, optional, tag = "3")]
    pub sender_name: ::core::option::Option<::std::string::String>,
}

/// `hadoop.common.GetDelegationTokenRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDelegationTokenRequestProto {
    /// Field 1 `renewer`.
    #[prost(string, required, tag = "1")]
    pub renewer: ::std::string::String,
}

/// `hadoop.common.GetDelegationTokenResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDelegationTokenResponseProto {
    /// Field 1 `token`.
    #[prost(message, optional, tag = "1")]
    pub token: ::core::option::Option<TokenProto>,
}

/// `hadoop.common.GetGroupsForUserRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetGroupsForUserRequestProto {
    /// Field 1 `user`.
    #[prost(string, required, tag = "1")]
    pub user: ::std::string::String,
}

/// `hadoop.common.GetGroupsForUserResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetGroupsForUserResponseProto {
    /// Field 1 `groups`.
    #[prost(string, repeated, tag = "1")]
    pub groups: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.common.GetProtocolSignatureRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetProtocolSignatureRequestProto {
    /// Field 1 `protocol`.
    #[prost(string, required, tag = "1")]
    pub protocol: ::std::string::String,
    /// Field 2 `rpcKind`.
    #[prost(string, required, tag = "2")]
    pub rpc_kind: ::std::string::String,
}

/// `hadoop.common.GetProtocolSignatureResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetProtocolSignatureResponseProto {
    /// Field 1 `protocolSignature`.
    #[prost(message, repeated, tag = "1")]
    pub protocol_signature: ::std::vec::Vec<ProtocolSignatureProto>,
}

/// `hadoop.common.GetProtocolVersionsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetProtocolVersionsRequestProto {
    /// Field 1 `protocol`.
    #[prost(string, required, tag = "1")]
    pub protocol: ::std::string::String,
}

/// `hadoop.common.GetProtocolVersionsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetProtocolVersionsResponseProto {
    /// Field 1 `protocolVersions`.
    #[prost(message, repeated, tag = "1")]
    pub protocol_versions: ::std::vec::Vec<ProtocolVersionProto>,
}

/// `hadoop.common.GetServiceStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetServiceStatusRequestProto {}

/// `hadoop.common.GetServiceStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetServiceStatusResponseProto {
    /// Field 1 `state`.
    #[prost(enumeration = "HAServiceStateProto", required, tag = "1")]
    pub state: i32,
    /// Field 2 `readyToBecomeActive`.
    #[prost(bool, optional, tag = "2")]
    pub ready_to_become_active: ::core::option::Option<bool>,
    /// Field 3 `notReadyReason`.
    #[prost(string, optional, tag = "3")]
    pub not_ready_reason: ::core::option::Option<::std::string::String>,
}

/// `hadoop.common.HAStateChangeRequestInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HAStateChangeRequestInfoProto {
    /// Field 1 `reqSource`.
    #[prost(enumeration = "HARequestSource", required, tag = "1")]
    pub req_source: i32,
}

/// `hadoop.common.IpcConnectionContextProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IpcConnectionContextProto {
    /// Field 2 `userInfo`.
    #[prost(message, optional, tag = "2")]
    pub user_info: ::core::option::Option<UserInformationProto>,
    /// Field 3 `protocol`.
    #[prost(string, optional, tag = "3")]
    pub protocol: ::core::option::Option<::std::string::String>,
}

/// `hadoop.common.MonitorHealthRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MonitorHealthRequestProto {}

/// `hadoop.common.MonitorHealthResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MonitorHealthResponseProto {}

/// `hadoop.common.ProtocolSignatureProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProtocolSignatureProto {
    /// Field 1 `version`.
    #[prost(uint64, required, tag = "1")]
    pub version: u64,
    /// Field 2 `methods`.
    #[prost(uint32, repeated, tag = "2", packed = "false")]
    pub methods: ::std::vec::Vec<u32>,
}

/// `hadoop.common.ProtocolVersionProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProtocolVersionProto {
    /// Field 1 `rpcKind`.
    #[prost(string, required, tag = "1")]
    pub rpc_kind: ::std::string::String,
    /// Field 2 `versions`.
    #[prost(uint64, repeated, tag = "2", packed = "false")]
    pub versions: ::std::vec::Vec<u64>,
}

/// `hadoop.common.RPCCallerContextProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RPCCallerContextProto {
    /// Field 1 `context`.
    #[prost(string, required, tag = "1")]
    pub context: ::std::string::String,
    /// Field 2 `signature`.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub signature: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.common.RPCTraceInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RPCTraceInfoProto {
    /// Field 1 `traceId`.
    #[prost(int64, optional, tag = "1")]
    pub trace_id: ::core::option::Option<i64>,
    /// Field 2 `parentId`.
    #[prost(int64, optional, tag = "2")]
    pub parent_id: ::core::option::Option<i64>,
    /// Field 3 `spanContext`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub span_context: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.common.RefreshCallQueueRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshCallQueueRequestProto {}

/// `hadoop.common.RefreshCallQueueResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshCallQueueResponseProto {}

/// `hadoop.common.RefreshServiceAclRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshServiceAclRequestProto {}

/// `hadoop.common.RefreshServiceAclResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshServiceAclResponseProto {}

/// `hadoop.common.RefreshSuperUserGroupsConfigurationRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshSuperUserGroupsConfigurationRequestProto {}

/// `hadoop.common.RefreshSuperUserGroupsConfigurationResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshSuperUserGroupsConfigurationResponseProto {}

/// `hadoop.common.RefreshUserToGroupsMappingsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshUserToGroupsMappingsRequestProto {}

/// `hadoop.common.RefreshUserToGroupsMappingsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshUserToGroupsMappingsResponseProto {}

/// `hadoop.common.RenewDelegationTokenRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenewDelegationTokenRequestProto {
    /// Field 1 `token`.
    #[prost(message, required, tag = "1")]
    pub token: TokenProto,
}

/// `hadoop.common.RenewDelegationTokenResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenewDelegationTokenResponseProto {
    /// Field 1 `newExpiryTime`.
    #[prost(uint64, required, tag = "1")]
    pub new_expiry_time: u64,
}

/// `hadoop.common.RequestHeaderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RequestHeaderProto {
    /// Field 1 `methodName`.
    #[prost(string, required, tag = "1")]
    pub method_name: ::std::string::String,
    /// Field 2 `declaringClassProtocolName`.
    #[prost(string, required, tag = "2")]
    pub declaring_class_protocol_name: ::std::string::String,
    /// Field 3 `clientProtocolVersion`.
    #[prost(uint64, required, tag = "3")]
    pub client_protocol_version: u64,
}

/// `hadoop.common.RpcRequestHeaderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RpcRequestHeaderProto {
    /// Field 1 `rpcKind`.
    #[prost(enumeration = "RpcKindProto", optional, tag = "1")]
    pub rpc_kind: ::core::option::Option<i32>,
    /// Field 2 `rpcOp`.
    #[prost(enumeration = "RpcRequestHeaderProtoOperationProto", optional, tag = "2")]
    pub rpc_op: ::core::option::Option<i32>,
    /// Field 3 `callId`.
    #[prost(sint32, required, tag = "3")]
    pub call_id: i32,
    /// Field 4 `clientId`.
    #[prost(bytes = "vec", required, tag = "4")]
    pub client_id: ::std::vec::Vec<u8>,
    /// Field 5 `retryCount`.
    #[prost(sint32, optional, tag = "5", default = "-1")]
    pub retry_count: ::core::option::Option<i32>,
    /// Field 6 `traceInfo`.
    #[prost(message, optional, tag = "6")]
    pub trace_info: ::core::option::Option<RPCTraceInfoProto>,
    /// Field 7 `callerContext`.
    #[prost(message, optional, tag = "7")]
    pub caller_context: ::core::option::Option<RPCCallerContextProto>,
    /// Field 8 `stateId`.
    #[prost(int64, optional, tag = "8")]
    pub state_id: ::core::option::Option<i64>,
    /// Field 9 `routerFederatedState`.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub router_federated_state: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 10 `authorizationHeader`.
    #[prost(bytes = "vec", optional, tag = "10")]
    pub authorization_header: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.common.RpcResponseHeaderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RpcResponseHeaderProto {
    /// Field 1 `callId`.
    #[prost(uint32, required, tag = "1")]
    pub call_id: u32,
    /// Field 2 `status`.
    #[prost(enumeration = "RpcResponseHeaderProtoRpcStatusProto", required, tag = "2")]
    pub status: i32,
    /// Field 3 `serverIpcVersionNum`.
    #[prost(uint32, optional, tag = "3")]
    pub server_ipc_version_num: ::core::option::Option<u32>,
    /// Field 4 `exceptionClassName`.
    #[prost(string, optional, tag = "4")]
    pub exception_class_name: ::core::option::Option<::std::string::String>,
    /// Field 5 `errorMsg`.
    #[prost(string, optional, tag = "5")]
    pub error_msg: ::core::option::Option<::std::string::String>,
    /// Field 6 `errorDetail`.
    #[prost(enumeration = "RpcResponseHeaderProtoRpcErrorCodeProto", optional, tag = "6")]
    pub error_detail: ::core::option::Option<i32>,
    /// Field 7 `clientId`.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub client_id: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 8 `retryCount`.
    #[prost(sint32, optional, tag = "8", default = "-1")]
    pub retry_count: ::core::option::Option<i32>,
    /// Field 9 `stateId`.
    #[prost(int64, optional, tag = "9")]
    pub state_id: ::core::option::Option<i64>,
    /// Field 10 `routerFederatedState`.
    #[prost(bytes = "vec", optional, tag = "10")]
    pub router_federated_state: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.common.RpcSaslProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RpcSaslProto {
    /// Field 1 `version`.
    #[prost(uint32, optional, tag = "1")]
    pub version: ::core::option::Option<u32>,
    /// Field 2 `state`.
    #[prost(enumeration = "RpcSaslProtoSaslState", required, tag = "2")]
    pub state: i32,
    /// Field 3 `token`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub token: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 4 `auths`.
    #[prost(message, repeated, tag = "4")]
    pub auths: ::std::vec::Vec<RpcSaslProtoSaslAuth>,
}

/// `hadoop.common.RpcSaslProto.SaslAuth`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RpcSaslProtoSaslAuth {
    /// Field 1 `method`.
    #[prost(string, required, tag = "1")]
    pub method: ::std::string::String,
    /// Field 2 `mechanism`.
    #[prost(string, required, tag = "2")]
    pub mechanism: ::std::string::String,
    /// Field 3 `protocol`.
    #[prost(string, optional, tag = "3")]
    pub protocol: ::core::option::Option<::std::string::String>,
    /// Field 4 `serverId`.
    #[prost(string, optional, tag = "4")]
    pub server_id: ::core::option::Option<::std::string::String>,
    /// Field 5 `challenge`.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub challenge: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.common.TokenProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TokenProto {
    /// Field 1 `identifier`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub identifier: ::std::vec::Vec<u8>,
    /// Field 2 `password`.
    #[prost(bytes = "vec", required, tag = "2")]
    pub password: ::std::vec::Vec<u8>,
    /// Field 3 `kind`.
    #[prost(string, required, tag = "3")]
    pub kind: ::std::string::String,
    /// Field 4 `service`.
    #[prost(string, required, tag = "4")]
    pub service: ::std::string::String,
}

/// `hadoop.common.TransitionToActiveRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TransitionToActiveRequestProto {
    /// Field 1 `reqInfo`.
    #[prost(message, required, tag = "1")]
    pub req_info: HAStateChangeRequestInfoProto,
}

/// `hadoop.common.TransitionToActiveResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TransitionToActiveResponseProto {}

/// `hadoop.common.TransitionToObserverRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TransitionToObserverRequestProto {
    /// Field 1 `reqInfo`.
    #[prost(message, required, tag = "1")]
    pub req_info: HAStateChangeRequestInfoProto,
}

/// `hadoop.common.TransitionToObserverResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TransitionToObserverResponseProto {}

/// `hadoop.common.TransitionToStandbyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TransitionToStandbyRequestProto {
    /// Field 1 `reqInfo`.
    #[prost(message, required, tag = "1")]
    pub req_info: HAStateChangeRequestInfoProto,
}

/// `hadoop.common.TransitionToStandbyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TransitionToStandbyResponseProto {}

/// `hadoop.common.UserInformationProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UserInformationProto {
    /// Field 1 `effectiveUser`.
    #[prost(string, optional, tag = "1")]
    pub effective_user: ::core::option::Option<::std::string::String>,
    /// Field 2 `realUser`.
    #[prost(string, optional, tag = "2")]
    pub real_user: ::core::option::Option<::std::string::String>,
}

/// `hadoop.common.HARequestSource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum HARequestSource {
    /// `REQUEST_BY_USER`.
    RequestByUser = 0,
    /// `REQUEST_BY_USER_FORCED`.
    RequestByUserForced = 1,
    /// `REQUEST_BY_ZKFC`.
    RequestByZkfc = 2,
}

/// `hadoop.common.HAServiceStateProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum HAServiceStateProto {
    /// `INITIALIZING`.
    Initializing = 0,
    /// `ACTIVE`.
    Active = 1,
    /// `STANDBY`.
    Standby = 2,
    /// `OBSERVER`.
    Observer = 3,
}

/// `hadoop.common.RpcKindProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RpcKindProto {
    /// `RPC_BUILTIN`.
    RpcBuiltin = 0,
    /// `RPC_WRITABLE`.
    RpcWritable = 1,
    /// `RPC_PROTOCOL_BUFFER`.
    RpcProtocolBuffer = 2,
}

/// `hadoop.common.RpcRequestHeaderProto.OperationProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RpcRequestHeaderProtoOperationProto {
    /// `RPC_FINAL_PACKET`.
    RpcFinalPacket = 0,
    /// `RPC_CONTINUATION_PACKET`.
    RpcContinuationPacket = 1,
    /// `RPC_CLOSE_CONNECTION`.
    RpcCloseConnection = 2,
}

/// `hadoop.common.RpcResponseHeaderProto.RpcErrorCodeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RpcResponseHeaderProtoRpcErrorCodeProto {
    /// `ERROR_APPLICATION`.
    ErrorApplication = 1,
    /// `ERROR_NO_SUCH_METHOD`.
    ErrorNoSuchMethod = 2,
    /// `ERROR_NO_SUCH_PROTOCOL`.
    ErrorNoSuchProtocol = 3,
    /// `ERROR_RPC_SERVER`.
    ErrorRpcServer = 4,
    /// `ERROR_SERIALIZING_RESPONSE`.
    ErrorSerializingResponse = 5,
    /// `ERROR_RPC_VERSION_MISMATCH`.
    ErrorRpcVersionMismatch = 6,
    /// `FATAL_UNKNOWN`.
    FatalUnknown = 10,
    /// `FATAL_UNSUPPORTED_SERIALIZATION`.
    FatalUnsupportedSerialization = 11,
    /// `FATAL_INVALID_RPC_HEADER`.
    FatalInvalidRpcHeader = 12,
    /// `FATAL_DESERIALIZING_REQUEST`.
    FatalDeserializingRequest = 13,
    /// `FATAL_VERSION_MISMATCH`.
    FatalVersionMismatch = 14,
    /// `FATAL_UNAUTHORIZED`.
    FatalUnauthorized = 15,
}

/// `hadoop.common.RpcResponseHeaderProto.RpcStatusProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RpcResponseHeaderProtoRpcStatusProto {
    /// `SUCCESS`.
    Success = 0,
    /// `ERROR`.
    Error = 1,
    /// `FATAL`.
    Fatal = 2,
}

/// `hadoop.common.RpcSaslProto.SaslState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RpcSaslProtoSaslState {
    /// `SUCCESS`.
    Success = 0,
    /// `NEGOTIATE`.
    Negotiate = 1,
    /// `INITIATE`.
    Initiate = 2,
    /// `CHALLENGE`.
    Challenge = 3,
    /// `RESPONSE`.
    Response = 4,
    /// `WRAP`.
    Wrap = 5,
}

/// Methods of `hadoop.common.GenericRefreshProtocolService`.
pub const GENERIC_REFRESH_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "refresh",
];

/// Methods of `hadoop.common.GetUserMappingsProtocolService`.
pub const GET_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "getGroupsForUser",
];

/// Methods of `hadoop.common.HAServiceProtocolService`.
pub const HA_SERVICE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "monitorHealth",
    "transitionToActive",
    "transitionToStandby",
    "transitionToObserver",
    "getServiceStatus",
];

/// Methods of `hadoop.common.ProtocolInfoService`.
pub const PROTOCOL_INFO_SERVICE_METHODS: &[&str] = &[
    "getProtocolVersions",
    "getProtocolSignature",
];

/// Methods of `hadoop.common.RefreshAuthorizationPolicyProtocolService`.
pub const REFRESH_AUTHORIZATION_POLICY_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "refreshServiceAcl",
];

/// Methods of `hadoop.common.RefreshCallQueueProtocolService`.
pub const REFRESH_CALL_QUEUE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "refreshCallQueue",
];

/// Methods of `hadoop.common.RefreshUserMappingsProtocolService`.
pub const REFRESH_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "refreshUserToGroupsMappings",
    "refreshSuperUserGroupsConfiguration",
];
