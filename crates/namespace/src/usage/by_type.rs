//! Values by type of storage.

use cairn_stripe::StorageType;
use std::ops::{Index, IndexMut};

/// A value for each type of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByType<T>([T; 6]);

impl<T> ByType<T> {
    /// The values with their types, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (StorageType, &T)> {
        StorageType::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<StorageType> for ByType<T> {
    type Output = T;

    fn index(&self, kind: StorageType) -> &T {
        &self.0[kind.rank()]
    }
}

impl<T> IndexMut<StorageType> for ByType<T> {
    fn index_mut(&mut self, kind: StorageType) -> &mut T {
        &mut self.0[kind.rank()]
    }
}
