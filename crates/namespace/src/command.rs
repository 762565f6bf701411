//! What the log holds: commands with their times and caller.
//!
//! Each command is a struct in the file of its operation under `ops/`.

pub use crate::caller::Caller;
use crate::clock::Times;
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_struct};
use crate::ops;

/// Version byte of log entries whose two times are the same: all that earlier builds have written.
const FIRST_VERSION: u8 = 1;
/// Of those whose times are not. Records of the log with what entries have done begin with 2.
const VERSION: u8 = 3;

/// What tells a repeated call from a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The RPC client's UUID.
    pub client_id: [u8; 16],
    /// The client's number of the call.
    pub call_id: i32,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Wall time as the command's turn came.
    pub now_ms: u64,
    /// Elapsed time then.
    pub elapsed_ms: u64,
    /// Who sent it.
    pub caller: Caller,
    /// The RPC call, if it was one.
    pub call: Option<CallId>,
    /// What to do.
    pub command: Command,
}

encode_struct!(CallId { client_id, call_id });

impl Entry {
    /// When it was its turn.
    pub fn times(&self) -> Times {
        Times { wall_ms: self.now_ms, elapsed_ms: self.elapsed_ms }
    }

    /// The bytes for the log.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        let behind_ms = self.now_ms.wrapping_sub(self.elapsed_ms) as i64;
        out.byte(if behind_ms == 0 { FIRST_VERSION } else { VERSION });
        self.now_ms.encode(&mut out);
        if behind_ms != 0 {
            behind_ms.encode(&mut out);
        }
        self.caller.encode(&mut out);
        self.call.encode(&mut out);
        self.command.encode(&mut out);
        out.into_bytes()
    }

    /// The call, if it must be carried out once only, however often it comes.
    pub fn once(&self) -> Option<CallId> {
        self.call.filter(|_| self.command.is_at_most_once())
    }

    /// Reads back an entry of the log.
    pub fn from_bytes(bytes: &[u8]) -> Result<Entry, DecodeError> {
        let mut input = Decoder::new(bytes);
        let version = input.byte()?;
        let now_ms = Decode::decode(&mut input)?;
        let behind_ms: i64 = match version {
            FIRST_VERSION => 0,
            VERSION => match Decode::decode(&mut input)? {
                0 => return Err(DecodeError::Invalid { what: "difference of times", value: 0 }),
                behind_ms => behind_ms,
            },
            version => return Err(DecodeError::Version { version }),
        };
        let entry = Entry {
            now_ms,
            elapsed_ms: now_ms.wrapping_sub(behind_ms as u64),
            caller: Decode::decode(&mut input)?,
            call: Decode::decode(&mut input)?,
            command: Decode::decode(&mut input)?,
        };
        input.finish()?;
        Ok(entry)
    }
}

macro_rules! commands {
    ($($tag:literal $name:ident $(= $once:ident)?: $path:path,)*) => {
        /// A change of the namespace.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is documented at its struct")]
        pub enum Command {
            $($name($path),)*
        }

        impl Command {
            /// The names of all commands.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// Whether a repeated call must get the first call's outcome and change nothing.
            ///
            /// Source: Hadoop 3.5.0 `ClientProtocol`, the methods that are `@AtMostOnce`.
            pub fn is_at_most_once(&self) -> bool {
                match self {
                    $(Command::$name(_) => commands!(@once $($once)?),)*
                }
            }

            /// The command's name, for logs.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Command::$name(_) => stringify!($name),)*
                }
            }

            pub(crate) fn apply(&self, cx: &mut ops::Context<'_, '_>)
                -> crate::error::Result<crate::outcome::Outcome>
            {
                match self {
                    $(Command::$name(command) => command.apply(cx),)*
                }
            }
        }

        $(impl From<$path> for Command {
            fn from(command: $path) -> Command {
                Command::$name(command)
            }
        })*

        impl Encode for Command {
            fn encode(&self, out: &mut Encoder) {
                match self {
                    $(Command::$name(command) => {
                        out.byte($tag);
                        command.encode(out);
                    })*
                }
            }
        }

        impl Decode for Command {
            fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                match input.byte()? {
                    $($tag => Decode::decode(input).map(Command::$name),)*
                    value => Err(DecodeError::Invalid { what: "command", value: u64::from(value) }),
                }
            }
        }
    };
    (@once once) => { true };
    (@once) => { false };
}

// Tags are the format of the log: never change or reuse one.
commands! {
    1 Configure: ops::configure::Configure,
    2 Mkdirs: ops::mkdirs::Mkdirs,
    3 Create = once: ops::create::Create,
    4 AddBlock: ops::add_block::AddBlock,
    5 AbandonBlock: ops::abandon_block::AbandonBlock,
    6 Complete: ops::complete::Complete,
    7 Fsync: ops::fsync::Fsync,
    8 UpdateBlockForPipeline: ops::pipeline::UpdateBlockForPipeline,
    9 UpdatePipeline = once: ops::pipeline::UpdatePipeline,
    10 RenewLease: ops::lease::RenewLease,
    11 RenewAllLeases: ops::lease::RenewAllLeases,
    12 RecoverLease: ops::lease::RecoverLease,
    13 ReleaseLease: ops::lease::ReleaseLease,
    14 CommitBlockSynchronization: ops::commit_block_synchronization::CommitBlockSynchronization,
    15 Append = once: ops::append::Append,
    16 Truncate: ops::truncate::Truncate,
    17 Rename = once: ops::rename::Rename,
    18 RenameTo = once: ops::rename::RenameTo,
    19 Delete = once: ops::delete::Delete,
    20 Purge: ops::delete::Purge,
    21 SetReplication: ops::set_replication::SetReplication,
    22 SetPermission: ops::set_permission::SetPermission,
    23 SetOwner: ops::set_owner::SetOwner,
    24 SetTimes: ops::set_times::SetTimes,
    25 TouchAccessTime: ops::set_times::TouchAccessTime,
    26 SetStoragePolicy: ops::set_storage_policy::SetStoragePolicy,
    27 SetQuota: ops::set_quota::SetQuota,
    28 Concat = once: ops::concat::Concat,
    29 SetXAttr = once: ops::xattr::SetXAttr,
    30 RemoveXAttr = once: ops::xattr::RemoveXAttr,
    31 SetEcPolicy = once: ops::ec::SetEcPolicy,
    32 UnsetEcPolicy = once: ops::ec::UnsetEcPolicy,
    33 AddEcPolicies = once: ops::ec::AddEcPolicies,
    34 RemoveEcPolicy = once: ops::ec::RemoveEcPolicy,
    35 EnableEcPolicy = once: ops::ec::EnableEcPolicy,
    36 DisableEcPolicy = once: ops::ec::DisableEcPolicy,
    37 RecordUnitCrcs: ops::unit_crcs::RecordUnitCrcs,
    38 CompleteBlocks: ops::complete_blocks::CompleteBlocks,
    39 ChangeAcl: ops::acl::ChangeAcl,
    48 ConfigureSnapshots: ops::snapshot::ConfigureSnapshots,
    49 AllowSnapshot: ops::snapshot::AllowSnapshot,
    50 DisallowSnapshot: ops::snapshot::DisallowSnapshot,
    51 CreateSnapshot = once: ops::snapshot::CreateSnapshot,
    52 RenameSnapshot = once: ops::snapshot::RenameSnapshot,
    53 DeleteSnapshot = once: ops::snapshot::DeleteSnapshot,
    54 CollectSnapshot: ops::snapshot::CollectSnapshot,
    60 ReplaceCrc: ops::unit_crcs::ReplaceCrc,
    70 AddCachePool = once: ops::cache_pool::AddCachePool,
    71 ModifyCachePool = once: ops::cache_pool::ModifyCachePool,
    72 RemoveCachePool = once: ops::cache_pool::RemoveCachePool,
    73 AddCacheDirective = once: ops::cache_directive::AddCacheDirective,
    74 ModifyCacheDirective = once: ops::cache_directive::ModifyCacheDirective,
    75 RemoveCacheDirective = once: ops::cache_directive::RemoveCacheDirective,
    76 SetTypeQuota: ops::set_quota::SetTypeQuota,
    77 SatisfyStoragePolicy = once: ops::satisfy_storage_policy::SatisfyStoragePolicy,
    80 CreateEncryptionZone = once: ops::encryption::CreateEncryptionZone,
    81 CreateEncrypted = once: ops::create::CreateEncrypted,
    82 ReencryptEncryptionZone = once: ops::encryption::ReencryptEncryptionZone,
    83 AdvanceReencryption: ops::encryption::AdvanceReencryption,
    84 WithdrawBlock: ops::abandon_block::WithdrawBlock,
    90 BeginEncode: ops::group::BeginEncode,
    91 Form: ops::group::Form,
    92 Abandon: ops::group::Abandon,
    93 BeginDissolve: ops::group::BeginDissolve,
    94 Dissolve: ops::group::Dissolve,
    95 Convert: ops::convert::Convert,
    96 PauseGroups: ops::group::PauseGroups,
    97 SwapBlocks: ops::swap_blocks::SwapBlocks,
    98 Adopt: ops::adopt::Adopt,
    99 AdoptPacked: ops::adopt_packed::AdoptPacked,
    100 AddTokenKey: ops::token::AddTokenKey,
    101 IssueToken: ops::token::IssueToken,
    102 RenewToken: ops::token::RenewToken,
    103 CancelToken: ops::token::CancelToken,
    104 RemoveEndedTokens: ops::token::RemoveEndedTokens,
    110 SetSafeMode: ops::orders::SetSafeMode,
    111 SetBalancerBandwidth: ops::orders::SetBalancerBandwidth,
    112 OrderNodes: ops::orders::OrderNodes,
    113 WatchEvents: ops::watch_events::WatchEvents,
    114 PrepareUpgrade: ops::holds::PrepareUpgrade,
    115 Release: ops::holds::Release,
    120 BeginPack: ops::pack::BeginPack,
    121 SealPack: ops::pack::SealPack,
    122 Pack: ops::pack::Pack,
    123 AbandonPack: ops::pack::AbandonPack,
    124 EndPack: ops::pack::EndPack,
    125 Unpack: ops::unpack::Unpack,
    126 Repack: ops::repack::Repack,
    127 BeginUnpack: ops::unpack::BeginUnpack,
    128 AdoptContainer: ops::adopt_container::AdoptContainer,
}
