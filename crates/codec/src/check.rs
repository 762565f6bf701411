//! What callers hand to a code, checked before anything is written.

use crate::error::CodecError;

/// Units that are read, with their numbers.
pub(crate) type Sources<'a> = Vec<(usize, &'a [u8])>;

/// Checks what a code of `k` data and `m` parity units is to encode. Returns the length of its units.
pub(crate) fn encoding(
    (k, m): (usize, usize),
    data: &[&[u8]],
    parity: &[&mut [u8]],
) -> Result<usize, CodecError> {
    count("data units", k, data.len())?;
    count("parity units", m, parity.len())?;
    let len = data[0].len();
    lengths("data unit", len, data.iter().map(|unit| unit.len()))?;
    lengths("parity unit", len, parity.iter().map(|unit| unit.len()))?;
    Ok(len)
}

/// Checks what a code of `k` data and `m` parity units is to rebuild. Returns the length of its units and the k that are
/// to be read.
pub(crate) fn decoding<'a>(
    (k, m): (usize, usize),
    units: &[Option<&'a [u8]>],
    lost_units: &[usize],
    out: &[&mut [u8]],
) -> Result<(usize, Sources<'a>), CodecError> {
    count("units", k + m, units.len())?;
    count("outputs", lost_units.len(), out.len())?;
    lost(units, lost_units)?;
    let read = first_present(units, k)?;
    let len = read[0].1.len();
    for &(index, bytes) in &read {
        length("unit", index, len, bytes.len())?;
    }
    lengths("output", len, out.iter().map(|unit| unit.len()))?;
    Ok((len, read))
}

/// Checks that `lost` names units of `units` that are absent, each once.
fn lost(units: &[Option<&[u8]>], lost: &[usize]) -> Result<(), CodecError> {
    for (at, &unit) in lost.iter().enumerate() {
        if unit >= units.len() {
            return Err(CodecError::NoSuchUnit { unit, unit_count: units.len() });
        }
        if lost[..at].contains(&unit) || units[unit].is_some() {
            return Err(CodecError::NotLost { unit });
        }
    }
    Ok(())
}

/// The first `needed` units that are present, with their numbers.
fn first_present<'a>(units: &[Option<&'a [u8]>], needed: usize) -> Result<Sources<'a>, CodecError> {
    let present = units.iter().enumerate();
    let read: Vec<_> =
        present.filter_map(|(unit, bytes)| Some((unit, (*bytes)?))).take(needed).collect();
    match read.len() == needed {
        true => Ok(read),
        false => Err(CodecError::TooFewUnits { needed, present: read.len() }),
    }
}

pub(crate) fn count(what: &'static str, expected: usize, actual: usize) -> Result<(), CodecError> {
    match expected == actual {
        true => Ok(()),
        false => Err(CodecError::BufferCount { what, expected, actual }),
    }
}

pub(crate) fn lengths(
    what: &'static str,
    expected: usize,
    lengths: impl Iterator<Item = usize>,
) -> Result<(), CodecError> {
    lengths.enumerate().try_for_each(|(index, actual)| length(what, index, expected, actual))
}

fn length(
    what: &'static str,
    index: usize,
    expected: usize,
    actual: usize,
) -> Result<(), CodecError> {
    match expected == actual {
        true => Ok(()),
        false => Err(CodecError::BufferLength { what, index, expected, actual }),
    }
}
