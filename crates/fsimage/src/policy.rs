//! Policies of erasure coding, and the numbers and counters of the namespace.

use crate::error::{ImageError, Malformed};
use crate::fields::Fields;
use crate::section::Section;

/// Whether a policy can be set on a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyState {
    /// Known, but not to be set.
    Disabled,
    /// To be set.
    #[default]
    Enabled,
    /// Kept for the files that have it.
    Removed,
}

/// A policy of erasure coding. Of Hadoop's own ones an image has the number and the state only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EcPolicy {
    /// The number that files have.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its code: `rs`, `rs-legacy`, `xor`.
    pub codec: String,
    /// Data units of a group.
    pub data_units: u32,
    /// Parity units of a group.
    pub parity_units: u32,
    /// Bytes of a cell.
    pub cell_len: u32,
    /// Whether it can be set.
    pub state: PolicyState,
}

impl EcPolicy {
    /// Reads section ERASURE_CODING; images of Hadoop 2 have none.
    pub fn read(section: Option<Section<'_>>) -> Result<Vec<EcPolicy>, ImageError> {
        let Some(mut section) = section else { return Ok(Vec::new()) };
        section.required(|message| {
            let (mut all, mut fields) = (Vec::new(), Fields::of(message));
            while let Some((_, value)) = fields.next()? {
                all.push(EcPolicy::decode(value.bytes()?)?);
            }
            Ok(all)
        })
    }

    fn decode(message: &[u8]) -> Result<EcPolicy, Malformed> {
        let (mut policy, mut fields) = (EcPolicy::default(), Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => policy.name = value.text()?.to_string(),
                2 => policy.schema(value.bytes()?)?,
                3 => policy.cell_len = value.small()?,
                4 => policy.id = value.small()?,
                5 => {
                    policy.state = match value.number()? {
                        1 => PolicyState::Disabled,
                        2 => PolicyState::Enabled,
                        3 => PolicyState::Removed,
                        _ => return Err(Malformed("a policy has a state that is not known")),
                    }
                }
                _ => return Err(Malformed("a policy has a field that is not known")),
            }
        }
        Ok(policy)
    }

    fn schema(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => self.codec = value.text()?.to_string(),
                2 => self.data_units = value.small()?,
                3 => self.parity_units = value.small()?,
                // Options of codecs; none of Hadoop's has any.
                4 => {}
                _ => return Err(Malformed("a schema has a field that is not known")),
            }
        }
        Ok(())
    }
}

/// Section NS_INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of the file system.
    pub namespace_id: u32,
    /// The newest stamp of blocks.
    pub stamp: u64,
    /// The newest stamp of blocks that Hadoop 1 has made; 1000 for none.
    pub legacy_stamp: u64,
    /// The newest block.
    pub last_block: u64,
    /// The newest block group, if there was one.
    pub last_group: Option<i64>,
    /// The last entry of the log that the image has.
    pub transaction: u64,
    /// Whether a rolling upgrade was under way.
    pub rolling_upgrade: bool,
}

impl Counters {
    /// Reads the section.
    pub fn read(mut section: Section<'_>) -> Result<Counters, ImageError> {
        section.required(|message| {
            let (mut found, mut fields) = (Counters::default(), Fields::of(message));
            while let Some((field, value)) = fields.next()? {
                match field {
                    1 => found.namespace_id = value.number()? as u32,
                    2 => found.legacy_stamp = value.number()?,
                    3 => found.stamp = value.number()?,
                    4 => {}
                    5 => found.last_block = value.number()?,
                    6 => found.transaction = value.number()?,
                    7 => found.rolling_upgrade = true,
                    8 => found.last_group = Some(value.number()? as i64),
                    _ => return Err(Malformed("the counters have a field that is not known")),
                }
            }
            Ok(found)
        })
    }
}
