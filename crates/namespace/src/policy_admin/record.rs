//! What is recorded of erasure coding policies.

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_struct, from_record};
use crate::error::Result;
use cairn_stripe::{CodecName, Policy, PolicyState, Schema};
use std::sync::Arc;

/// Version byte of policy records.
pub(super) const VERSION: u8 = 1;

/// A policy with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// The policy.
    pub policy: Policy,
    /// Its state.
    pub state: PolicyState,
}

encode_struct!(PolicyInfo { policy, state });
encode_struct!(Schema { codec, k, m });
encode_struct!(Policy { id, name, schema, cell_len });

impl Encode for CodecName {
    fn encode(&self, out: &mut Encoder) {
        out.byte(match self {
            CodecName::Rs => 1,
            CodecName::RsLegacy => 2,
            CodecName::Xor => 3,
        });
    }
}

impl Decode for CodecName {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match input.byte()? {
            1 => Ok(CodecName::Rs),
            2 => Ok(CodecName::RsLegacy),
            3 => Ok(CodecName::Xor),
            value => Err(DecodeError::Invalid { what: "codec", value: u64::from(value) }),
        }
    }
}

// The numbers are Hadoop's `ErasureCodingPolicyState`.
impl Encode for PolicyState {
    fn encode(&self, out: &mut Encoder) {
        out.byte(match self {
            PolicyState::Disabled => 1,
            PolicyState::Enabled => 2,
            PolicyState::Removed => 3,
        });
    }
}

impl Decode for PolicyState {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match input.byte()? {
            1 => Ok(PolicyState::Disabled),
            2 => Ok(PolicyState::Enabled),
            3 => Ok(PolicyState::Removed),
            value => Err(DecodeError::Invalid { what: "policy state", value: u64::from(value) }),
        }
    }
}

/// The policy of a record.
pub fn from_bytes(bytes: &[u8]) -> Result<Arc<Policy>> {
    Ok(Arc::new(from_record::<PolicyInfo>(VERSION, bytes)?.policy))
}
