//! Erasure coding policies, block ids, the geometry of striped files, of contiguous groups and of containers, storage types and
//! policies.
//!
//! Facts and plans only: no I/O, no clock, no randomness. What a code computes is in `cairn-codec`;
//! who holds which unit is in `cairn-redundancy`.

pub mod geometry;
pub mod group;
pub mod id;
pub mod pack;
pub mod policy;
pub mod read;
pub mod rebuild;
pub mod storage_policy;
pub mod storage_type;
pub mod write;

pub use geometry::{Geometry, UnitFound, internal_block_len};
pub use id::{BlockId, GenerationStamp, UnitIndex};
pub use policy::{
    CodecName, Policy, PolicyError, PolicyId, PolicyLayout, PolicyState, Redundancy, Schema,
};
pub use storage_policy::StoragePolicy;
pub use storage_type::StorageType;
