//! Erasure codes over GF(2^8) and the CRCs of HDFS.
//!
//! Decides which bytes a parity unit holds and how lost units are rebuilt from the others. Knows
//! nothing of policies, stripes, blocks or files: it gets slices of bytes and gives slices of bytes.
//!
//! Invariants: the bytes are those of Hadoop's raw coders, on every processor; no result depends on
//! an earlier call, so one [`Codec`] serves any number of threads. `unsafe` stays in the engines and
//! the CRC kernels.
//! Tested in `tests/it` against Hadoop's own output (`tests/golden`).

pub mod agree;
mod cauchy_good;
mod check;
mod codec;
pub mod crc;
mod engine;
mod error;
mod field;
mod hitchhiker;
mod kind;
mod matrix;
mod recover;
mod rs;
mod rs_legacy;
mod schedule;
mod xor;

pub use cauchy_good::CauchyGood;
pub use codec::{Codec, MAX_UNITS};
pub use engine::Engine;
pub use error::CodecError;
pub use hitchhiker::{Half, Hitchhiker, Variant};
pub use kind::CodecKind;
