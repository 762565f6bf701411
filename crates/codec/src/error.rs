//! What a caller can get wrong, and what cannot be rebuilt.

use crate::engine::Engine;
use crate::kind::CodecKind;

/// Why a code could not be made or a call could not be carried out. No output byte was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A code needs at least one data and one parity unit and at most 255 in all.
    #[error("{kind} cannot have {data_count} data and {parity_count} parity units")]
    UnsupportedSchema {
        /// The code asked for.
        kind: CodecKind,
        /// Data units asked for.
        data_count: usize,
        /// Parity units asked for.
        parity_count: usize,
    },
    /// A code of its own type cannot have these numbers of units.
    #[error("{code} cannot have {data_count} data and {parity_count} parity units")]
    UnsupportedShape {
        /// The code's name.
        code: &'static str,
        /// Data units asked for.
        data_count: usize,
        /// Parity units asked for.
        parity_count: usize,
    },
    /// Units of this code are cut into equal parts.
    #[error("{len} bytes are no multiple of {parts}")]
    UnevenLength {
        /// In how many parts.
        parts: usize,
        /// Bytes of a unit.
        len: usize,
    },
    /// The processor lacks the instructions of this engine.
    #[error("this processor cannot run the engine {engine}")]
    EngineUnavailable {
        /// The engine asked for.
        engine: Engine,
    },
    /// A list of buffers is longer or shorter than the schema or the call demands.
    #[error("expected {expected} {what}, got {actual}")]
    BufferCount {
        /// Which list: "data units", "parity units", "units" or "outputs".
        what: &'static str,
        /// Buffers needed.
        expected: usize,
        /// Buffers given.
        actual: usize,
    },
    /// Buffers of one call differ in length.
    #[error("{what} {index} has {actual} bytes, the first buffer has {expected}")]
    BufferLength {
        /// Which list: "data unit", "parity unit", "unit" or "output".
        what: &'static str,
        /// Position in that list.
        index: usize,
        /// Bytes of the first buffer of the call.
        expected: usize,
        /// Bytes of this buffer.
        actual: usize,
    },
    /// A unit to rebuild does not exist in the schema.
    #[error("no unit {unit} among {unit_count}")]
    NoSuchUnit {
        /// The unit named.
        unit: usize,
        /// Units of the code, data and parity.
        unit_count: usize,
    },
    /// A unit to rebuild was named twice or was handed in as present.
    #[error("unit {unit} is asked for twice or is present")]
    NotLost {
        /// The unit named.
        unit: usize,
    },
    /// Fewer units are present than the code needs: the data cannot be rebuilt.
    #[error("{present} units present, {needed} needed")]
    TooFewUnits {
        /// Units needed: as many as the code has data units.
        needed: usize,
        /// Units present.
        present: usize,
    },
}
