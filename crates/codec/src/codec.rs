//! The codes: checks of the caller's buffers, and which coefficients rebuild which units.

use crate::engine::{Engine, Tables};
use crate::error::CodecError;
use crate::kind::CodecKind;
use crate::matrix::Matrix;
use crate::{check, recover, rs, rs_legacy, xor};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Most units, data and parity, that one code can have.
///
/// Source: Hadoop 3.5.0 `RSRawEncoder`: the number of units must be below the size of the field.
pub const MAX_UNITS: usize = 255;

/// A code with k data and m parity units, ready to encode and decode.
///
/// Units are numbered 0..k (data), then k..k+m (parity). Any k of them give back the others. Share
/// one `Codec` among threads: no result depends on an earlier call, only the coefficients of the
/// last decoding are kept for the next, and clones share them.
///
/// ```
/// use cairn_codec::{Codec, CodecKind};
///
/// let code = Codec::new(CodecKind::Rs, 3, 2)?;
/// let data = [b"data".as_slice(), b"unit", b"s..."];
/// let (mut p0, mut p1) = (vec![0; 4], vec![0; 4]);
/// code.encode(&data, &mut [&mut p0, &mut p1])?;
///
/// // Units 1 and 3 are lost: one data and one parity unit.
/// let present = [Some(data[0]), None, Some(data[2]), None, Some(p1.as_slice())];
/// let (mut unit1, mut unit3) = (vec![0; 4], vec![0; 4]);
/// code.decode(&present, &[1, 3], &mut [&mut unit1, &mut unit3])?;
/// assert_eq!((unit1.as_slice(), unit3), (data[1], p0));
/// # Ok::<(), cairn_codec::CodecError>(())
/// ```
#[derive(Clone)]
pub struct Codec {
    kind: CodecKind,
    engine: Engine,
    parity_rows: Matrix,
    encode_tables: Tables,
    /// Stripe after stripe is rebuilt from the same units: finding the coefficients again for each
    /// would cost as much as a tenth of a cell of 64 KiB.
    last_recipe: Arc<Mutex<Option<Arc<Recipe>>>>,
}

/// How to rebuild some units from some others.
struct Recipe {
    present: Vec<usize>,
    lost: Vec<usize>,
    tables: Tables,
}

impl Codec {
    /// A code with `data_count` data and `parity_count` parity units, on the fastest engine of this
    /// processor.
    ///
    /// Fails with [`CodecError::UnsupportedSchema`] if either count is zero, if they add up to more
    /// than [`MAX_UNITS`], or if an XOR code is to have more than one parity unit.
    pub fn new(
        kind: CodecKind,
        data_count: usize,
        parity_count: usize,
    ) -> Result<Codec, CodecError> {
        Codec::with_engine(kind, data_count, parity_count, Engine::best())
    }

    /// As [`Codec::new`], on a given engine: for tests and measurements.
    ///
    /// Fails also with [`CodecError::EngineUnavailable`].
    pub fn with_engine(
        kind: CodecKind,
        data_count: usize,
        parity_count: usize,
        engine: Engine,
    ) -> Result<Codec, CodecError> {
        let fits = data_count > 0
            && parity_count > 0
            && data_count.saturating_add(parity_count) <= MAX_UNITS
            && (kind != CodecKind::Xor || parity_count == 1);
        if !fits {
            return Err(CodecError::UnsupportedSchema { kind, data_count, parity_count });
        }
        if !engine.is_available() {
            return Err(CodecError::EngineUnavailable { engine });
        }
        let parity_rows = match kind {
            CodecKind::Rs => rs::parity_rows(data_count, parity_count),
            CodecKind::RsLegacy => rs_legacy::parity_rows(data_count, parity_count),
            CodecKind::Xor => xor::parity_rows(data_count),
        };
        Ok(Codec::of_rows(kind, parity_rows, engine))
    }

    /// A code with these coefficients, of which every square part is regular.
    pub(crate) fn of_rows(kind: CodecKind, parity_rows: Matrix, engine: Engine) -> Codec {
        let encode_tables = Tables::new(&parity_rows);
        Codec { kind, engine, parity_rows, encode_tables, last_recipe: Arc::default() }
    }

    /// Which code this is.
    pub fn kind(&self) -> CodecKind {
        self.kind
    }

    /// Number of data units, k.
    pub fn data_count(&self) -> usize {
        self.parity_rows.cols()
    }

    /// Number of parity units, m.
    pub fn parity_count(&self) -> usize {
        self.parity_rows.rows()
    }

    /// Number of all units, k + m.
    pub fn unit_count(&self) -> usize {
        self.data_count() + self.parity_count()
    }

    /// The numbers of data and parity units.
    fn shape(&self) -> (usize, usize) {
        (self.data_count(), self.parity_count())
    }

    /// The engine that computes.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The coefficients of the parity units, `[m x k]` row by row: parity unit i is the sum over j
    /// of coefficient (i, j) times data unit j.
    pub fn parity_coefficients(&self) -> Vec<u8> {
        (0..self.parity_count()).flat_map(|row| self.parity_rows.row(row)).copied().collect()
    }

    /// Computes all parity units from all data units.
    ///
    /// `data` holds the k data units, `parity` takes the m parity units; all have the same length,
    /// which may be any, zero included. What `parity` held before is overwritten. A short cell is
    /// encoded by padding it with zeros first.
    ///
    /// Fails with [`CodecError::BufferCount`] or [`CodecError::BufferLength`], with nothing written.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodecError> {
        check::encoding(self.shape(), data, parity)?;
        self.engine.multiply(&self.encode_tables, data, parity);
        Ok(())
    }

    /// Rebuilds lost units, data and parity in any mix, from k units that are present.
    ///
    /// `units` holds k + m entries, `None` for a unit that is lost or was not read. `lost` names the
    /// units to rebuild, in any order; `out[i]` takes unit `lost[i]` and its old content is
    /// overwritten. The first k present units are read and the rest is ignored, so a caller need
    /// not read more than k. Nothing lost is no error and does nothing.
    ///
    /// Fails, with nothing written, with [`CodecError::TooFewUnits`] if fewer than k units are
    /// present, [`CodecError::NoSuchUnit`] or [`CodecError::NotLost`] for a wrong entry of `lost`,
    /// [`CodecError::BufferCount`] or [`CodecError::BufferLength`].
    pub fn decode(
        &self,
        units: &[Option<&[u8]>],
        lost: &[usize],
        out: &mut [&mut [u8]],
    ) -> Result<(), CodecError> {
        let (_, read) = check::decoding(self.shape(), units, lost, out)?;
        if lost.is_empty() {
            return Ok(());
        }
        let (present, sources): (Vec<usize>, Vec<&[u8]>) = read.into_iter().unzip();
        let recipe = self.recipe(present, lost);
        self.engine.multiply(&recipe.tables, &sources, out);
        Ok(())
    }

    fn recipe(&self, present: Vec<usize>, lost: &[usize]) -> Arc<Recipe> {
        // The lock guards a single assignment, so its value is good even if a holder panicked.
        let last_recipe = || self.last_recipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recipe) = &*last_recipe()
            && recipe.present == present
            && recipe.lost == lost
        {
            return recipe.clone();
        }
        let tables = Tables::new(&recover::rows(&self.parity_rows, &present, lost));
        let recipe = Arc::new(Recipe { present, lost: lost.to_vec(), tables });
        *last_recipe() = Some(recipe.clone());
        recipe
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (k, m) = (self.data_count(), self.parity_count());
        write!(f, "{}-{k}-{m} on {}", self.kind, self.engine)
    }
}
