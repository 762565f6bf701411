//! The redundancies under test, with cells so small that short files have several block groups.

use cairn_client::{CreateOptions, FileSystem};
use cairn_stripe::{CodecName, Policy, PolicyId, Schema};

pub const CELL: u32 = 4096;
/// Bytes of a replica, and of each unit of a full group: two stripes.
pub const BLOCK: u64 = 2 * CELL as u64;

/// Whether the wide matrix is wanted.
pub fn is_full() -> bool {
    std::env::var_os("CAIRN_FULL").is_some()
}

/// How a file is kept.
#[derive(Clone, Debug)]
pub enum Code {
    Replicated(u16),
    Striped(Policy),
}

impl Code {
    pub fn rs(k: u8, m: u8) -> Code {
        Code::striped(CodecName::Rs, k, m)
    }

    pub fn xor() -> Code {
        Code::striped(CodecName::Xor, 2, 1)
    }

    fn striped(codec: CodecName, k: u8, m: u8) -> Code {
        let policy = Policy::new(PolicyId::FIRST_USER_DEFINED, Schema { codec, k, m }, CELL);
        Code::Striped(policy.unwrap())
    }

    /// DataNodes that a block is on.
    pub fn width(&self) -> usize {
        match self {
            Code::Replicated(copies) => usize::from(*copies),
            Code::Striped(policy) => policy.schema.units(),
        }
    }

    /// Losses that it survives.
    pub fn tolerance(&self) -> usize {
        match self {
            Code::Replicated(copies) => usize::from(*copies) - 1,
            Code::Striped(policy) => policy.schema.parity_units(),
        }
    }

    /// Data bytes of a full block or group.
    pub fn block_len(&self) -> usize {
        match self {
            Code::Replicated(_) => BLOCK as usize,
            Code::Striped(policy) => BLOCK as usize * policy.schema.data_units(),
        }
    }

    /// Lets files be kept this way.
    pub async fn enable(&self, fs: &FileSystem) {
        let Code::Striped(policy) = self else { return };
        let answer = fs.add_policies(std::slice::from_ref(policy)).await.unwrap();
        assert!(answer[0].error.is_none(), "{answer:?}");
        fs.enable_policy(&policy.name).await.unwrap();
    }

    /// Options for a new file.
    pub fn options(&self) -> CreateOptions {
        let mut options = CreateOptions { block_size: Some(BLOCK), ..CreateOptions::default() };
        match self {
            Code::Replicated(copies) => options.replication = Some(*copies),
            Code::Striped(policy) => options.policy = Some(policy.name.clone()),
        }
        options
    }
}
