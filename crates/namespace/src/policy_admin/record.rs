//! What is recorded of erasure coding policies.

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_struct, from_record};
use crate::error::Result;
use cairn_stripe::{CodecName, Policy, PolicyLayout, PolicyState, Schema};
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

/// Beside the number of the code: the groups are contiguous.
const CONTIGUOUS: u8 = 1 << 7;

impl Encode for Policy {
    fn encode(&self, out: &mut Encoder) {
        let Schema { codec, k, m } = self.schema;
        let codec = match codec {
            CodecName::Rs => 1,
            CodecName::RsLegacy => 2,
            CodecName::Xor => 3,
        };
        let layout = match self.layout {
            PolicyLayout::Striped => 0,
            PolicyLayout::Contiguous => CONTIGUOUS,
        };
        self.id.encode(out);
        self.name.encode(out);
        out.byte(codec | layout);
        (k, m).encode(out);
        self.cell_len.encode(out);
    }
}

impl Decode for Policy {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (id, name) = (Decode::decode(input)?, Decode::decode(input)?);
        let first = input.byte()?;
        let layout = match first & CONTIGUOUS {
            0 => PolicyLayout::Striped,
            _ => PolicyLayout::Contiguous,
        };
        let codec = match first & !CONTIGUOUS {
            1 => CodecName::Rs,
            2 => CodecName::RsLegacy,
            3 => CodecName::Xor,
            value => return Err(DecodeError::Invalid { what: "codec", value: u64::from(value) }),
        };
        let (k, m) = Decode::decode(input)?;
        let (schema, cell_len) = (Schema { codec, k, m }, Decode::decode(input)?);
        Ok(Policy { id, name, schema, cell_len, layout })
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
