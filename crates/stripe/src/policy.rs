//! Erasure coding policies: which code, how many units, how long a cell.
//!
//! Source: Hadoop 3.5.0 `SystemErasureCodingPolicies`, `ErasureCodingPolicy`, `ECSchema`,
//! `ErasureCodeConstants`.

use crate::id::MAX_UNITS_PER_GROUP;
use std::fmt;

/// The number of a policy on the wire and in the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyId(pub u8);

impl PolicyId {
    /// The policy of files that are kept as whole replicas.
    pub const REPLICATION: PolicyId = PolicyId(0);
    /// The first number that a user-defined policy can get.
    pub const FIRST_USER_DEFINED: PolicyId = PolicyId(64);
}

/// The name of a code, as Hadoop writes it in schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodecName {
    /// Reed-Solomon over GF(2^8) with ISA-L's Cauchy matrix.
    Rs,
    /// The older Reed-Solomon of HDFS-RAID.
    RsLegacy,
    /// One parity unit, the exclusive or of the data units.
    Xor,
}

impl CodecName {
    /// Every code, in the order in which `listCodecs` prints them.
    pub const ALL: [CodecName; 3] = [CodecName::Rs, CodecName::RsLegacy, CodecName::Xor];

    /// Hadoop's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            CodecName::Rs => "rs",
            CodecName::RsLegacy => "rs-legacy",
            CodecName::Xor => "xor",
        }
    }

    /// The code of that name, which is in small letters.
    ///
    /// Source: Hadoop 3.5.0 `CodecUtil#hasCodec`.
    pub fn parse(name: &str) -> Option<CodecName> {
        CodecName::ALL.into_iter().find(|codec| codec.as_str() == name)
    }
}

impl fmt::Display for CodecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A code and its number of data and parity units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schema {
    /// Which code.
    pub codec: CodecName,
    /// Data units of a group.
    pub k: u8,
    /// Parity units of a group, which is how many lost units it survives.
    pub m: u8,
}

impl Schema {
    /// `k` as a count for arrays.
    pub fn data_units(&self) -> usize {
        usize::from(self.k)
    }

    /// `m` as a count for arrays.
    pub fn parity_units(&self) -> usize {
        usize::from(self.m)
    }

    /// `k + m` as a count for arrays.
    pub fn units(&self) -> usize {
        self.data_units() + self.parity_units()
    }
}

/// Whether a policy can be set on a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyState {
    /// Known, but not to be set on directories.
    Disabled,
    /// Can be set on directories.
    Enabled,
    /// Removed by an administrator; kept for the files that have it.
    Removed,
}

/// Where the units of a group come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyLayout {
    /// A file's bytes go cell by cell over the units of a group, as its client writes them.
    Striped,
    /// Clients write whole replicas. Servers put parity over whole blocks, and keep one replica of each.
    Contiguous,
}

/// A schema with a cell length and a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The number that files and the wire carry.
    pub id: PolicyId,
    /// For example `RS-6-3-1024k`.
    pub name: String,
    /// Code and units.
    pub schema: Schema,
    /// Bytes of a cell. Contiguous groups have none; they have [`Policy::CONTIGUOUS_CELL_LEN`] for clients' sake.
    pub cell_len: u32,
    /// Where the units of a group come from.
    pub layout: PolicyLayout,
}

/// As Hadoop shows it to people, in messages and lists.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicy#toString`, `ECSchema#toString`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Policy { id, name, schema: Schema { codec, k, m }, cell_len, layout: _ } = self;
        write!(
            f,
            "ErasureCodingPolicy=[Name={name}, Schema=[ECSchema=[Codec={codec}, numDataUnits={k}, \
             numParityUnits={m}]], CellSize={cell_len}, Id={}]",
            id.0
        )
    }
}

/// Why a policy can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No data or no parity units.
    #[error("a policy needs data and parity units, not {k} and {m}")]
    NoUnits {
        /// Data units asked for.
        k: u8,
        /// Parity units asked for.
        m: u8,
    },
    /// More units than a block id can tell apart.
    #[error("{units} units are more than the {MAX_UNITS_PER_GROUP} that a block group holds")]
    TooManyUnits {
        /// Units asked for.
        units: usize,
    },
    /// XOR gives one parity unit.
    #[error("xor makes one parity unit, not {m}")]
    XorParity {
        /// Parity units asked for.
        m: u8,
    },
    /// A cell of no bytes, or one that chunks of checksums do not fill.
    #[error("the cell size {cell_len} should be a positive multiple of 1024")]
    CellLen {
        /// Bytes asked for.
        cell_len: u32,
    },
}

impl Policy {
    /// What clients are told as the length of a cell where there are none.
    pub const CONTIGUOUS_CELL_LEN: u32 = 1024 * 1024;

    /// The number of a built-in policy's contiguous sibling is so much higher.
    const CONTIGUOUS_OFFSET: u8 = 32;

    /// A striped policy with Hadoop's name for the schema and cell length.
    pub fn new(id: PolicyId, schema: Schema, cell_len: u32) -> Result<Policy, PolicyError> {
        let Schema { codec, k, m } = schema;
        if k == 0 || m == 0 {
            return Err(PolicyError::NoUnits { k, m });
        }
        if schema.units() > MAX_UNITS_PER_GROUP {
            return Err(PolicyError::TooManyUnits { units: schema.units() });
        }
        if codec == CodecName::Xor && m != 1 {
            return Err(PolicyError::XorParity { m });
        }
        if cell_len == 0 || !cell_len.is_multiple_of(1024) {
            return Err(PolicyError::CellLen { cell_len });
        }
        let name = format!("{}-{k}-{m}-{}k", codec.as_str().to_uppercase(), cell_len / 1024);
        Ok(Policy { id, name, schema, cell_len, layout: PolicyLayout::Striped })
    }

    /// The policy of contiguous groups with the same code as this one, for example `RS-6-3-contiguous`.
    fn contiguous_sibling(&self) -> Policy {
        let Schema { codec, k, m } = self.schema;
        Policy {
            id: PolicyId(self.id.0 + Policy::CONTIGUOUS_OFFSET),
            name: format!("{}-{k}-{m}-contiguous", codec.as_str().to_uppercase()),
            schema: self.schema,
            cell_len: Policy::CONTIGUOUS_CELL_LEN,
            layout: PolicyLayout::Contiguous,
        }
    }

    /// The policies that every file system has, in the order of their numbers: Hadoop's five, `RS-6-3-64k`, which Hadoop
    /// would let an administrator define, and contiguous siblings of Hadoop's Reed-Solomon ones.
    pub fn built_in() -> Vec<Policy> {
        const KIB: u32 = 1024;
        let striped = [
            (1, CodecName::Rs, 6, 3, 1024 * KIB),
            (2, CodecName::Rs, 3, 2, 1024 * KIB),
            (3, CodecName::RsLegacy, 6, 3, 1024 * KIB),
            (4, CodecName::Xor, 2, 1, 1024 * KIB),
            (5, CodecName::Rs, 10, 4, 1024 * KIB),
            (6, CodecName::Rs, 6, 3, 64 * KIB),
        ]
        .into_iter()
        .map(|(id, codec, k, m, cell_len)| {
            Policy::new(PolicyId(id), Schema { codec, k, m }, cell_len)
                .expect("the built-in policies are valid")
        });
        let mut all: Vec<Policy> = striped.collect();
        let siblings: Vec<Policy> = all
            .iter()
            .filter(|policy| policy.schema.codec == CodecName::Rs && policy.cell_len == 1024 * KIB)
            .map(Policy::contiguous_sibling)
            .collect();
        all.extend(siblings);
        all
    }

    /// Bytes of data in a full stripe.
    pub fn stripe_len(&self) -> u64 {
        u64::from(self.cell_len) * u64::from(self.schema.k)
    }
}

/// How a file's blocks are made safe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Redundancy {
    /// Whole copies, that many.
    Replicated(u16),
    /// Block groups of data and parity units.
    Striped(Policy),
}

impl Redundancy {
    /// Storages that a whole block or group takes.
    pub fn width(&self) -> usize {
        match self {
            Redundancy::Replicated(copies) => usize::from(*copies),
            Redundancy::Striped(policy) => policy.schema.units(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_policies_have_hadoops_numbers_and_names() {
        let named: Vec<(u8, String)> =
            Policy::built_in().into_iter().map(|p| (p.id.0, p.name)).collect();
        let want = [
            (1, "RS-6-3-1024k"),
            (2, "RS-3-2-1024k"),
            (3, "RS-LEGACY-6-3-1024k"),
            (4, "XOR-2-1-1024k"),
            (5, "RS-10-4-1024k"),
            (6, "RS-6-3-64k"),
            (33, "RS-6-3-contiguous"),
            (34, "RS-3-2-contiguous"),
            (37, "RS-10-4-contiguous"),
        ];
        assert_eq!(named, want.map(|(id, name)| (id, name.to_string())));
        let contiguous =
            Policy::built_in().into_iter().filter(|p| p.layout == PolicyLayout::Contiguous);
        let numbers: Vec<u8> = contiguous.map(|p| p.id.0).collect();
        assert_eq!(numbers, [33, 34, 37]);
    }

    #[test]
    fn impossible_policies_are_refused() {
        let rs = |k, m, cell_len| {
            Policy::new(PolicyId(64), Schema { codec: CodecName::Rs, k, m }, cell_len)
        };
        assert_eq!(rs(0, 3, 1024), Err(PolicyError::NoUnits { k: 0, m: 3 }));
        assert_eq!(rs(14, 3, 1024), Err(PolicyError::TooManyUnits { units: 17 }));
        assert_eq!(rs(6, 3, 1000), Err(PolicyError::CellLen { cell_len: 1000 }));
        let xor = Schema { codec: CodecName::Xor, k: 2, m: 2 };
        assert_eq!(Policy::new(PolicyId(64), xor, 1024), Err(PolicyError::XorParity { m: 2 }));
    }
}
