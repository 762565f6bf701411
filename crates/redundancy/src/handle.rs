//! Names of DataNodes and storages, short enough to be kept in every place of a block.

/// Names a DataNode within one [`Cluster`](crate::Cluster); never reused for another UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeHandle(pub u32);

/// Names a storage within one [`Cluster`](crate::Cluster); never reused for another storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageHandle(pub u32);
